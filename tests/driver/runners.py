"""How each kind of part is built and run. Every runner returns its outcome; what goes wrong around the cases is a failed case, too."""

import contextlib
import os
import tempfile
import time

from parts import CHECKS, ROOT, SANITIZERS, TESTS, files_of_sanitized
from process import describe, run
from results import FAILED, PASSED, Case, Outcome, clip, from_gtest_log, from_junit, gtest_detail
from schedule import cores

BUILD = ROOT / "build"
CUDA_BUILD = ROOT / "build-cuda"  # of its own: with the CUDA language on, CMake takes other ways
LOGS = BUILD / "test-results"
LONG = os.environ.get("SERIN_LONG") == "1"
PART_LIMIT_S = 7200 if LONG else 1800
TEST_LIMIT_S = 1200 if LONG else 180  # one Python test
MEMORY_FILES = "/dev/shm"
MEMORY_FILES_NEEDED = 8 << 30
FEW = 5  # single tests that are not worth several processes
SERVERS_NICE, PARTS_NICE, BUILD_NICE = 0, 5, 19  # tests of servers wait, and have time limits; who only computes can let them go first
# Each run compiles nearly everything: several sources at a time, and what they include once.
FASTER = ["-DSERIN_UNITY=ON"]


def run_part(part):
    started = time.monotonic()
    outcome = _runner(part)(part)
    outcome.seconds = time.monotonic() - started
    if part.kind == "checks":
        outcome.cases[0].seconds = outcome.seconds
    if not outcome.cases and not part.only:  # a single test may be of another program of the same folder
        outcome.cases = [Case(part.name, part.name, FAILED, detail="ran no test")]
    return outcome


def run_alone(part, cases):
    """Once more just these cases of it, one at a time; what was printed before stays where it is."""
    nodes = list(dict.fromkeys(case.node for case in cases))
    return _runner(part)(part, nodes).cases


def _runner(part):
    if part.kind == "pytest":
        return _run_pytest
    if part.kind == "checks":
        return _run_check
    return _run_pytest_sanitized if part.program == "serin" else _run_gtest


def build(targets):
    """Why it failed, or None; and the seconds of CPU that it took."""
    return _build(BUILD, ["-DBUILD_TESTING=ON"], targets)


def build_cuda():
    """The same of the plugin, for one architecture. With few optimisations, in half of the time: its kernels run nowhere here."""
    options = ["-DBUILD_TESTING=OFF", "-DSERIN_CUDA=ON", "-DSERIN_CUDA_ARCHITECTURES=90a", "-DSERIN_CUDA_QUICK=ON"]
    return _build(CUDA_BUILD, options, ["serin_cuda", "dnn_plans", "chain_codes"])


def build_control_plane():
    """The same of the programs of Kubernetes, in the user's cache: they are built once."""
    log = LOGS / "control-plane-build.log"
    ended = run([TESTS / "kubernetes/build-control-plane"], log, 7200, ROOT, nice=BUILD_NICE)
    if ended.status == 0:
        return None, ended.cpu_s
    return f"control plane of Kubernetes: {describe(ended.status)}\n{clip(log.read_text(errors='replace'))}", ended.cpu_s


def build_sanitized(kind, targets):
    """The same of test programs, with those sanitizers."""
    return _build(ROOT / f"build-{kind}", ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DSERIN_SANITIZE={SANITIZERS[kind]}", "-DBUILD_TESTING=ON"], targets)


def _executable(part):
    if part.kind == "front":
        return BUILD / "sanitized" / part.program
    folder = ROOT / f"build-{part.kind}" if part.sanitized else BUILD
    return folder / part.program if part.program == "serin" else folder / "tests" / part.program


def _build(folder, options, targets):
    # A preset's settings, spelled out: CMake takes the default preset's folder from the caller's directory otherwise.
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *FASTER, *options]
    cpu_s = 0.0
    for step in "configure", "build":
        command = configure if step == "configure" else ["ninja", "-C", folder, *_known(folder, targets)]
        log = LOGS / f"{folder.name}-{step}.log"
        ended = run(command, log, 7200, ROOT, nice=BUILD_NICE)
        cpu_s += ended.cpu_s
        if ended.status != 0:
            text = log.read_text(errors="replace")
            at = text.find("FAILED: ")
            return f"{step} in {folder.name}: {describe(ended.status)}\n{clip(text[at:] if at >= 0 else text)}", cpu_s
    return None, cpu_s


def _known(folder, targets):
    """Without the plugin of oneDNN where that is not installed."""
    return [target for target in targets if target != "serin_onednn" or "build serin_onednn: phony" in (folder / "build.ninja").read_text()]


def _run_gtest(part, alone=()):
    program, name = _executable(part), part.log_name + ("-alone" if alone else "")
    if not program.exists():
        return Outcome([Case(part.name, part.program, FAILED, detail=f"{program.relative_to(ROOT)} was not built")])
    report, log = LOGS / f"{name}.xml", LOGS / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [program, f"--gtest_output=xml:{report}", "--gtest_color=no"]
    if alone:
        command.append("--gtest_filter=" + ":".join(node.replace("-", "?") for node in alone))  # a minus would begin what is left out
    elif part.only:  # *s: instances of parameterised and typed tests
        command.append("--gtest_filter=" + ":".join("*{}*.{}*".format(*name.split(".")) for name in part.only))
    ended = run(command, log, PART_LIMIT_S, ROOT, nice=PARTS_NICE)
    text = log.read_text(errors="replace")
    notes = [line.removeprefix("summary: ") for line in text.splitlines() if line.startswith("summary: ")]

    cases = from_junit(part.name, report)
    if not cases and ended.status != 0:
        cases, unfinished = from_gtest_log(part.name, text)
        name = unfinished or part.program
        cases.append(Case(part.name, name, FAILED, detail=f"{describe(ended.status)}\n{gtest_detail(text, name) or clip(text)}"))
        return Outcome(cases, ended.cpu_s, notes, log)
    for case in cases:
        if case.status == FAILED:
            case.detail = gtest_detail(text, case.name) or case.detail
    return Outcome(cases + _unexplained(part, ended.status, cases, text), ended.cpu_s, notes, log)


def _run_pytest(part, alone=()):
    folder = _in_memory if part.of_servers else contextlib.nullcontext
    with folder() as scratch:
        return _pytest(part, part.paths or [part.folder], scratch, alone)


def _run_pytest_sanitized(part, alone=()):
    """Whatever a sanitizer finds ends the program: at once, or, leaks, when it was told to end. Process.close of tests/e2e/conftest.py notices both. What was
    freed is kept back for a while only: tests look at the program's memory, too."""
    env = {"SERIN": str(_executable(part)), "ASAN_OPTIONS": "abort_on_error=1:quarantine_size_mb=8"}
    with _in_memory() as scratch:
        return _pytest(part, part.paths or files_of_sanitized(part.kind), scratch, alone, env)


@contextlib.contextmanager
def _in_memory():
    """A folder for what tests write, or None where memory has no room for files. Routers and etcd wait for the disk with each change (fsync), which
    others on the same machine may hold up for seconds: tests of time limits would fail by that."""
    try:
        room = os.statvfs(MEMORY_FILES)
    except OSError:
        room = None
    if room is None or room.f_bavail * room.f_frsize < MEMORY_FILES_NEEDED or room.f_flag & os.ST_NOEXEC:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="serin-tests-", dir=MEMORY_FILES) as folder:
        yield folder


def _pytest(part, paths, scratch, alone, env=None):
    """`scratch`: the folder where its tests write, or None for pytest's own."""
    name = part.log_name + ("-alone" if alone else "")
    report, log = LOGS / f"{name}.xml", LOGS / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [
        ROOT / ".deps/venv/bin/python", "-B", "-m", "pytest", *(alone or paths), "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
        "-o", "junit_logging=out-err", "-o", "junit_family=xunit1", f"--timeout={TEST_LIMIT_S}", f"--rootdir={ROOT}",
    ]
    command += [f"--ignore={path}" for path in part.left_out]
    if part.of_servers and not alone and not 0 < len(part.only) <= FEW:
        command += ["-n", cores() + 1, "--dist", "loadfile"]
    if scratch:
        command += ["--basetemp", scratch, "-o", "tmp_path_retention_policy=failed"]
    if part.only and not alone:
        command += ["-k", " or ".join(part.only)]
    ended = run(command, log, PART_LIMIT_S, ROOT, env, nice=SERVERS_NICE if part.of_servers else PARTS_NICE)
    cases = from_junit(part.name, report)
    return Outcome(cases + _unexplained(part, ended.status, cases, log.read_text(errors="replace")), ended.cpu_s, log=log)


def _unexplained(part, status, cases, text):
    """A bad end that no case accounts for: a crash after the last test, a leak report, an error of the framework."""
    if status == 0 or (status == 1 and any(case.status == FAILED for case in cases)):
        return []
    return [Case(part.name, part.program or part.name, FAILED, detail=f"{describe(status)}\n{clip(text)}")]


def _run_check(part):
    log = LOGS / f"{part.log_name}.log"
    ended = run([CHECKS / part.name], log, PART_LIMIT_S, ROOT, nice=PARTS_NICE)
    if ended.status == 0:
        return Outcome([Case(part.name, part.name, PASSED)], ended.cpu_s, log=log)
    return Outcome([Case(part.name, part.name, FAILED, detail=f"{describe(ended.status)}\n{clip(log.read_text(errors='replace'))}")], ended.cpu_s, log=log)
