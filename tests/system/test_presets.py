#!/usr/bin/env python3
"""Presets: the logs of HAProxy, AWS, Traefik and Caddy. The first lines are examples of the servers' own documentation; the others are
written here, field by field, with hostile bytes, and each field must be read as it was written."""

import json
import unittest

from harness import EX_OK, Case, dice

TIME = {"clf": "06/Feb/2019:00:00:38 +0000", "iso": "2019-02-06T00:00:38.655000Z", "local": "06/Feb/2019:00:00:38.655"}

EXAMPLES = {
    "haproxy": [
        ('Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 '
         '- - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"',
         {"host": "10.0.1.2", "frontend": "http-in", "backend": "static", "server": "srv1", "request_ms": "10", "queue_ms": "0",
          "connect_ms": "30", "response_ms": "69", "total_ms": "109", "status": "200", "bytes": "2750", "termination": "----",
          "request": "GET /index.html HTTP/1.1", "method": "GET", "target": "/index.html", "path": "/index.html", "protocol": "HTTP/1.1"}),
        ("Feb  6 12:12:56 localhost haproxy[14387]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0",
         {"host": "10.0.1.2", "frontend": "fnt", "backend": "bck", "server": "srv1", "queue_ms": "0", "connect_ms": "0",
          "total_ms": "5007", "bytes": "212", "termination": "--"}),
        ('haproxy[674]: 127.0.0.1:33319 [15/Oct/2003:08:31:57.130] relais-http~ relais-http/<NOSRV> 0/-1/-1/-1/+8490 -1 0 - - CR-- '
         '610/610/610/610/0 0/0 "<BADREQ>"',
         {"host": "127.0.0.1", "frontend": "relais-http", "backend": "relais-http", "request_ms": "0", "total_ms": "8490", "bytes": "0",
          "termination": "CR--", "request": "<BADREQ>"})],
    "alb": [
        ('http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 '
         '34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123:targetgroup/a/7 '
         '"Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"',
         {"type": "http", "balancer": "app/my-loadbalancer/50dc6c495c0c9188", "host": "192.168.131.39", "backend": "10.0.0.1:80",
          "request_processing_time": "0.000", "target_processing_time": "0.001", "response_processing_time": "0.000", "status": "200",
          "target_status": "200", "bytes_received": "34", "bytes": "366", "method": "GET", "vhost": "www.example.com", "target": "/",
          "path": "/", "protocol": "HTTP/1.1", "agent": "curl/7.46.0",
          "target_group": "arn:aws:elasticloadbalancing:us-east-2:123:targetgroup/a/7"})],
    "elb": [
        ('2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 - -1 -1 -1 503 0 0 0 "GET http://www.example.com:80/ HTTP/1.1" '
         '"curl/7.38.0" - -',
         {"balancer": "my-loadbalancer", "host": "192.168.131.39", "status": "503", "backend_status": "0", "bytes_received": "0",
          "bytes": "0", "method": "GET", "vhost": "www.example.com", "target": "/", "path": "/", "protocol": "HTTP/1.1",
          "agent": "curl/7.38.0"}),
        ('2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.001069 0.000028 0.000041 - - 82 305 "- - - " "-" - -',
         {"balancer": "my-loadbalancer", "host": "192.168.131.39", "backend": "10.0.0.1:80", "request_processing_time": "0.001069",
          "backend_processing_time": "0.000028", "response_processing_time": "0.000041", "bytes_received": "82", "bytes": "305"}),
        ('2014-02-15T23:39:43.945958Z my-test-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 '
         '"GET http://www.example.com:80/ HTTP/1.1"',  # as it was before 2015
         {"balancer": "my-test-loadbalancer", "host": "192.168.131.39", "backend": "10.0.0.1:80", "request_processing_time": "0.000073",
          "backend_processing_time": "0.001048", "response_processing_time": "0.000057", "status": "200", "backend_status": "200",
          "bytes_received": "0", "bytes": "29", "method": "GET", "vhost": "www.example.com", "target": "/", "path": "/",
          "protocol": "HTTP/1.1"})],
    "s3": [
        ('79a59 amzn-s3-demo-bucket1 [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59 3E57427F3EXAMPLE REST.GET.VERSIONING - '
         '"GET /amzn-s3-demo-bucket1?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" - s9lzHYrFp76ZVx= SigV4 '
         'ECDHE-RSA-AES128-GCM-SHA256 AuthHeader amzn-s3-demo-bucket1.s3.us-west-1.amazonaws.com TLSV1.2 arn:aws:s3 Yes',
         {"bucket": "amzn-s3-demo-bucket1", "host": "192.0.2.3", "user": "79a59", "operation": "REST.GET.VERSIONING",
          "request": "GET /amzn-s3-demo-bucket1?versioning HTTP/1.1", "method": "GET", "target": "/amzn-s3-demo-bucket1?versioning",
          "path": "/amzn-s3-demo-bucket1", "protocol": "HTTP/1.1", "status": "200", "bytes": "113", "total_ms": "7",
          "agent": "S3Console/0.4"})],
    "traefik": [
        ('10.0.0.5 - - [01/Mar/2026:10:00:00 +0000] "GET /api HTTP/2.0" 404 19 "-" "-" 4 "-" "-" 0ms',
         {"host": "10.0.0.5", "request": "GET /api HTTP/2.0", "method": "GET", "target": "/api", "path": "/api", "protocol": "HTTP/2.0",
          "status": "404", "bytes": "19", "total_ms": "0"})],
    "traefik_json": [
        ('{"ClientHost":"10.0.0.5","ClientUsername":"-","DownstreamContentSize":12,"DownstreamStatus":200,"Duration":3123456,'
         '"RequestHost":"a.example","RequestMethod":"GET","RequestPath":"/api?x","RequestProtocol":"HTTP/2.0","RouterName":"web@docker",'
         '"ServiceName":"s@docker","level":"info","msg":"","time":"2026-03-01T10:00:00Z"}',
         {"host": "10.0.0.5", "bytes": "12", "status": "200", "duration_ns": "3123456", "vhost": "a.example", "method": "GET",
          "target": "/api?x", "path": "/api", "protocol": "HTTP/2.0", "router": "web@docker", "backend": "s@docker"})],
    "caddy": [
        ('{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1",'
         '"remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":'
         '{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.000929675,'
         '"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}',
         {"host": "127.0.0.1", "protocol": "HTTP/2.0", "method": "GET", "vhost": "localhost", "target": "/a?b", "path": "/a",
          "agent": "curl/7.82.0", "bytes_received": "0", "duration": "0.000929675", "bytes": "10900", "status": "200"})],
}

CONFIG = """
store: {url: 'sqlite:tallyd.db'}
sources:
  shop: {path: '/nowhere/shop/{vhost}.log', decode: caddy, fields: {agent: /request/headers/X-Agent/0, port: /port}}
reports:
  pages: {by: [vhost, path, agent]}
"""


class Presets(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def explain(self, *args, status=EX_OK):
        return [json.loads(line) for line in self.tallyd("explain", "--json", *args, status=status).splitlines()]

    @staticmethod
    def fields(found):
        return {field["name"]: field["value"] for field in found["fields"]}

    def test_reads_the_examples_of_the_documentation(self):
        for name, examples in EXAMPLES.items():
            for line, wanted in examples:
                found, = self.explain("--decode", name, line)
                self.assertEqual(wanted, self.fields(found), line)
        found, = self.explain("--decode", "haproxy", EXAMPLES["haproxy"][0][0])
        self.assertEqual("2009-02-06T12:14:14.655Z", found["time"])

    def test_detect_proposes_them(self):
        for name, examples in EXAMPLES.items():
            self.write("a.log", "".join(line + "\n" for line, _ in examples).encode() * 3)
            self.assertIn(f"decode: [{name}]", self.tallyd("detect", "a.log"))
        self.write("a.log", b'{"ts":1646861401.5,"path":"/a","status":200}\n')
        self.assertIn("decode: [json]", self.tallyd("detect", "a.log"))  # Caddy's members are not there

    # ---- lines of one's own

    def hostile(self, forbidden):
        parts = ["a", "\\x22", "%22", "\u00e4", "{", "}", "|", "]", "[", "'", "\\", '"', " ", '" 200 5 "', " - ", "~", "\x1b", ":80", "?", "="]
        text = "".join(self.dice.choice(parts) for _ in range(self.dice.randrange(6)))
        return "".join(c for c in text if c not in forbidden)

    def address(self):
        return self.dice.choice(["10.0.0.1", "192.168.131.39", "2001:db8::1"])

    def line_of(self, name):
        target, agent = "/" + self.hostile(" "), "a" + self.hostile('"\\') + "b"
        f = {"host": self.address(), "method": "GET", "target": target, "path": target.split("?")[0], "status": str(self.dice.randrange(100, 600)),
             "bytes": str(self.dice.randrange(10**6)), "protocol": "HTTP/1.1"}
        request = f"{f['method']} {target} {f['protocol']}"
        ms = [str(self.dice.randrange(9999)) for _ in range(5)]
        if name == "haproxy":
            target = f["target"] = target.replace('"', "#22")
            f["path"] = target.split("?")[0]
            f["request"] = request = f"GET {target} HTTP/1.1"
            f.update(zip(["request_ms", "queue_ms", "connect_ms", "response_ms", "total_ms"], ms))
            f.update(frontend="f", backend="b", server="s", termination="LR--")
            captured = "".join(f" {{{self.hostile('}')}}}" for _ in range(self.dice.randrange(3)))
            line = (f"{f['host']}:80 [{TIME['local']}] f b/s {'/'.join(ms)} {f['status']} {f['bytes']} - - LR-- 1/1/1/1/0 0/0{captured} "
                    f'"{request}"')
        elif name in ("alb", "elb"):
            f.update(vhost="a.example", agent=agent, balancer="lb", bytes_received="7", backend="10.0.0.9:80",
                     request_processing_time="0.1", response_processing_time="0.3")
            f.update({"target_processing_time": "0.2", "target_status": "201"} if name == "alb" else
                     {"backend_processing_time": "0.2", "backend_status": "201"})
            head = f"{TIME['iso']} lb {f['host']}:99 10.0.0.9:80 0.1 0.2 0.3 {f['status']} 201 7 {f['bytes']}"
            line = f'{head} "GET https://a.example:443{target} HTTP/1.1" "{agent}" ECDHE TLSv1.3'
            f["ssl_protocol"] = "TLSv1.3"
            if name == "alb":
                f.update(type="h2", target_group="arn")
                line = f'h2 {line} arn "{self.hostile("")}" "-"'
        elif name == "s3":
            f.update(request=request, bucket="b", operation="REST.GET.OBJECT", key="k%22", error="NoSuchKey", agent=agent, referrer="r" + agent,
                     total_ms=ms[0], turnaround_ms=ms[1], user="u", object_size="12")
            line = (f'o b [{TIME["clf"]}] {f["host"]} u id REST.GET.OBJECT k%22 "{request}" {f["status"]} NoSuchKey {f["bytes"]} 12 {ms[0]} '
                    f'{ms[1]} "r{agent}" "{agent}" - x')
        else:
            f.update(request=request, agent=agent, referrer="r" + agent, router="r@file", backend="http://10.0.0.9", total_ms=ms[0], user="u v")
            line = (f'{f["host"]} - u v [{TIME["clf"]}] "{request}" {f["status"]} {f["bytes"]} "r{agent}" "{agent}" 4 "r@file" '
                    f'"http://10.0.0.9" {ms[0]}ms')
        return line, f

    def test_reads_each_field_as_it_was_written(self):
        for name in "haproxy", "alb", "elb", "s3", "traefik":
            written = [self.line_of(name) for _ in range(300)]
            self.write("a.log", "".join(line + "\n" for line, _ in written).encode())
            found = self.explain("--decode", name, "--file", "a.log", "-n", "300")
            self.assertEqual(300, len(found))
            for (line, wanted), one in zip(written, found):
                shown = {key: "".join(f"\\x{ord(c):02x}" if c < " " else c for c in value) for key, value in wanted.items()}
                self.assertIn(self.fields(one), (wanted, shown), line)

    def test_a_configuration_may_say_where_a_field_stands(self):
        self.write("tallyd.yaml", CONFIG.encode())
        printed = self.tallyd("check", "-c", "tallyd.yaml", "--print")
        self.assertIn('decode: ["caddy"]', printed)
        line = EXAMPLES["caddy"][0][0].replace('"Accept":', '"X-Agent":["mine"],"Accept":')
        self.write("again.yaml", printed.encode())
        for config in "tallyd.yaml", "again.yaml":
            found, = self.explain("-c", config, "--source", "shop", line)
            self.assertEqual(["mine", "/a"], [self.fields(found)[name] for name in ("agent", "path")])
            self.assertNotIn("vhost", self.fields(found))  # it is in the path
        again = self.tallyd("check", "-c", "again.yaml", "--print")
        self.assertEqual(printed, again)


if __name__ == "__main__":
    unittest.main()
