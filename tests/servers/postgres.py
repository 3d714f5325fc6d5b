"""PostgreSQL 18 with the extension DocumentDB, on which FerretDB stands: Debian packages of a later release, in a folder.

Nothing of them is installed: apt gets them with all that they need, down to the C library, whose loader runs them. So it
takes neither root nor chroot, and works on any Debian. The server refuses to be root; where root runs the tests it becomes
nobody, who may read what root may.
"""

import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from process import CACHE, STOP_S, Missing, Program, is_running, making, run

RELEASE, PACKAGE = "forky", "postgresql-18-documentdb"
HOME = os.path.join(CACHE, f"{PACKAGE}-{RELEASE}")
BIN = os.path.join("usr", "lib", "postgresql", "18", "bin")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DOWNLOAD_S, STEP_S, ANSWER_S = 600, 120, 2
NOBODY = 65534
PROTOCOL_3 = 3 << 16

# initdb runs `postgres`, which must therefore be a program, too.
WRAPPER = """\
#!/bin/sh
bin=$(dirname "$(realpath "$0")")
libs={libs}
exec "$libs/{loader}" --library-path "$libs:$libs/blas:$libs/lapack:$bin/../lib" --argv0 "$bin/{name}" "$bin/{name}.bin" "$@"
"""

# Documents are ended (TTL) by a job that would connect to the port that the database was made at.
JOBS = ("-c", "cron.use_background_workers=on")
# After SIGKILL all is written that was: syncing each file again would take 3 s.
CONFIGURATION = """\
recovery_init_sync_method = syncfs
dynamic_shared_memory_type = mmap
unix_socket_directories = ''
shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
cron.database_name = 'postgres'
cron.host = '127.0.0.1'
search_path = 'documentdb_api_catalog, documentdb_api, public'
"""


def mirror():
    """The one that apt is configured with for the Debian of this machine."""
    with open("/etc/os-release", encoding="utf-8") as file:
        codename = re.search(r'^VERSION_CODENAME="?(\w+)', file.read(), re.M)
    for name in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
        with contextlib.suppress(OSError), open(name, encoding="utf-8") as file:
            text = file.read()
            for uri, suite in re.findall(r"^deb\s+(?:\[.*?\]\s+)?(\S+)\s+(\S+)", text, re.M):
                if codename and suite == codename[1]:
                    return uri
            for paragraph in re.split(r"\n\s*\n", text):
                fields = {key.lower(): words.split() for key, words in re.findall(r"^(\w+):(.*)$", paragraph, re.M)}
                if codename and "deb" in fields.get("types", []) and codename[1] in fields.get("suites", []):
                    return fields["uris"][0]
    raise Missing(f"apt has no mirror of Debian in /etc/apt from which to get {PACKAGE}")


def get_packages(part, package=PACKAGE):
    """A package of the other release and what it needs, by apt, with lists and a status of its own, in which nothing is installed."""
    if not shutil.which("apt-get") or not os.path.exists(KEYRING):
        raise Missing(f"{package} comes from Debian: apt-get or {KEYRING} is missing (package debian-archive-keyring)")
    apt = os.path.join(part, "apt")
    for name in "lists/partial", "archives/partial":
        os.makedirs(os.path.join(apt, name))
    with open(os.path.join(apt, "status"), "w", encoding="ascii"):
        pass
    with open(os.path.join(apt, "sources.list"), "w", encoding="ascii") as file:
        file.write(f"deb [signed-by={KEYRING}] {mirror()} {RELEASE} main\n")
    command = ["apt-get", "--quiet", "--yes", "--no-install-recommends"]
    for option in (f"Dir::State={apt}", f"Dir::State::status={apt}/status", f"Dir::Cache={apt}", "Acquire::Retries=3",
                   f"Dir::Etc::SourceList={apt}/sources.list", "Dir::Etc::SourceParts=-", "Dir::Etc::Preferences=-",
                   "Dir::Etc::PreferencesParts=-", "APT::Sandbox::User=", "Debug::NoLocking=true"):
        command += ["-o", option]
    run([*command, "update"], f"reading the lists of Debian {RELEASE}", DOWNLOAD_S)
    run([*command, "--download-only", "install", package], f"getting {package} of Debian {RELEASE}", DOWNLOAD_S)
    for archive in sorted(glob.glob(f"{apt}/archives/*.deb")):
        run(["dpkg-deb", "--extract", archive, part], f"unpacking {os.path.basename(archive)}", STEP_S)
    shutil.rmtree(apt)


def make_runnable(part):
    """Do the work of the packages' scripts, and of the loader."""
    loaders = glob.glob(f"{part}/usr/lib/*/ld-linux*.so.*")
    if len(loaders) != 1:
        raise Missing(f"found {len(loaders)} loaders of the C library in {part}, expected one")
    libs, loader = os.path.split(loaders[0])
    for name in "postgres", "initdb":
        program = os.path.join(part, BIN, name)
        os.rename(program, program + ".bin")
        with open(program, "w", encoding="ascii") as file:
            file.write(WRAPPER.format(libs=f"$bin/../../../{os.path.basename(libs)}", loader=loader, name=name))
        os.chmod(program, 0o755)


def unprivileged(*argv):
    """The command line of a program that must not be root's."""
    if os.geteuid() != 0:
        return argv
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override", *argv)


def give(directory):
    """To whoever the server will be."""
    if os.geteuid() == 0:
        for path, _, files in os.walk(directory):
            for name in [".", *files]:
                os.chown(os.path.join(path, name), NOBODY, NOBODY)


def make_data(part):
    """Make the files that each server begins with: a database that has the extension."""
    extensions = os.path.join(part, "usr", "share", "postgresql", "18", "extension")
    os.symlink("postgis-3.control", os.path.join(extensions, "postgis.control"))
    data = os.path.join(part, "data")
    os.mkdir(data, 0o700)
    give(data)
    run(unprivileged(f"{part}/{BIN}/initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-locale", "-E", "UTF8"),
        "making a PostgreSQL database", STEP_S)
    with open(os.path.join(data, "postgresql.conf"), "w", encoding="ascii") as file:
        file.write(CONFIGURATION)
    said = run(unprivileged(f"{part}/{BIN}/postgres", "--single", "-D", data, "postgres"), "making DocumentDB", STEP_S,
               given="CREATE EXTENSION documentdb CASCADE\n")
    if "ERROR:" in said:
        raise Missing(f"making DocumentDB failed: {said[said.index('ERROR:'):].splitlines()[0]}")


def install():
    with making(HOME) as part:
        if part is None:
            return
        get_packages(part)
        make_runnable(part)
        make_data(part)
        os.rename(part, HOME)


class Postgres(Program):
    """One with DocumentDB, that anybody on this machine may use as postgres. With as many processes as it likes."""

    NAME = "PostgreSQL server"

    @property
    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def prepare(self):
        data = os.path.join(self.home, "data")
        shutil.copytree(os.path.join(HOME, "data"), data)
        give(data)
        return super().prepare()

    def start(self):
        return self.launch(unprivileged(os.path.join(HOME, BIN, "postgres"), "-D", os.path.join(self.home, "data"),
                                        "-h", "127.0.0.1", "-p", str(self.port), *JOBS))

    def ready(self):
        """Does it let anybody in?"""
        who = b"user\0postgres\0database\0postgres\0\0"
        try:
            with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as sock:
                sock.sendall(struct.pack(">ii", 8 + len(who), PROTOCOL_3) + who)
                return sock.recv(1) == b"R"
        except OSError:
            return False

    def children(self):
        found = []
        for stat in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError), open(stat, encoding="ascii", errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == self.pid:
                    found.append(int(stat.split("/")[2]))
        return found

    def kill(self):
        """All of its processes: the next one refuses the data while any is left."""
        if self.pid is None or not is_running(self.pid):
            return
        os.kill(self.pid, signal.SIGSTOP)  # now it makes no more of them
        children = self.children()
        super().kill()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + STOP_S
        while any(is_running(pid) for pid in children):
            if time.monotonic() > until:
                raise Missing(f"processes of the {self.NAME} were not gone {STOP_S} s after SIGKILL")
            time.sleep(0.02)
        self.forget()

    def forget(self):
        """What a killed one leaves for the next to see whether it still runs: that could take a zombie, for which nobody waits,
        for it, and of a database that is not started again memory would stay behind."""
        pid_file = os.path.join(self.home, "data", "postmaster.pid")
        with contextlib.suppress(FileNotFoundError):
            with open(pid_file, encoding="ascii") as file:
                memory = re.search(r"^ *\d+ +(\d+)$", file.read(), re.M)
            if memory:
                subprocess.run(["ipcrm", "-m", memory[1]], stderr=subprocess.DEVNULL, check=False)
            os.unlink(pid_file)

    def stop(self):
        self._end(signal.SIGINT)
