"""The limits of a container: a cgroup (v2) for each pod, where this user may make one.

    groups, reason = Groups.find()     # None, and why, where there are none
    group = groups.make("pod-1", cores=2, memory=2 << 30)
    subprocess.Popen([*group.run_by, program, ...])
    group.remove()                     # once its process is gone
"""

import os
import pathlib

MOUNT = pathlib.Path("/sys/fs/cgroup")
PERIOD = 100_000  # microseconds, that of the kernel and of kubelet
CONTROLLERS = {"cpu", "memory"}


class Group:
    def __init__(self, path):
        self.path = path
        # The shell enters the group and then becomes the program, which so never runs outside of it.
        self.run_by = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(path / "cgroup.procs")]

    def remove(self):
        self.path.rmdir()


class Groups:
    def __init__(self, path):
        self.path = path

    @classmethod
    def find(cls, mount=MOUNT):
        """(Groups, ""), or (None, why there are none)."""
        known = mount / "cgroup.controllers"
        if not known.exists():
            return None, f"no cgroup v2 at {mount}"
        missing = CONTROLLERS - set(known.read_text().split())
        if missing:
            return None, f"cgroup v2 at {mount} has no controller {', '.join(sorted(missing))}"
        path = mount / f"serin-pods-{os.getpid()}"
        try:
            cls._hand_down(mount)
            path.mkdir(exist_ok=True)
            cls._hand_down(path)
        except OSError as error:
            return None, f"cannot make a cgroup: {error}"
        return cls(path), ""

    @staticmethod
    def _hand_down(path):
        """Lets the groups below limit CPU and memory."""
        control = path / "cgroup.subtree_control"
        if not control.exists() or not CONTROLLERS <= set(control.read_text().split()):
            control.write_text(" ".join(f"+{name}" for name in sorted(CONTROLLERS)))

    def make(self, name, cores, memory):
        path = self.path / name
        path.mkdir()
        (path / "cpu.max").write_text(f"{int(cores * PERIOD)} {PERIOD}" if cores else f"max {PERIOD}")
        (path / "memory.max").write_text(str(memory) if memory else "max")
        return Group(path)

    def remove(self):
        self.path.rmdir()
