"""Control groups of Linux with a limit of memory, of both versions."""

import contextlib
import pathlib
import time
import uuid

ROOTS = (pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup"))


class Group:
    def __init__(self, folder):
        self.folder = folder
        self.run_by = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(folder / "cgroup.procs")]  # runs a program in the group

    def killed(self):
        """How many processes the kernel killed because memory ran out."""
        file = next(file for name in ("memory.oom_control", "memory.events") if (file := self.folder / name).exists())
        return int(dict(line.split() for line in file.read_text().splitlines())["oom_kill"])

    def remove(self):
        """Waits for the processes in it to end."""
        deadline = time.monotonic() + 10
        while True:
            try:
                return self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


@contextlib.contextmanager
def limited(most):
    """A Group with `most` bytes. OSError: none can be made here."""
    for root in ROOTS:
        first = root / "memory.limit_in_bytes", root / "memory.max"
        if not first[0].exists() and "memory" not in (root / "cgroup.subtree_control").read_text().split():
            continue
        group = Group(root / f"serin-test-{uuid.uuid4().hex}")
        group.folder.mkdir()
        try:
            (group.folder / ("memory.limit_in_bytes" if first[0].exists() else "memory.max")).write_text(str(most))
            yield group
        finally:
            group.remove()
        return
    raise OSError("no control group has the controller of memory")
