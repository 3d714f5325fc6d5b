#!/usr/bin/env python3
"""A MongoDB URI with users and TLS is heeded: FerretDB with users (SCRAM), and a certificate made here."""

import os
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from harness import dice  # noqa: E402
from mongocase import EX_UNAVAILABLE, MongoCase, log, main, pymongo  # noqa: E402

from process import free_ports  # noqa: E402

EX_NOPERM, EX_CONFIG = 77, 78
USER, PASSWORD = "tally", "pa/ss@w:rd%"  # which a URI must have encoded
OPENSSL_S = 60


def quote(text):
    return urllib.parse.quote(text, safe="")


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=OPENSSL_S, check=True)


def make_certificates(directory):
    """ca.pem, another.pem; server.pem and server.key, signed by the first for 127.0.0.1."""
    def path(name):
        return os.path.join(directory, name)

    for name in "ca", "another":
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"),
                "-subj", f"/CN={name}")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", path("server.key"), "-out", path("server.csr"), "-subj",
            "/CN=server")
    with open(path("extensions"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
            "-extfile", path("extensions"), "-out", path("server.pem"))


class Secure(MongoCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.certificates = cls.server.home
        make_certificates(cls.certificates)
        with pymongo.MongoClient(cls.server.url) as client:
            roles = [{"role": name, "db": "admin"} for name in ("readWriteAnyDatabase", "clusterAdmin")]
            client.admin.command("createUser", USER, pwd=PASSWORD, roles=roles)
        cls.server.stop()
        cls.tls_port = free_ports(1)[0]
        cls.serve()

    @classmethod
    def serve(cls):
        cls.server.start(f"--listen-tls=127.0.0.1:{cls.tls_port}", f"--listen-tls-cert-file={cls.certificate('server.pem')}",
                         f"--listen-tls-key-file={cls.certificate('server.key')}")

    @classmethod
    def certificate(cls, name):
        return os.path.join(cls.certificates, name)

    def setUp(self):
        super().setUp()
        self.client.close()
        self.client = pymongo.MongoClient(self.server.url, username=USER, password=PASSWORD)
        self.addCleanup(self.client.close)
        self.base = self.client[self.name]
        self.log = log(dice(), 50)
        self.write("a.log", self.log)

    def url(self, user=USER, password=PASSWORD, host="127.0.0.1", port=None, **options):
        of = f"{quote(user)}:{quote(password)}@" if user else ""
        said = "&".join(f"{name}={quote(value)}" for name, value in options.items())
        return f"mongodb://{of}{host}:{port or self.server.port}/{self.name}?{said}"

    def tls(self, **options):
        return self.url(port=self.tls_port, tls="true", **options)

    def counts(self, url):
        self.count("a.log", url=url)
        self.check(self.log)

    def refuses(self, url, status, text):
        """… to count, says why, and no password."""
        said = self.end(self.begin("a.log", url=url), status)
        self.assertRegex(said, text)
        self.assertNotIn(PASSWORD, said)
        self.assertNotIn(quote(PASSWORD), said)
        self.assertEqual([], self.base.list_collection_names())

    def test_right_password(self):
        self.counts(self.url())

    def test_right_password_with_its_mechanism(self):
        self.counts(self.url(authSource="admin", authMechanism="SCRAM-SHA-256"))

    def test_wrong_user_or_password(self):
        for url in self.url(password="wrong"), self.url(user="nobody"), self.url(user=None):
            with self.subTest(url=url):
                self.refuses(url, EX_NOPERM, "check user, password and rights in store.url")

    def test_right_authority(self):
        self.counts(self.tls(tlsCAFile=self.certificate("ca.pem")))

    def test_wrong_authority(self):
        for options in {"tlsCAFile": self.certificate("another.pem")}, {}:
            with self.subTest(options=options):
                self.refuses(self.tls(**options), EX_UNAVAILABLE, "certificate verify failed.*check tlsCAFile in store.url")

    def test_authority_without_a_file(self):
        self.refuses(self.tls(tlsCAFile=self.path("none.pem")), EX_CONFIG, "cannot read tlsCAFile .*none.pem: No such file")

    def test_certificate_of_another_host(self):
        self.refuses(self.tls(host="localhost", tlsCAFile=self.certificate("ca.pem")), EX_UNAVAILABLE,
                     "hostname mismatch.*check tlsCAFile in store.url, and the server's certificate")

    def test_server_killed_and_its_users_stay(self):
        self.counts(self.url())
        self.server.kill()
        self.serve()
        self.write("a.log", self.log + self.log)
        self.count("a.log", url=self.url())
        self.check(self.log, self.log)


if __name__ == "__main__":
    main(name="ferretdb")
