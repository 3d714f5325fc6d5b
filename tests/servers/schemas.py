"""A schema registry for tests, which speaks the part of Confluent's API that readers use, and fastavro, by which messages are
written. It can be away, slow, refuse, and not know a schema yet.
"""

import base64
import contextlib
import http.server
import json
import os
import shutil
import ssl
import struct
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from process import CACHE, Missing, Program, making, run

FASTAVRO_VERSION = "1.13.1"
HOME = os.path.join(CACHE, f"fastavro-{FASTAVRO_VERSION}-{sys.version_info[0]}.{sys.version_info[1]}")
CONFLUENT_VERSION, GRPC_VERSION = "2.16.1", "1.85.1"
CONFLUENT_HOME = os.path.join(CACHE, f"confluent-kafka-{CONFLUENT_VERSION}-{sys.version_info[0]}.{sys.version_info[1]}")
INSTALL_S = 200
APICURIO_VERSION = "2.6.13.Final"
APICURIO_HOME = os.path.join(CACHE, f"apicurio-{APICURIO_VERSION}")
APICURIO_INSTALL_S = 600
GET = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def install():
    """Get fastavro if it is missing; `import fastavro` finds it then."""
    with making(HOME) as part:
        if part is not None:
            if not shutil.which("python3"):
                raise Missing("python3 is not installed")
            run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", part,
                 f"fastavro=={FASTAVRO_VERSION}"], "getting fastavro by pip", INSTALL_S)
            os.rename(part, HOME)
    if HOME not in sys.path:
        sys.path.append(HOME)


def install_confluent():
    """Get Confluent's serialisers and a compiler of .proto files, if they are missing."""
    with making(CONFLUENT_HOME) as part:
        if part is not None:
            run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", part,
                 f"confluent-kafka[schemaregistry,protobuf]=={CONFLUENT_VERSION}", f"grpcio-tools=={GRPC_VERSION}"],
                "getting Confluent's serialisers by pip", INSTALL_S)
            os.rename(part, CONFLUENT_HOME)
    if CONFLUENT_HOME not in sys.path:
        sys.path.append(CONFLUENT_HOME)


def compile_proto(folder, *names):
    """Make Python modules of .proto files, in their folder."""
    run([sys.executable, "-m", "grpc_tools.protoc", "-I", folder, f"--python_out={folder}", *names], "compiling .proto files", INSTALL_S,
        PYTHONPATH=CONFLUENT_HOME)
    sys.path.insert(0, folder)


def framed(schema_id, datum):
    """A message as Confluent's serialisers write it."""
    return struct.pack(">bI", 0, schema_id) + datum


class Registry:
    """Answers at `url` from `schemas` {id: answer} and `subjects` {(name, version): answer} while it is not away."""

    def __init__(self, certificate=None):
        self.schemas, self.subjects, self.asked = {}, {}, []
        self.user = self.password = self.token = None
        self.status, self.delay_s = None, 0
        self.certificate, self.server, self.port = certificate, None, 0
        self.lock = threading.Lock()
        self.come()

    @property
    def url(self):
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}"

    def add(self, schema_id, schema, kind=None, references=()):
        answer = {"schema": schema if isinstance(schema, str) else json.dumps(schema)}
        if kind:
            answer["schemaType"] = kind
        if references:
            answer["references"] = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
        self.schemas[schema_id] = answer

    def add_subject(self, name, version, schema, references=()):
        self.add(None, schema, references=references)
        self.subjects[name, version] = {"subject": name, "version": version, **self.schemas.pop(None)}

    # ---- away and back

    def come(self):
        """Listen, on the same port as before."""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def go(self):
        """Refuse connections."""
        self.server.shutdown()
        self.server.server_close()
        self.server = None

    def close(self):
        if self.server:
            self.go()

    # ---- answers

    def is_allowed(self, given):
        if self.token:
            return given == f"Bearer {self.token}"
        if self.user:
            return given == "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return True

    def answer(self, path, given):
        """(status, value)"""
        self.asked.append(path)
        parts = [urllib.parse.unquote(part) for part in path.split("?")[0].strip("/").split("/")]
        if self.delay_s:
            time.sleep(self.delay_s)
        if not self.is_allowed(given):
            return 401, {"error_code": 40101, "message": "who are you?"}
        if self.status:
            return self.status, {"error_code": 50001, "message": "in trouble"}
        if parts == ["schemas", "types"]:
            return 200, ["AVRO", "JSON", "PROTOBUF"]
        if parts[:2] == ["schemas", "ids"] and len(parts) == 3 and int(parts[2]) in self.schemas:
            return 200, self.schemas[int(parts[2])]
        if parts[:1] == ["subjects"] and len(parts) == 4 and (parts[1], int(parts[3])) in self.subjects:
            return 200, self.subjects[parts[1], int(parts[3])]
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _handler(registry):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, value = registry.answer(self.path, self.headers.get("Authorization"))
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # who asked did not wait
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler


class Apicurio(Program):
    """Apicurio Registry, which keeps its schemas in memory, by the API of Confluent's. Ready 15 s after its start."""

    NAME, STATE = "registry", "registry.json"

    @staticmethod
    def install():
        """Get it if it is missing; of several processes that want to, one does."""
        for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
            if not shutil.which(program):
                raise Missing(f"{program} is not installed (Debian package {package})")
        with making(APICURIO_HOME) as part:
            if part is None:
                return
            run(["mvn", "--batch-mode", "--quiet", GET, f"-DoutputDirectory={part}",
                 f"-Dartifact=io.apicurio:apicurio-registry-app:{APICURIO_VERSION}:tar.gz:all"],
                f"getting Apicurio Registry {APICURIO_VERSION} by Maven", APICURIO_INSTALL_S)
            archive = os.path.join(part, f"apicurio-registry-app-{APICURIO_VERSION}-all.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(part)
            os.remove(archive)
            os.rename(part, APICURIO_HOME)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self):
        return self.launch(["java", "-Xmx256m", "-XX:+UseSerialGC", "-Dquarkus.http.host=127.0.0.1",
                            f"-Dquarkus.http.port={self.port}", "-jar",
                            os.path.join(APICURIO_HOME, f"apicurio-registry-app-{APICURIO_VERSION}-runner.jar")])

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/schemas/types", timeout=5) as reply:
                return reply.status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def register(self, subject, schema, kind="AVRO", references=()):
        """The id that the schema gets."""
        body = {"schema": schema if isinstance(schema, str) else json.dumps(schema), "schemaType": kind,
                "references": [{"name": name, "subject": of, "version": version} for name, of, version in references]}
        request = urllib.request.Request(f"{self.url}/subjects/{subject}/versions", json.dumps(body).encode(),
                                         {"Content-Type": "application/vnd.schemaregistry.v1+json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)["id"]
