"""FerretDB 2 on PostgreSQL with DocumentDB: a MongoDB server of other authors on another engine.

Two processes, started, killed and stopped together. Its differences from MongoDB: it says that it is standalone;
no transactions, no retryable writes (a repeated txnNumber is applied twice), no capped collections, no sharding, no failCommand;
an _id has 2.7 kB at most. It checks the password of users, and none of their rights.
"""

import os

import postgres
from process import CACHE, free_ports, go_install
from wire import MongoServer

VERSION = "2.7.0"
HOME = os.path.join(CACHE, f"ferretdb-{VERSION}")
INSTALL_S = 900


class FerretDB(MongoServer):
    NAME = "FerretDB server"

    def __init__(self, home):
        self.postgres = postgres.Postgres(os.path.join(home, "postgres"))
        super().__init__(home)

    @staticmethod
    def install():
        postgres.install()
        go_install(HOME, f"github.com/FerretDB/FerretDB/v2/cmd/ferretdb@v{VERSION}", "FerretDB", INSTALL_S)

    def prepare(self):
        return next(port for port in free_ports(2) if port != self.postgres.port)

    def start(self, *options):
        """Begin or begin again, and wait until it answers. With options it knows users, and serves them alone."""
        self.postgres.start()
        return self.launch([os.path.join(HOME, "ferretdb"), f"--listen-addr=127.0.0.1:{self.port}",
                            f"--postgresql-url={self.postgres.url}", "--telemetry=disable", f"--state-dir={self.home}",
                            "--debug-addr=-", "--log-level=ERROR", *(options or ["--no-auth"])])

    def kill(self):
        super().kill()
        self.postgres.kill()

    def stop(self):
        super().stop()
        self.postgres.stop()
