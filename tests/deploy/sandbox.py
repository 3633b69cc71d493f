"""A server as a container runtime starts it: process 1 of namespaces of its own, in a network that has loopback alone, with places mounted where manifests expect
them. With an image's files as root these cannot be written to; without, the machine's own are there.

    with Sandbox(["/usr/bin/serin", "serve", ...], {"/mnt/models": folder}, tmp_path / "log") as server: ...
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

# $1: root, or empty; $2: uid and gid with a colon between; $3: how many pairs of place and source follow; behind them the command, its argv[0] first.
SETUP = r"""
set -e
root=$1 user=$2 count=$3; shift 3
ip link set lo up
mount --make-rprivate /
if [ -n "$root" ]; then mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"; mount --rbind /dev "$root/dev"; else mount -t tmpfs none /mnt; fi
while [ "$count" -gt 0 ]; do
  if [ -z "$root" ]; then mkdir -p "$1"; fi
  mount --bind "$2" "$root$1"; mount -o remount,bind,ro "$root$1"; shift 2; count=$((count - 1))
done
mount -t proc proc "$root/proc"
if [ -n "$root" ]; then
  exec chroot "$root" /usr/bin/setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
fi
program=$1; shift
exec -a "$1" "$program" "${@:2}"
"""
NEEDED = ("unshare", "ip", "mount", "nsenter", "curl")


def why_not():
    """Empty: sandboxes can be made here."""
    if missing := [tool for tool in NEEDED if not shutil.which(tool)]:
        return f"no {', '.join(missing)} here"
    tried = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip()


def _unshare():
    return ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", *([] if os.geteuid() == 0 else ["--map-root-user"])]


class Sandbox:
    """`command`: with an image as `root` as that has it; without, the program's path and behind it its argv. `environment`: the whole of it."""

    def __init__(self, command, mounts, log, root="", user="1000650000:0", environment=None):
        pairs = [str(word) for pair in mounts.items() for word in pair]
        self.log_file = pathlib.Path(log)
        with self.log_file.open("wb") as out:
            self.process = subprocess.Popen([*_unshare(), "bash", "-c", SETUP, "bash", str(root), user, str(len(mounts)), *pairs, *map(str, command)],
                                            stdout=out, stderr=out, env=environment)

    @property
    def log(self):
        return self.log_file.read_text(errors="replace")

    @property
    def pid(self):
        """Process 1 of the sandbox, by its number outside."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while not (found := children.read_text().split()):
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log}"
        return int(found[0])

    def ask(self, port, path, *arguments, data=None):
        """(status, body), of curl; status 0: nobody answers."""
        inside = ["nsenter", "--target", str(self.pid), "--net", *([] if os.geteuid() == 0 else ["--user", "--preserve-credentials"])]
        body = [] if data is None else ["--data-binary", "@-"]
        asked = subprocess.run([*inside, "curl", "-s", "-m", "20", "-w", "\n%{http_code}", *body, *arguments, f"http://127.0.0.1:{port}{path}"],
                               capture_output=True, check=False, input=data)
        body, _, status = asked.stdout.rpartition(b"\n")
        return int(status or 0), body

    def serves_grpc(self, port):
        """Whether gRPC's health service says so: the answer to an empty message is one that has the number 1 in field 1."""
        headers = [word for header in ("content-type: application/grpc", "te: trailers") for word in ("-H", header)]
        return self.ask(port, "/grpc.health.v1.Health/Check", "--http2-prior-knowledge", *headers, data=bytes(5)) == (200, b"\0\0\0\0\2\x08\x01")

    def await_answer(self, port, path, status=200, seconds=60):
        deadline = time.monotonic() + seconds
        while (said := self.ask(port, path))[0] != status:
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log}"
            assert time.monotonic() < deadline, f"{path} at {port}: {said}\n{self.log}"
            time.sleep(0.1)

    def end(self, at_once=True):
        """SIGTERM, a second one for which it drains no longer, and the exit code."""
        pid = self.pid
        os.kill(pid, signal.SIGTERM)
        if at_once:
            os.kill(pid, signal.SIGINT)
        return self.process.wait(40)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # and with it, process 1
        self.process.wait()
