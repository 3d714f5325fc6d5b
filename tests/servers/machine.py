"""A machine with a real systemd: this computer's own Debian, booted in a container by systemd-nspawn.

Its files are overlays of this computer's: changes go to memory, and are gone in the end. It has a network of its own with only a loopback
interface. Services that this computer runs are not started in it. Needs root and the package systemd-container.

    with Machine() as machine:
        machine.run("systemctl start tallyd")
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BOOT_S = 60
RUN_S = 60
REBOOT_STATUS = 133  # of systemd-nspawn, if what it booted asked for a reboot
NEEDED = ("systemd-nspawn", "nsenter", "mount")
FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "var")
MEMORY = "/sys/fs/cgroup/memory"  # if the control groups here are those of version 1
EMPTY = ("proc", "sys", "dev", "run", "root", "home", "tmp")


class MachineError(Exception):
    pass


def missing():
    """Why no machine can be booted here; None: one can."""
    lacking = [tool for tool in NEEDED if shutil.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} is missing: apt-get install systemd-container util-linux"
    return None if os.geteuid() == 0 else "systemd-nspawn needs root"


class Machine:
    def __init__(self, shared=None):
        """`shared`: a folder of this computer that the machine sees as /shared, read-only."""
        self.dir = tempfile.mkdtemp(prefix="tallyd-machine-")
        self.root = os.path.join(self.dir, "root")
        self.shared = shared
        self.mounts = []
        self.group = self._make_memory_group()
        self.nspawn = None
        self.leader = None

    # ---- files

    def _mount(self, target, *arguments):
        os.makedirs(target, exist_ok=True)
        subprocess.run(["mount", *arguments, target], check=True)
        self.mounts.append(target)

    def _lay(self):
        self._mount(self.dir, "-t", "tmpfs", "-o", "mode=755", "tmpfs")
        os.mkdir(self.root)
        for name in FOLDERS:
            at = os.path.join(self.root, name)
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), at)
            elif os.path.isdir("/" + name):
                upper, work = (os.path.join(self.dir, kind, name) for kind in ("upper", "work"))
                os.makedirs(upper)
                os.makedirs(work)
                self._mount(at, "-t", "overlay", "-o", f"lowerdir=/{name},upperdir={upper},workdir={work}", "overlay")
        for name in EMPTY:
            os.mkdir(os.path.join(self.root, name))
        os.chmod(self.path("/tmp"), 0o1777)
        os.chmod(self.path("/root"), 0o700)
        for wants in ("multi-user", "timers"):
            shutil.rmtree(self.path(f"/etc/systemd/system/{wants}.target.wants"), ignore_errors=True)
        if os.path.lexists(self.path("/usr/sbin/policy-rc.d")):
            os.remove(self.path("/usr/sbin/policy-rc.d"))  # by it, this computer may forbid packages to start services
        with open(self.path("/etc/machine-id"), "w", encoding="ascii"):
            pass  # a new one is made

    def path(self, name):
        """The path of a file in the machine, seen from here."""
        return self.root + name

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    # ---- memory

    @staticmethod
    def _make_memory_group():
        """The control group for the machine's memory, below that of this process. None: one hierarchy is for all."""
        if not os.path.isdir(MEMORY):
            return None
        with open("/proc/self/cgroup", encoding="ascii") as file:
            own = re.search(r"^\d+:memory:(.*)$", file.read(), re.MULTILINE).group(1)
        return tempfile.mkdtemp(prefix="tallyd-machine-", dir=MEMORY + own)

    def _join_memory_group(self):
        if self.group is not None:
            with open(os.path.join(self.group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")

    def let_units_limit_memory(self):
        """Let MemoryMax= work until the next boot: systemd-nspawn mounts the controllers of version 1 read-only."""
        if self.group is not None:
            self.run(f"mount -o remount,rw,bind {MEMORY} && systemctl daemon-reexec")

    def _remove_memory_group(self):
        if self.group is not None:
            for folder, _, _ in os.walk(self.group, topdown=False):
                os.rmdir(folder)

    # ---- running

    def __enter__(self):
        try:
            self._lay()
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self):
        log = open(os.path.join(self.dir, "console"), "ab")
        bind = ["--bind-ro=" + self.shared + ":/shared"] if self.shared else []
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "-b", "-D", self.root, "--register=no", "--keep-unit", "--console=pipe",
             "--private-network", *bind, "systemd.unit=multi-user.target"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=self._join_memory_group)
        log.close()
        self._wait(self._find_leader, "it did not start")
        self._wait(self._is_up, "it did not boot")

    def _wait(self, is_met, complaint, seconds=BOOT_S):
        end = time.monotonic() + seconds
        while not is_met():
            if time.monotonic() > end or self.nspawn.poll() is not None:
                raise MachineError(f"{complaint}: {self.console()[-3000:]}")
            time.sleep(0.05)

    def _find_leader(self):
        try:
            with open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            if not children:
                return False
            with open(f"/proc/{children[0]}/comm", encoding="ascii") as file:
                self.leader = children[0]
                return file.read().strip() == "systemd"
        except OSError:
            return False

    def _is_up(self):
        return self.run("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def console(self):
        with open(os.path.join(self.dir, "console"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def enter(self, command):
        """The arguments that run a shell's command in the machine."""
        return ["nsenter", "-t", self.leader, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env", "-i",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", "bash", "-c", command]

    def run(self, command, check=True, timeout=RUN_S):
        """Run a shell's command in the machine. Its output, and its errors with it, is in .stdout."""
        done = subprocess.run(self.enter(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise MachineError(f"{command}: status {done.returncode}\n{done.stdout}")
        return done

    def reboot(self):
        self.run("systemctl reboot", check=False)
        status = self.nspawn.wait(BOOT_S)
        if status != REBOOT_STATUS:
            raise MachineError(f"it ended with {status}, not to be booted again: {self.console()[-3000:]}")
        self.boot()

    def __exit__(self, *ignored):
        if self.nspawn is not None and self.nspawn.poll() is None:
            if self.leader is not None:
                os.kill(int(self.leader), signal.SIGKILL)  # all others in the machine die with its first process
            else:
                self.nspawn.terminate()
            self.nspawn.wait(BOOT_S)
        for target in reversed(self.mounts):
            for _ in range(50):
                if subprocess.run(["umount", target], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            else:
                subprocess.run(["umount", "-l", target], check=False)
        if os.path.isdir(self.dir):
            os.rmdir(self.dir)
        self._remove_memory_group()


if __name__ == "__main__":
    with Machine() as one:
        for line in sys.stdin:
            print(one.run(line, check=False).stdout, flush=True)
