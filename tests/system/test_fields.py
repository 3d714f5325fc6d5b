#!/usr/bin/env python3
"""Fields that tallyd makes of others, compared with what Python makes of the same lines: by its own modules for addresses, zones and
queries, none of which tallyd uses."""

import collections
import contextlib
import datetime
import hashlib
import hmac
import ipaddress
import json
import os
import random
import re
import signal
import sqlite3
import unittest
import urllib.parse
import zoneinfo

from harness import EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, Case, DaemonCase

LINES = 4000
SPAN = ("2010-10-28", "2010-11-04")  # clocks in Berlin are put back in it
NAMES = ["utm_source", "b", "utm_source2"]


def network(host):
    """host_net of a host, or - if it is no address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "-"
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False))


def parameter(target, name):
    """query:NAME of a target, or - if it is absent."""
    query = target.partition("?")[2].partition("#")[0]
    for pair in query.split("&"):
        key, equals, value = pair.partition("=")
        if key == name and equals:
            return urllib.parse.unquote_plus(value) or "-"
    return "-"


def route(path, rules):
    """The route of a path by rules of (match, replace), the latter as Python has it."""
    for match, replace in rules:
        if re.search(match, path):
            return re.sub(match, replace, path, count=1)
    uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    identifier = re.compile(rf"[0-9]+|{uuid}|(?=[a-f]*[0-9])[0-9a-f]{{8,}}", re.IGNORECASE)
    return "/".join(":id" if identifier.fullmatch(part) else part for part in path.split("/"))


class Lines:
    """Random lines of combined, and their fields."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def host(self):
        pick = self.random
        v4 = f"10.{pick.randrange(3)}.{pick.randrange(3)}.{pick.randrange(256)}"
        v6 = str(ipaddress.IPv6Address((0x20010db8 << 96) + (pick.randrange(3) << 80) + pick.randrange(1 << 64)))
        return pick.choice([v4, v4, v6, f"::ffff:{v4}", "client.example", f"{v4}:80"])

    def target(self):
        pick = self.random
        pairs = [pick.choice(NAMES) + pick.choice(["", "=", "=a", "=a+b", "=%c3%a9", "=1%zz", "=%41%"]) for _ in range(pick.randrange(4))]
        return f"/p{pick.randrange(3)}" + ("?" + "&".join(pairs) if pairs else "") + pick.choice(["", "", "#x"])

    def make(self, count):
        """[(line, host, time, target)]"""
        start = datetime.datetime(2010, 10, 29, tzinfo=datetime.timezone.utc)
        for _ in range(count):
            at = start + datetime.timedelta(seconds=self.random.randrange(4 * 86400))
            host, target = self.host(), self.target()
            yield f'{host} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {target} HTTP/1.1" 200 5 "-" "x"', host, at, target


class FieldsCase(Case):
    def counted(self, report, dimensions, store="tallyd.db"):
        """What the store has of a report: {values: hits}."""
        self.write("query.yaml", b"query: {series_max: 100000}\n")
        rows = self.query(report, "-c", "query.yaml", "--measure", "hits", "--top", "100000", span=SPAN, store=store)
        return {tuple(row[name] for name in dimensions): int(row["value"]) for row in rows}


class Fields(FieldsCase):
    CONFIG = """
derive: {timezone: Europe/Berlin}
sources: {web: {path: a.log}}
reports:
  nets: {by: [host_net, "query:b"]}
  times: {by: [day_of_week, hour_of_day]}
  campaigns: {by: ["query:utm_source"], where: ["hour_of_day>=8", "host_net!=-", "query:utm_source!=a"]}
"""

    def import_lines(self, lines):
        self.write("tallyd.yaml", self.CONFIG.encode())
        self.write("a.log", "".join(line + "\n" for line in lines).encode())
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")

    def test_fields_are_as_python_makes_them(self):
        nets, times, campaigns = (collections.Counter() for _ in range(3))
        lines = list(Lines(20).make(LINES))
        for _, host, at, target in lines:
            local = at.astimezone(zoneinfo.ZoneInfo("Europe/Berlin"))
            source = parameter(target, "utm_source")
            nets[network(host), parameter(target, "b")] += 1
            times[f"{local:%A}".lower(), f"{local:%H}"] += 1
            campaigns[source,] += local.hour >= 8 and network(host) != "-" and source != "a"
        self.import_lines(line for line, *_ in lines)
        self.assertEqual(nets, self.counted("nets", ["host_net", "query:b"]))
        self.assertEqual(times, self.counted("times", ["day_of_week", "hour_of_day"]))
        self.assertEqual(+campaigns, self.counted("campaigns", ["query:utm_source"]))

    def test_another_zone_is_another_generation(self):
        self.import_lines(line for line, *_ in Lines(21).make(10))
        self.write("other.yaml", self.CONFIG.replace("Berlin", "Paris").encode())
        self.write("b.log", b"".join(line.encode() + b"\n" for line, *_ in Lines(22).make(10)))
        self.tallyd("import", "-c", "other.yaml", "b.log", status=EX_CONFIG)
        self.assertIn("given hour_of_day Europe/Paris", self.err)
        self.write("other.yaml", self.CONFIG.replace("Berlin", "Nowhere").encode())
        self.tallyd("check", "-c", "other.yaml", status=EX_CONFIG)
        self.assertIn("derive.timezone", self.err)

    def test_settings_of_a_distinct_count_are_another_generation(self):
        """Also of one field; the definition of a count of a plain field has no settings."""
        line = next(Lines(25).make(1))[0].encode() + b"\n"
        rules = "{routes: [{match: /a, replace: /b}], timezone: Europe/Paris, anonymise: true}"
        for field, given in (("route", 'given route "/a" "/b"'), ("hour_of_day", "given hour_of_day Europe/Paris"), ("host", "given host anonymise"),
                             ("path", None)):
            with self.subTest(field):
                reports = f"store: {{url: 'sqlite:{field}.db'}}\nreports: {{some: {{measures: {{some: distinct({field})}}}}}}\n"
                for number, (settings, status) in enumerate([("{}", EX_OK), (rules, EX_CONFIG if given else EX_OK)]):
                    self.write("tallyd.yaml", f"derive: {settings}\n{reports}".encode())
                    self.write(f"{field}{number}.log", line)
                    self.tallyd("import", "-c", "tallyd.yaml", "--source-id", f"{number}", f"{field}{number}.log", status=status)
                    self.assertEqual(given is not None and number == 1, bool(given) and given in self.err, self.err)

    def test_routes_are_as_python_makes_them(self):
        rules = [("^/shop/([a-z]+)/.*", r"/shop/\1/*"), (r"[0-9]+\.(html|php)$", r"N.\1"), ("/old", "")]
        listed = ", ".join("{match: '%s', replace: '%s'}" % (match, replace.replace("\\", "$")) for match, replace in rules)
        config = f"derive: {{routes: [{listed}]}}\nreports: {{routes: {{by: [route]}}}}\n"
        pick, lines, routes = random.Random(23), list(Lines(23).make(LINES)), collections.Counter()
        parts = ["shop", "abc", "7", "0123", "12.html", "1.php", "old", "DEADBEEF", "dead00Ff", "dead00f", "", "x7",
                 "01234567-89ab-CDEF-0123-456789abcdef", "01234567-89ab-CDEF-0123-456789abcdeg"]
        for i, (line, _, _, target) in enumerate(lines):
            path = "/" + "/".join(pick.choices(parts, k=pick.randrange(1, 4)))
            lines[i] = line.replace(f"GET {target} ", f"GET {path}?x=1 ")
            routes[route(path, rules),] += 1
        self.write("tallyd.yaml", config.encode())
        self.write("a.log", "".join(line + "\n" for line in lines).encode())
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.assertEqual(routes, self.counted("routes", ["route"]))
        self.write("other.yaml", config.replace("old", "older").encode())
        self.tallyd("import", "-c", "other.yaml", "a.log", status=EX_CONFIG)
        self.assertIn('given route "/older" ""', self.err)
        self.assertEqual(config.count("match"), self.tallyd("check", "-c", "tallyd.yaml", "--print").count("match"))

    def test_rules_that_cannot_be_are_refused_where_they_stand(self):
        for rule, wanted in [("{match: '('}", "tallyd.yaml:1:19: derive.routes.0: found no replace"),
                             ("{match: '(', replace: a}", "tallyd.yaml:1:19: derive.routes.0: found no regular expression"),
                             ("{match: a, replace: b, x: c}", "tallyd.yaml:1:42: derive.routes.0.x: found an unknown key"),
                             ("a", "tallyd.yaml:1:19: derive.routes.0: found")]:
            self.write("tallyd.yaml", f"derive: {{routes: [{rule}]}}\n".encode())
            self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
            self.assertIn(wanted, self.err)

    def test_no_address_is_left_where_one_must_not_be(self):
        key = "0123456789abcdef"
        self.write("tallyd.yaml", f"""
derive: {{anonymise: true, key: {key}}}
rejects: {{file: dead.log}}
reports:
  hosts: {{by: [host]}}
  ids: {{by: [host_id]}}
  texts: {{by: [request, path, referrer, agent, "query:ip"]}}
""".encode())
        whole, hosts, ids, log = set(), collections.Counter(), collections.Counter(), []
        for line, host, at, _ in Lines(24).make(LINES):
            bare = host.removeprefix("::ffff:").removesuffix(":80")
            line = line.replace("GET /", f"GET /of/{bare}/?ip={bare}&a=", 1)
            line = line.replace('"-" "x"', f'"http://{f"[{bare}]" if ":" in bare else bare}:80/" "x {bare}, {bare}"')
            log.append(line)
            log.append(f"{host} is no line, {bare}!")
            if bare != "client.example" and not bare.endswith((".0", "::")):
                whole.add(bare)
            hosts[network(host),] += 1
            ids[hmac.new(key.encode(), f"{at:%Y-%m-%d} {host}".encode(), hashlib.sha256).hexdigest()[:16],] += 1
        self.write("a.log", "".join(line + "\n" for line in log).encode())
        said = self.tallyd("import", "-c", "tallyd.yaml", "--rejects", "rejects.log", "a.log") + self.err
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        self.assertEqual(hosts, self.counted("hosts", ["host"]))
        self.assertEqual(ids, self.counted("ids", ["host_id"]))
        said += self.tallyd("query", "texts", "-c", "query.yaml", "--top", "100000", "--from", SPAN[0], "--to", SPAN[1], "--format", "csv-raw")
        for name in ("rejects.log", "tallyd.db"):
            said += self.read(name).decode(errors="replace")
        self.assertGreater(len(whole), 100)
        found = re.findall(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-f]{4}:[0-9a-f:]+", said)
        self.assertEqual(set(), whole & set(found))
        self.assertEqual(LINES, self.read("rejects.log").count(b"is no line"))

    def test_a_file_of_another_kind_is_refused_without_its_addresses(self):
        self.write("tallyd.yaml", b"derive: {anonymise: true}\n")
        self.write("other.log", b"a line of 192.0.2.17 and 2001:db8:1:2::3\n" * 3)
        self.tallyd("import", "-c", "tallyd.yaml", "other.log", status=EX_DATAERR)
        self.assertIn("a line of 192.0.2.0 and 2001:db8:1::", self.err)

    def test_an_id_needs_a_key(self):
        self.write("tallyd.yaml", b"reports: {ids: {by: [host_id]}}\n")
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
        self.assertIn("set derive.key", self.err)

    def test_another_key_is_another_generation(self):
        """A report that an earlier version made, without the fingerprint of its key, takes it over."""
        lines = [line for line, *_ in Lines(4).make(3)]

        def count(key, generation=1, **options):
            self.write("tallyd.yaml", f"derive: {{key: {key}}}\nreports: {{ids: {{by: [host_id], generation: {generation}}}, all: {{}}}}\n".encode())
            self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log", **options)

        def definition(change="UPDATE report SET generation = generation"):
            with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base:
                base.execute(change)
                base.commit()
                base.execute("VACUUM")  # has the checksums made anew
                return dict(base.execute("SELECT name, definition FROM report WHERE generation = 1"))["ids"]

        one, two = "0123456789abcdef", "fedcba9876543210"
        fingerprint = hmac.new(one.encode(), b"fingerprint of derive.key", hashlib.sha256).hexdigest()[:16]
        self.write("a.log", (lines[0] + "\n").encode())
        count(one)
        line = f"given host_id key {fingerprint}\n"
        self.assertTrue(definition().endswith(line))
        self.append("a.log", (lines[1] + "\n").encode())
        count(two, status=EX_CONFIG)
        self.assertIn(f"host_id key {fingerprint}", self.err)
        self.assertIn("generation: 2", self.err)
        self.assertNotIn(line, definition("UPDATE report SET definition = replace(definition, '" + line + "', '')"))
        count(one)
        self.assertTrue(definition().endswith(line))
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        self.append("a.log", (lines[2] + "\n").encode())
        count(two, status=EX_CONFIG)
        count(two, generation=2)

    def test_a_report_may_use_them_in_any_place(self):
        line = next(Lines(1).make(1))[0].replace("GET /p", "GET /?b=1.5&c=/p")
        self.write("tallyd.yaml", b"reports: {sums: {where: ['query:b>1'], measures: {all: sum(query:b), hour: max(hour_of_day)}}}\n")
        said = self.tallyd("explain", "-c", "tallyd.yaml", line)
        self.assertRegex(said, r"query:b +1.5 +made of target")
        self.assertRegex(said, r"hour_of_day +\d\d +made of time")
        self.assertRegex(said, r"report sums counts it: all 1.5, hour \d+")


class Agents(FieldsCase):
    """uap-core's own expectations of what its list finds: some 16,000 agents."""

    CASES = re.compile(r"- user_agent_string: (['\"])(.*)\1 *\n +family: (['\"])(.*)\3 *\n")

    def expectations(self, name):
        """[(agent, family)] of a file that Debian's package has."""
        with open(f"/usr/share/uap-core/tests/{name}.yaml", encoding="utf-8") as file:
            found = self.CASES.findall(file.read())
        return [(agent.replace("''", "'"), family.replace("''", "'")) for quote, agent, _, family in found
                if len(agent) <= 1000 and (quote == "'" or "\\" not in agent)]

    def made(self, field, agents):
        """What is made of each agent."""
        self.write("tallyd.yaml", f"sources: {{web: {{decode: [json]}}}}\nreports: {{made: {{by: [n, {field}]}}}}\n".encode())
        self.write(f"{field}.log", "".join(json.dumps({"time": "2010-10-30T00:00:00Z", "n": f"n{n}", "agent": agent}) + "\n"
                                           for n, agent in enumerate(agents)).encode())
        store = f"sqlite:{field}.db"
        self.tallyd("import", "-c", "tallyd.yaml", "--store", store, f"{field}.log")
        rows = self.counted("made", ["n", field], store=f"{field}.db")
        self.assertEqual(len(agents), len(rows))
        return {int(n[1:]): value for n, value in rows}

    def check_field(self, name, field, wanted, at_least):
        cases = self.expectations(name)
        self.assertGreater(len(cases), at_least)
        made = self.made(field, [agent for agent, _ in cases])
        wrong = [(agent, wanted(family), made[n]) for n, (agent, family) in enumerate(cases) if made[n] != wanted(family)]
        self.assertEqual([], wrong[:5], f"{len(wrong)} of {len(cases)}")

    def test_families_are_those_that_uap_core_expects(self):
        self.check_field("test_ua", "agent_family", lambda family: family, 1000)

    def test_systems_are_those_that_uap_core_expects(self):
        self.check_field("test_os", "agent_os", lambda family: family, 300)

    def test_bots_are_those_that_uap_core_expects(self):
        self.check_field("test_device", "bot", lambda family: "yes" if family == "Spider" else "no", 10000)

    def test_a_list_that_is_not_there_is_told(self):
        self.write("tallyd.yaml", b"derive: {agents: no.yaml}\nreports: {bots: {by: [bot]}}\n")
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_NOINPUT)
        self.assertIn("derive.agents: cannot read no.yaml: No such file or directory: install the package uap-core", self.err)
        for text, wanted in [(b"os_parsers: [{regex: a}]", "found no user_agent_parsers"),
                             (b"user_agent_parsers: [{regex: 'a('}]", "line 1: found no regular expression"),
                             (b"user_agent_parsers: [{name: a}]", "line 1: found no expression"),
                             (b"a: [", "no.yaml: line")]:
            self.write("no.yaml", text)
            self.tallyd("check", "-c", "tallyd.yaml", status=EX_DATAERR)
            self.assertIn(wanted, self.err)

    def test_a_list_of_ones_own_decides(self):
        self.write("own.yaml", b"""
user_agent_parsers: [{regex: '(?:My|Our)(App)/([0-9]+)', family_replacement: '$1 $2'}, {regex: '(x+)+y|Zed'}, {regex: '(Any)'}]
os_parsers: [{regex: 'on (.*)$'}]
device_parsers: [{regex: 'ROBOT', regex_flag: i, device_replacement: Spider}]
""")
        self.write("tallyd.yaml", b"derive: {agents: own.yaml}\nreports: {all: {by: [agent_family, agent_os, bot]}}\n")
        for agent, wanted in [("OurApp/12 on my robot ", ["App 12", "my robot", "yes"]), ("Any", ["Any", "Other", "no"]),
                              ("x" * 40 + " Any", ["(match limit)", "Other", "no"])]:
            line = f'h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 5 "-" "{agent}"'
            found = json.loads(self.tallyd("explain", "--json", "-c", "tallyd.yaml", line))
            self.assertEqual(wanted, list(found["reports"][0]["series"].values()))


def mmdb_value(value):
    """A value as MaxMind's format specification 2.0 has it."""
    if isinstance(value, str):
        text = value.encode()
        return (bytes([2 << 5 | len(text)]) if len(text) < 29 else bytes([2 << 5 | 29, len(text) - 29])) + text
    if isinstance(value, dict):
        return bytes([7 << 5 | len(value)]) + b"".join(mmdb_value(key) + mmdb_value(value[key]) for key in value)
    if isinstance(value, list):
        return bytes([len(value), 11 - 7]) + b"".join(map(mmdb_value, value))
    kind, size = value  # a number and its type: 5 is 16 bits wide, 6 is 32, 9 is 64
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return (bytes([kind << 5 | len(digits)]) if kind < 8 else bytes([len(digits), kind - 7])) + digits


def mmdb(kind, built, networks):
    """A database of {network: record}, none of which lies in another. Networks of IPv4 lie in ::/96."""
    nodes, data, offsets = [[None, None]], b"", {}
    for network, record in networks.items():
        net = ipaddress.ip_network(network)
        bits, length = int(net.network_address), net.prefixlen + (96 if net.version == 4 else 0)
        offsets[network] = len(data)
        data += mmdb_value(record)
        node = 0
        for depth in range(length):
            side = bits >> (127 - depth) & 1
            if depth == length - 1:
                nodes[node][side] = ("data", offsets[network])
            elif nodes[node][side] is None:
                nodes.append([None, None])
                nodes[node][side] = ("node", len(nodes) - 1)
            node = nodes[node][side][1]
    count = len(nodes)
    numbers = {"node": 0, "data": count + 16}
    tree = b"".join((count if side is None else side[1] + numbers[side[0]]).to_bytes(3, "big") for node in nodes for side in node)
    metadata = {"node_count": (6, count), "record_size": (5, 24), "ip_version": (5, 6), "database_type": kind, "languages": ["en"],
                "binary_format_major_version": (5, 2), "binary_format_minor_version": (5, 0), "build_epoch": (9, built),
                "description": {"en": "a test"}}
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + mmdb_value(metadata)


AGENTS = "user_agent_parsers: [{regex: '.', family_replacement: %s}]\nos_parsers: [{regex: o}]\ndevice_parsers: [{regex: d}]\n"


class Reload(DaemonCase):
    """A daemon that is told to reload reads lists and databases anew: the lines behind are counted by the new ones, none by half."""

    def write_data(self, built, country, family, agents=AGENTS):
        for name, data in ("city.mmdb", mmdb("Test-Country", built, {"10.0.0.0/8": {"country": {"iso_code": country}}})), \
                          ("own.yaml", (agents % family).encode()):
            self.write("new", data)
            os.rename(self.path("new"), self.path(name))

    def count(self, lines):
        self.lines += lines
        self.append("a.log", b'10.0.0.1 - - [29/Oct/2010:13:55:36 +0000] "GET / HTTP/1.0" 200 5 "-" "x"\n' * lines)
        self.wait_for_consumed(self.lines)

    def test_lists_and_databases_are_read_anew(self):
        self.lines = 0
        self.write("tallyd.yaml", b"sources: {a: {path: a.log, decode: combined}}\naggregate: {flush: 100ms}\n"
                                  b"derive: {geo: city.mmdb, agents: own.yaml}\nreports: {all: {by: [country, agent_family]}}\n")
        self.write("a.log", b"")
        self.write_data(1300000000, "DE", "One")
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        self.count(10)
        self.write_data(1400000000, "FR", "Two")
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log(r"event=database is=.*Test-Country of 2014-05-13T16:53:20Z")
        self.count(20)
        self.write_data(1500000000, "JP", "Three", agents="%s: [")
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log(r"event=database_failed error=.*derive.agents: own.yaml")
        self.count(40)
        self.write_data(1500000000, "JP", "Three")
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log(r"event=database is=.*Test-Country of 2017-07-14")
        self.count(80)
        self.stop()
        rows = self.query("all", "--top", "10", span=("2010-10-29", "2010-10-30"))
        self.assertEqual({("DE", "One"): 10, ("FR", "Two"): 60, ("JP", "Three"): 80},
                         {(row["country"], row["agent_family"]): int(row["value"]) for row in rows})


class Places(FieldsCase):
    CITIES = {"10.0.0.0/24": ("DE", "München"), "10.0.1.0/25": ("FR", None), "10.1.0.0/16": (None, "Nowhere"), "2001:db8:1::/48": ("JP", "Kyoto")}
    NUMBERS = {"10.0.0.0/16": 64496, "2001:db8::/33": 4294967295}
    CONFIG = b"derive: {geo: city.mmdb, asn: asn.mmdb}\nreports: {places: {by: [country, city, asn]}}\n"

    def write_databases(self, built=1300000000):
        cities = {net: {"country": {"iso_code": code} if code else {}, "city": {"names": {"de": "x", "en": city}} if city else {}}
                  for net, (code, city) in self.CITIES.items()}
        self.write("city.mmdb", mmdb("Test-City", built, cities))
        self.write("asn.mmdb", mmdb("Test-ASN", built, {net: {"autonomous_system_number": (6, n)} for net, n in self.NUMBERS.items()}))
        self.write("tallyd.yaml", self.CONFIG)

    def place(self, host):
        """country, city and asn of a host."""
        try:
            address = ipaddress.ip_address(host)
            address = getattr(address, "ipv4_mapped", None) or address
        except ValueError:
            return "-", "-", "-"
        found = [next((value for net, value in nets.items() if address in ipaddress.ip_network(net)), None)
                 for nets in (self.CITIES, self.NUMBERS)]
        code, city = found[0] or (None, None)
        return code or "-", city or "-", f"AS{found[1]}" if found[1] else "-"

    def test_places_are_those_of_the_databases(self):
        self.write_databases()
        lines = list(Lines(25).make(LINES))
        self.write("a.log", "".join(line + "\n" for line, *_ in lines).encode())
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        wanted = collections.Counter(self.place(host) for _, host, _, _ in lines)
        self.assertGreater(len(wanted), 6)
        self.assertEqual(wanted, self.counted("places", ["country", "city", "asn"]))

    def test_a_recount_by_another_build_is_told(self):
        self.write_databases()
        self.write("a.log", "".join(line + "\n" for line, *_ in Lines(26).make(LINES)).encode())
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.assertNotIn("recounted by", self.tallyd("verify", "-c", "tallyd.yaml", "a.log"))
        self.CITIES = {"10.0.0.0/8": ("DE", "Berlin")}
        self.write_databases(1400000000)
        said = self.tallyd("verify", "-c", "tallyd.yaml", "a.log", status=1)
        self.assertIn("recounted by derive.geo: Test-City of 2014-05-13T16:53:20Z (city.mmdb)\n", said)
        self.assertIn("if another build counted", said)

    def test_databases_are_named_and_told_where_they_are_wrong(self):
        self.write_databases()
        said = self.tallyd("check", "-c", "tallyd.yaml")
        self.assertIn("derive.geo: Test-City of 2011-03-13T07:06:40Z (city.mmdb)\nderive.asn: Test-ASN of 2011", said)
        for key, path, status, wanted in [("geo", "asn.mmdb", EX_CONFIG, "derive.geo: found a database of type Test-ASN, expected one of"),
                                          ("asn", "city.mmdb", EX_CONFIG, "derive.asn: found a database of type Test-City"),
                                          ("geo", "no.mmdb", EX_NOINPUT, "derive.geo: cannot read the database no.mmdb: No such file"),
                                          ("geo", "tallyd.yaml", EX_DATAERR, "derive.geo: cannot read the database tallyd.yaml")]:
            self.write("bad.yaml", re.sub(rb"%s: [a-z.]+" % key.encode(), f"{key}: {path}".encode(), self.CONFIG))
            self.tallyd("check", "-c", "bad.yaml", status=status)
            self.assertIn(wanted, self.err)
        self.write("bad.yaml", b"reports: {a: {by: [country]}}\n")
        self.tallyd("check", "-c", "bad.yaml", status=EX_CONFIG)
        self.assertIn("set derive.geo to the path", self.err)

    def test_events_that_may_have_them_need_no_database(self):
        self.write("tallyd.yaml", b"sources: {web: {decode: [json]}}\nreports: {a: {by: [country]}}\n")
        found = json.loads(self.tallyd("explain", "--json", "-c", "tallyd.yaml", '{"time":"2010-10-30T00:00:00Z","country":"XX"}'))
        self.assertEqual({"country": "XX"}, found["reports"][0]["series"])


if __name__ == "__main__":
    unittest.main()
