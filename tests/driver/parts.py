"""What there is to run, read from the tree alone, so that a wrong name is refused before anything is built.

A part is a folder of tests/ (its gtest executables and its pytest files), a check (an executable file of tests/checks/), or, once more with sanitizers, a
gtest executable or the program itself under end-to-end tests. What reads from outside is so in every run, with the engine as it is (tests/sanitized); all of
the program in long ones.
"""

import fnmatch
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CHECKS = TESTS / "checks"
NEED_EVERYTHING = {"headers", "lint"}  # read how each file is compiled, and generated headers
NEED_NOTHING = {"checks", "driver"}  # test the scripts of these folders
SANITIZED = {  # in long ones: what reads from outside, and what several threads share; not simulations, which would take hours
    "asan": ["base_test", "net_test", "protocol_test", "serving_test", "store_test", "proxy_test", "admin_test", "serin"],
    "tsan": ["base_test", "net_test", "serving_test", "store_test", "proxy_test", "admin_test", "serin"],
}
OUTSIDE = [  # of tests/e2e: what asks the program `serin`
    "test_bad_*.py", "test_serve*.py", "test_tfserving*.py", "test_paddle*.py", "test_shared_memory.py", "test_repository_control.py", "test_scheduling.py",
    "test_model_config.py", "test_models_on_disk.py", "test_large_messages.py", "test_many_rows.py",
]
SHARED = [  # what several of its threads have to do with
    "test_generate.py", "test_judging.py", "test_large_*.py", "test_many_rows.py", "test_reload.py", "test_repository_control.py", "test_route.py",
    "test_scheduling.py", "test_serve_grpc.py", "test_shared_memory.py", "test_tfserving_grpc.py", "test_waiting.py",
]
SANITIZED_FILES = {"front": OUTSIDE, "asan": OUTSIDE, "tsan": SHARED}
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
ALSO_NEEDED = {  # by Python tests, beside the program
    "e2e": ["print_smuggling_rows", "serin_cuda_emulated_plugin", "serin_fake_nvml"],
    "gpu": ["conformance_test", "gpu_test", "serin_cuda_emulated_plugin", "serin_cuda_telling_plugin", "serin_fault_on_demand"],
    "models": ["serin_cuda_emulated_plugin"],
}


@dataclass
class Part:
    name: str
    kind: str  # the group: cpp, pytest, checks, front, asan or tsan
    program: str = ""  # the executable; of the last three also `serin`
    only: list = field(default_factory=list)  # names of single tests; empty: all

    @property
    def targets(self):
        """What must be built first. A Python test drives the program itself."""
        if self.kind == "cpp":
            return [self.program]
        if self.kind == "front":
            return [f"{self.program}_sanitized", *(ALSO_NEEDED["e2e"] if self.program == "serin" else [])]
        if self.kind == "checks":
            return ["all"] if self.name in NEED_EVERYTHING else []
        if self.sanitized:
            return []  # of build/: they have folders of their own
        return [] if self.name in NEED_NOTHING else ["serin", *ALSO_NEEDED.get(self.name, [])]

    @property
    def title(self):
        return self.program if self.sanitized or self.kind == "front" else self.name

    @property
    def sanitized(self):
        """Whether all of it is, in a build folder of its own."""
        return self.kind in SANITIZED

    @property
    def needs_cuda(self):
        """Whether it looks at the plugin that nvcc builds."""
        return self.name == "cuda"

    def test_names(self):
        """Names in the source, as `Suite.Name` or `test_name`."""
        folder = TESTS / self.name
        if self.kind == "cpp":
            found = (re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)", f.read_text()) for f in folder.rglob("*.cc"))
            return [f"{suite}.{name}" for matches in found for suite, name in matches]
        if self.kind == "pytest":
            found = (re.findall(r"^\s*def (test_\w+)", f.read_text(), re.M) for f in folder.rglob("test_*.py"))
            return [name for matches in found for name in matches]
        return []


def all_parts():
    parts = []
    for folder in sorted(p for p in TESTS.iterdir() if p.is_dir()):
        cmake = folder / "CMakeLists.txt"
        programs = re.findall(r"^\s*serin_test\(\s*(\w+)", cmake.read_text(), re.M) if cmake.exists() else []
        parts += [Part(folder.name, "cpp", program) for program in programs]
    for folder in sorted(p for p in TESTS.iterdir() if p.is_dir()):
        if any(folder.rglob("test_*.py")):
            parts.append(Part(folder.name, "pytest"))
    scripts = sorted(p for p in CHECKS.iterdir() if p.is_file() and os.access(p, os.X_OK))
    parts += [Part(p.name, "checks") for p in scripts]
    front = re.findall(r"^serin_sanitized\((\w+)", (TESTS / "sanitized/CMakeLists.txt").read_text(), re.M)
    return parts + [Part(kind, kind, program) for kind, programs in {"front": front, **SANITIZED}.items() for program in programs]


def select(parts, names):
    """The parts that the names ask for. Raises LookupError for a name that fits neither a part nor a single test."""
    if not names:
        return parts
    chosen = []
    for name in names:
        whole = [p for p in parts if name == p.kind or fnmatch.fnmatchcase(p.name, name)]
        chosen += [p for p in whole or parts_with_test(parts, name) if p not in chosen]
    return chosen


def parts_with_test(parts, name):
    pattern = name.lower() if "*" in name else f"*{name.lower()}*"
    chosen = []
    for part in parts:
        only = [test for test in part.test_names() if fnmatch.fnmatchcase(test.lower(), pattern)]
        if only:
            chosen.append(Part(part.name, part.kind, part.program, only))
    if not chosen:
        known = ", ".join(dict.fromkeys(p.name for p in parts))
        raise LookupError(f"no part and no test is named '{name}'; groups: cpp, pytest, checks, front, asan, tsan; parts: {known}")
    return chosen
