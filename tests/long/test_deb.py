#!/usr/bin/env python3
"""The Debian package, in a machine with a real systemd: installed without an edit, upgraded while lines come, removed, and purged.

The machine is this computer's own Debian in a container (tests/servers/machine.py), so this needs root. The judge counts the lines it wrote.
The upgrade is from the package of the commit before, or of the commit that TALLYD_BEFORE names.
"""

import csv
import functools
import glob
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "servers"))
from harness import ROOT, TIMEOUT_S  # noqa: E402 (found only now)
from machine import Machine, missing  # noqa: E402

FIRST_CHART_S = 10  # from the command to install until the page's chart has every line
QUIET_S = 5
NEWER = "+next"  # added to the version of the package that upgrades
PAUSE_S = 0.01
LINES_AT_ONCE = 20
REQUESTS = 20
APACHE, NGINX, TWO = "/var/log/apache2/access.log", "/var/log/nginx/access.log", "/var/log/two.log"
INSTANCE = """\
store: {url: "sqlite:/var/lib/tallyd-two/tallyd.db"}
http: {listen: "127.0.0.1:8081"}
sources: {two: {path: %s}}
""" % TWO
BEFORE = os.environ.get("TALLYD_BEFORE") or "HEAD^"
# A store of the format before the present one; it has counted the first 300 lines of its log.
GOLDEN, GOLDEN_FORMAT, GOLDEN_LINES = os.path.join(ROOT, "tests/golden/stores"), 4, 400
OLD_LOG, OLD_STORE = "/var/log/old.log", "/var/lib/private/tallyd-old/tallyd.db"
OLD_INSTANCE = """\
store: {url: "sqlite:/var/lib/tallyd-old/tallyd.db"}
http: {listen: "127.0.0.1:8082"}
sources: {old: {path: %s}}
reports: {site: {keep: {minute: 48h}}, pages: {by: [path], keep: {minute: 48h}}}
""" % OLD_LOG
FIND = r"find / \( -path /proc -o -path /sys -o -path /shared \) -prune -o -iname '*tallyd*' -print"


@functools.cache
def build(tree=ROOT, arch="", options=""):
    """The packages as `make deb` makes them, with DEB_BUILD_OPTIONS: (tallyd, tallyd-dbgsym, changes)."""
    done = subprocess.run(["make", "--silent", "deb", f"ARCH={arch}"], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "DEB_BUILD_OPTIONS": options}, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    folder = os.path.join(tree, f"build/deb-{arch}" if arch else "build/deb")
    found = [glob.glob(os.path.join(folder, name)) for name in ("tallyd_*.deb", "tallyd-dbgsym_*.deb", "*.changes")]
    assert [len(files) for files in found] == [1, 1, 1], found
    return [files[0] for files in found]


def build_before():
    """The package of an earlier commit; in a checkout without history the present one."""
    tree = os.path.join(ROOT, "build/before")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if archive.returncode != 0 and "TALLYD_BEFORE" not in os.environ:
        print(f"the upgrade is from the same commit, since this checkout has no history: {archive.stderr.decode().strip()}", flush=True)
        return build()[0]
    assert archive.returncode == 0, archive.stderr.decode()
    subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
    return build(tree, options="noopt")[0]  # that is built in half the time


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def make_newer(package, newer):
    """The same package with a higher version."""
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
        subprocess.run(["sed", "-i", f"s/^Version: .*/&{NEWER}/", os.path.join(tree, "DEBIAN/control")], check=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, newer], check=True, stdout=subprocess.DEVNULL)


class Log:
    """A log in the machine that grows: at once by add(), or all the time from start() to stop()."""

    def __init__(self, machine, name):
        self.path = machine.path(name)
        self.written = 0
        self.is_ending = threading.Event()
        self.thread = None
        folder = os.path.dirname(name)
        if folder != "/var/log":
            machine.run(f"install -d -o root -g adm -m 750 {folder}")
        machine.run(f"install -o root -g adm -m 640 /dev/null {name}")

    def add(self, lines):
        now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        with open(self.path, "a", encoding="ascii") as log:
            log.writelines(f'198.51.100.7 - - [{now}] "GET /{self.written + n} HTTP/1.1" 200 10\n' for n in range(lines))
        self.written += lines

    def _run(self):
        while not self.is_ending.wait(PAUSE_S):
            self.add(LINES_AT_ONCE)

    def start(self):
        self.is_ending.clear()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        self.is_ending.set()
        self.thread.join()


class Package(unittest.TestCase):
    ARCH = ""
    RUN = []  # what runs a program of this architecture

    @classmethod
    def setUpClass(cls):
        cls.package, cls.symbols, cls.changes = build(arch=cls.ARCH)

    def test_lintian_finds_nothing(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", self.changes], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stdout))

    def test_recommends_what_is_loaded_at_run_time(self):
        loaded = set()
        for path in glob.glob(os.path.join(ROOT, "**/*.c"), recursive=True):
            if not os.path.relpath(path, ROOT).startswith(("tests", "build")):
                with open(path, encoding="utf-8") as file:
                    loaded |= set(re.findall(r'\bLIBRARY\(\w+,\s*\w+,\s*"[^"]*",\s*"([^"]*)"\)', file.read()))
        self.assertIn("libmongoc-1.0-0", loaded)
        recommended = {name.split()[0] for name in field(self.package, "Recommends").split(",")}
        self.assertEqual(set(), loaded - recommended)

    def test_version_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-x", self.package, folder], check=True)
            program = os.path.join(folder, "usr/bin/tallyd")
            said = subprocess.run([*self.RUN, program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertEqual("tallyd " + field(self.package, "Version").split("-")[0], said.strip())
            subprocess.run([*self.RUN, program, "check", "-c", os.path.join(folder, "etc/tallyd.yaml")], check=True, stdout=subprocess.DEVNULL)


class Installed(unittest.TestCase):
    """The tests run in the order of their names: each goes on where the one before has ended."""

    @classmethod
    def setUpClass(cls):
        assert missing() is None, missing()
        cls.package, _, _ = build()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        subprocess.run(["cp", cls.package, os.path.join(folder.name, "tallyd.deb")], check=True)
        subprocess.run(["cp", build_before(), os.path.join(folder.name, "before.deb")], check=True)
        make_newer(cls.package, os.path.join(folder.name, "newer.deb"))
        cls.machine = Machine(shared=folder.name)
        cls.machine.__enter__()
        cls.addClassCleanup(cls.machine.__exit__)
        cls.before = set(cls.machine.run(FIND).stdout.splitlines())
        cls.logs = {}

    # ---- the machine

    def apt(self, action, package):
        """A configuration that was edited stays, as it does unless the administrator answers otherwise."""
        return self.machine.run(f"apt-get -q -y -o Dpkg::Options::=--force-confold {action} {package}").stdout

    def property(self, unit, name):
        return self.machine.run(f"systemctl show {unit} -P {name}").stdout.strip()

    def journal(self, options=""):
        return self.machine.run(f"journalctl -u tallyd -u 'tallyd@*' --no-pager -o cat {options}", check=False).stdout

    def wait_for(self, look, expected, what, seconds=TIMEOUT_S):
        end = time.monotonic() + seconds
        while (found := look()) != expected and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(expected, found, what + "\n" + self.journal("-n 40"))

    def asked(self, port=8080, span="--from -1h --step minute"):
        """The hits in the chart of the last hour, or another span, as the daemon answers."""
        done = self.machine.run(f"tallyd query http://127.0.0.1:{port} site {span} --format csv", check=False)
        if done.returncode != 0:
            return done.stdout
        return sum(int(row["value"] or 0) for row in csv.DictReader(io.StringIO(done.stdout)))

    def check(self):
        """Every line that was written is counted once, in each of the stores."""
        sums = {8080: sum(self.logs[name].written for name in (APACHE, NGINX)), 8081: self.logs[TWO].written}
        for port, written in sums.items():
            self.wait_for(lambda at=port: self.asked(at), written, f"counted at {port}")
        for configuration in ("/etc/tallyd.yaml", "/etc/tallyd/two.yaml"):
            self.machine.run(f"tallyd verify -c {configuration}")

    def left(self):
        """The files that were not there before, and what users, groups and services there are."""
        names = set(self.machine.run(FIND).stdout.splitlines()) - self.before
        others = self.machine.run("(getent passwd; getent group; systemctl list-units --all --plain --no-legend -t service) | grep -i tallyd", check=False)
        return names | set(others.stdout.splitlines())

    # ---- tests

    def test_1_waits_quietly_for_a_log(self):
        self.machine.run("rm -rf /var/log/apache2 /var/log/nginx")
        self.apt("install", "/shared/tallyd.deb")
        told = self.journal()
        self.assertIn("event=started", told)
        time.sleep(QUIET_S)
        self.assertEqual(("active", "0", "enabled"), (self.property("tallyd", "ActiveState"), self.property("tallyd", "NRestarts"),
                                                      self.property("tallyd", "UnitFileState")))
        self.assertEqual(told, self.journal())
        self.assertEqual("", self.journal("-q -p warning"))
        log = Log(self.machine, APACHE)
        log.add(10)
        self.wait_for(self.asked, log.written, "a log that came later", FIRST_CHART_S)

    def test_2_purged_it_leaves_nothing(self):
        self.apt("purge", "tallyd")
        self.wait_for(self.left, set(), "purged")

    def test_3_first_chart_of_busy_servers_without_an_edit(self):
        for name in (APACHE, NGINX):
            self.logs[name] = Log(self.machine, name)
        self.machine.run("systemctl start nginx")
        self.machine.run(f"for i in $(seq {REQUESTS}); do python3 -c 'import urllib.request as r; r.urlopen(\"http://127.0.0.1/\")'; done")
        self.logs[NGINX].written = REQUESTS
        self.logs[APACHE].start()
        begun = time.monotonic()
        self.apt("install", "/shared/tallyd.deb")
        installed_s = time.monotonic() - begun
        self.wait_for(lambda: isinstance(count := self.asked(), int) and count > REQUESTS, True, "a chart")
        chart_s = time.monotonic() - begun
        print(f"installed in {installed_s:.1f} s, first chart after {chart_s:.1f} s")
        self.logs[APACHE].stop()
        self.logs[TWO] = Log(self.machine, TWO)
        self.machine.write("/etc/tallyd/two.yaml", INSTANCE)
        self.machine.run("systemctl enable --now tallyd@two")
        self.check()
        self.assertLess(chart_s, FIRST_CHART_S)  # at last: the tests after this one need what it has made

    def test_4_upgraded_while_lines_come(self):
        self.apt("purge", "tallyd")
        self.apt("install", "/shared/before.deb")
        self.machine.run("sed -i '1s/^/# ours\\n/' /etc/tallyd.yaml")
        self.machine.run("systemctl enable --now tallyd@two")
        pids = [self.property(unit, "MainPID") for unit in ("tallyd", "tallyd@two")]
        for log in self.logs.values():
            log.start()
        self.apt("install", "/shared/newer.deb")
        for log in self.logs.values():
            log.stop()
        self.assertEqual(field(self.package, "Version") + NEWER, self.machine.run("dpkg-query -W -f '${Version}' tallyd").stdout)
        for unit, pid in zip(("tallyd", "tallyd@two"), pids):
            self.assertEqual("active", self.property(unit, "ActiveState"))
            self.assertNotEqual(pid, self.property(unit, "MainPID"), f"{unit} runs the program that was replaced")
        self.assertEqual("# ours\n", self.machine.run("head -1 /etc/tallyd.yaml").stdout)
        self.check()

    def test_4_upgraded_with_a_store_of_an_older_format(self):
        os.makedirs(os.path.dirname(self.machine.path(OLD_STORE)))
        for packed, at in (("access.log.gz", OLD_LOG), (f"sqlite-{GOLDEN_FORMAT}.gz", OLD_STORE)):
            with gzip.open(os.path.join(GOLDEN, packed)) as file, open(self.machine.path(at), "wb") as out:
                out.write(file.read())
        self.machine.write("/etc/tallyd/old.yaml", OLD_INSTANCE)
        self.machine.run("systemctl start tallyd@old")
        self.wait_for(lambda: self.asked(8082, "--from 2026-01-01 --to 2026-02-01 --step day"), GOLDEN_LINES, "of an older format")
        self.machine.run("tallyd verify -c /etc/tallyd/old.yaml")

    def test_5_removed_and_installed_again(self):
        self.apt("remove", "tallyd")
        self.assertEqual("", self.machine.run("pgrep -a tallyd", check=False).stdout)
        for log in self.logs.values():
            log.add(100)
        self.machine.run("test -s /etc/tallyd.yaml && test -s /var/lib/tallyd/tallyd.db && test -s /var/lib/tallyd-two/tallyd.db")
        self.apt("install", "/shared/newer.deb")
        self.machine.run("systemctl start tallyd@two")
        self.check()

    def test_6_purged_it_leaves_only_what_others_wrote(self):
        self.machine.write("/etc/tallyd/bad.yaml", "bad: 1\n")
        self.assertNotEqual(0, self.machine.run("systemctl start tallyd@bad", check=False).returncode)
        self.apt("purge", "tallyd")
        self.wait_for(self.left, {"/etc/tallyd"}, "purged")


if __name__ == "__main__":
    unittest.main()
