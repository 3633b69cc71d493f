"""What there is to run, read from the tree alone, so that a wrong name is refused before anything is built.

A part is a test program (`serin_test` in a CMakeLists.txt below tests/), a folder of pytest files, a check (an executable file of tests/checks/), or, once
more with sanitizers, a test program or the program itself under end-to-end tests. What reads from outside is so in every run, with the engine as it is
(tests/sanitized); all of the program in long ones.
"""

import fnmatch
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CHECKS = TESTS / "checks"
E2E = "e2e"  # one part with all folders below it
NEED_NOTHING = {"bench", "checks", "driver"}  # test the scripts of these folders
WAIT_FOR_THE_BUILD = {"headers", "lint", "locks"}  # need nothing of it, but would take its cores while nothing else can start
SANITIZED = {  # in long ones: what reads from outside, and what several threads share; not simulations, which would take hours
    "asan": ["base_test", "net_test", "protocol_test", "serving_test", "kubernetes_test", "store_test", "proxy_test", "router_test", "vision_test", "serin"],
    "tsan": ["base_test", "net_test", "serving_test", "store_test", "proxy_test", "router_test", "serin"],
}
OUTSIDE = [  # of tests/e2e: what asks the program `serin`
    "test_bad_*.py", "test_serve*.py", "test_tfserving*.py", "test_paddle*.py", "test_shared_memory.py", "test_repository_control.py", "test_scheduling.py",
    "test_model_config.py", "test_models_on_disk.py", "test_large_messages.py", "test_many_rows.py",
]
SHARED = [  # what several of its threads have to do with
    "test_generate.py", "test_judging.py", "test_large_*.py", "test_many_rows.py", "test_reload.py", "test_replay.py", "test_repository_control.py",
    "test_route.py", "test_scheduling.py", "test_serve_grpc.py", "test_shared_memory.py", "test_slices.py", "test_tfserving_grpc.py", "test_waiting.py",
]
SANITIZED_FILES = {"front": OUTSIDE, "asan": OUTSIDE, "tsan": SHARED}
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
EMULATED = "serin_cuda_emulated_plugin"
DEVICES, IMAGES, FRONT = "tests on the emulated device", "tests of images", "tests of sanitized copies"
COSTLY = {  # take minutes, so only what can change their results makes them run in every run: their files by part (affected.touches)
    DEVICES: {E2E: [TESTS / "e2e/devices"], "models": [TESTS / "models/test_device.py"], "gpu": [TESTS / "gpu"]},
    IMAGES: {"deploy": [TESTS / "deploy/test_images.py"]},
    FRONT: {},  # the group `front`
}
PROGRAM = ["serin", "serin_onednn"]  # a Python test drives the program itself
ALSO_NEEDED = {  # by Python tests, beside it
    "e2e": ["print_smuggling_rows", "serin_fake_nvml"], "gpu": ["conformance_test", "gpu_test", "serin_cuda_telling_plugin", "serin_fault_on_demand"],
}
ON_KUBERNETES = "kubernetes"  # the part that starts a control plane, whose programs come from elsewhere
WAITING = {"deploy", "differential"}  # for a disk, or for a server that answers one request after the other
STARTED_FIRST = ["serin", E2E, ON_KUBERNETES, "deploy", "models", "gpu", "operators", "differential", "conformance", "simulation", "rollout", "kernels"]  # they take longest


@dataclass
class Part:
    name: str
    kind: str  # the group: cpp, pytest, checks, front, asan or tsan
    program: str = ""  # the executable; of the last three also `serin`
    only: list = field(default_factory=list)  # names of single tests; empty: all
    folder: Path | None = None
    paths: list = field(default_factory=list)  # of Python tests: files and folders; empty: all of the folder
    left_out: list = field(default_factory=list)  # of these, files that another part runs

    def __post_init__(self):
        self.folder = self.folder or TESTS / (E2E if self.program == "serin" else self.name)

    @property
    def targets(self):
        """What must be built in build/ first."""
        if self.kind == "cpp":
            return [self.program]
        if self.kind == "front":
            return [f"{self.program}_sanitized", *(ALSO_NEEDED[E2E] if self.program == "serin" else [])]
        if self.kind != "pytest" or self.name in NEED_NOTHING:  # sanitized ones have folders of their own
            return []
        on_devices = self.name in COSTLY[DEVICES] and not set(COSTLY[DEVICES][self.name]) <= set(self.left_out)
        return [*PROGRAM, *ALSO_NEEDED.get(self.name, []), *([EMULATED] if on_devices else [])]

    @property
    def title(self):
        return self.program if self.sanitized or self.kind == "front" else self.name

    @property
    def log_name(self):
        """Of its files in build/test-results."""
        if self.kind == "cpp":
            return self.program
        if self.kind == "pytest":
            return f"{str(self.folder.relative_to(TESTS)).replace('/', '-')}-pytest"
        return f"check-{self.name}" if self.kind == "checks" else f"{self.kind}-{self.program}"

    @property
    def sanitized(self):
        """Whether all of it is, in a build folder of its own."""
        return self.kind in SANITIZED

    @property
    def needs_cuda(self):
        """Whether it looks at the plugin that nvcc builds."""
        return self.name == "cuda"

    @property
    def needs_control_plane(self):
        """Whether it is skipped where the programs of Kubernetes are not built."""
        return self.name == ON_KUBERNETES and self.kind == "pytest"  # router/kubernetes has tests of its own

    @property
    def of_servers(self):
        """Whether it starts servers and asks them: it waits for most of its time, and several of its tests run at a time."""
        return self.name == E2E or self.program == "serin"

    def weight(self, cores):
        """How many cores it keeps busy."""
        if self.of_servers:
            return cores / 2
        return 0.5 if self.name in WAITING else 1

    @property
    def rank(self):
        """In the order in which parts start."""
        names = [name for name in STARTED_FIRST if name in (self.title, self.name)]
        return STARTED_FIRST.index(names[0]) if names else len(STARTED_FIRST)

    def test_names(self):
        """Names in the source, as `Suite.Name` or `test_name`."""
        if self.kind == "cpp":
            found = (re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)", f.read_text()) for f in self.folder.rglob("*.cc"))
            return [f"{suite}.{name}" for matches in found for suite, name in matches]
        if self.kind == "pytest":
            found = (re.findall(r"^\s*def (test_\w+)", f.read_text(), re.M) for f in self.folder.rglob("test_*.py"))
            return [name for matches in found for name in matches]
        return []


def all_parts():
    parts = []
    for cmake in sorted(TESTS.rglob("CMakeLists.txt")):
        programs = re.findall(r"^\s*serin_test\(\s*(\w+)", cmake.read_text(), re.M)
        parts += [Part(cmake.parent.name, "cpp", program, folder=cmake.parent) for program in programs]
    for folder in sorted({file.parent for file in TESTS.rglob("test_*.py")} - set((TESTS / E2E).rglob("*"))):
        parts.append(Part(folder.name, "pytest", folder=folder))
    if any((TESTS / E2E).rglob("test_*.py")) and not any(part.folder == TESTS / E2E for part in parts):
        parts.append(Part(E2E, "pytest"))
    scripts = sorted(p for p in CHECKS.iterdir() if p.is_file() and os.access(p, os.X_OK))
    parts += [Part(p.name, "checks", folder=CHECKS) for p in scripts]
    front = re.findall(r"^serin_sanitized\((\w+)", (TESTS / "sanitized/CMakeLists.txt").read_text(), re.M)
    known = {part.program for part in parts if part.kind == "cpp"} | {"serin"}
    return parts + [Part(kind, kind, program) for kind, programs in {"front": front, **SANITIZED}.items() for program in programs if program in known]


def select(parts, names):
    """The parts that the names ask for. Raises LookupError for a name that fits neither a part nor a single test."""
    if not names:
        return parts
    chosen = []
    for name in names:
        whole = [p for p in parts if name == p.kind or fnmatch.fnmatchcase(p.name, name) or (p.kind == "cpp" and p.program == name)]
        chosen += [p for p in whole or parts_at(parts, name) or parts_with_test(parts, name) if p not in chosen]
    return chosen


def parts_at(parts, name):
    """Those of a folder or a file below tests/: `e2e/router`, `runtime/serving`, `tests/e2e/test_route.py`."""
    path = TESTS / name.removeprefix("tests/")
    if "/" not in name or not path.exists():
        return []
    chosen = []
    for part in parts:
        if part.kind in ("cpp", "pytest") and part.folder.is_relative_to(path):
            chosen.append(part)
        elif part.kind == "pytest" and path.is_relative_to(part.folder):
            chosen.append(replace(part, paths=[path]))
    return chosen


def parts_with_test(parts, name):
    pattern = name.lower() if "*" in name else f"*{name.lower()}*"
    chosen = []
    for part in parts:
        only = [test for test in part.test_names() if fnmatch.fnmatchcase(test.lower(), pattern)]
        if only:
            chosen.append(replace(part, only=only))
    if not chosen:
        known = ", ".join(dict.fromkeys(p.name for p in parts))
        raise LookupError(f"no part and no test is named '{name}'; groups: cpp, pytest, checks, front, asan, tsan; parts: {known}")
    return chosen


def files_of_sanitized(kind):
    """The end-to-end tests that ask the sanitized program."""
    return sorted({path for pattern in SANITIZED_FILES[kind] for path in (TESTS / E2E).rglob(pattern)})


def without_twins(parts):
    """No end-to-end test twice: those that ask the sanitized program of the group `front` do not ask the ordinary one, too."""
    front = next((part for part in parts if part.kind == "front" and part.program == "serin"), None)
    if front is None:
        return parts
    twins = set(front.paths or files_of_sanitized("front"))
    kept = []
    for part in parts:
        if part.kind == "pytest" and part.name == E2E and not part.only:
            paths = [path for path in part.paths or [part.folder] if test_files(path) - twins]
            if not paths:
                continue
            left_out = sorted(path for path in twins if any(path.is_relative_to(folder) for folder in paths))
            part = replace(part, paths=paths, left_out=part.left_out + left_out)
        kept.append(part)
    return kept


def without_costly(parts, name):
    """The parts without those tests."""
    if name == FRONT:
        return [part for part in parts if part.kind != "front"]
    kept = []
    for part in parts:
        files = COSTLY[name].get(part.name, [])
        if part.folder not in files:
            kept.append(replace(part, left_out=part.left_out + files) if part.kind == "pytest" and files else part)
    return kept


def test_files(path):
    return {path} if path.is_file() else set(path.rglob("test_*.py"))
