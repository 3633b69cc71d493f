"""How each kind of part is run. Every runner returns its cases; what goes wrong around them is a failed case, too."""

import contextlib
import os
import tempfile

from parts import CHECKS, ROOT, SANITIZED_FILES, SANITIZERS, TESTS
from process import describe, run
from results import FAILED, PASSED, Case, clip, from_gtest_log, from_junit, gtest_detail

BUILD = ROOT / "build"
CUDA_BUILD = ROOT / "build-cuda"  # of its own: with the CUDA language on, CMake takes other ways
LOGS = BUILD / "test-results"
LONG = os.environ.get("SERIN_LONG") == "1"
PART_LIMIT_S = 7200 if LONG else 1800
TEST_LIMIT_S = 1200 if LONG else 180  # one Python test
MEMORY_FILES = "/dev/shm"
MEMORY_FILES_NEEDED = 8 << 30


def run_part(part):
    run_kind = {"pytest": _run_pytest, "checks": _run_check}.get(part.kind, _run_gtest)
    if part.program == "serin":
        run_kind = _run_pytest_sanitized
    cases = run_kind(part)
    if not cases and not part.only:  # a single test may be of another program of the same folder
        return [Case(part.name, part.name, FAILED, detail="ran no test")]
    return cases


def summary(part):
    """What a test program has to say beside passed and failed: its lines that begin with "summary: "."""
    log = LOGS / f"{part.program}.log"
    lines = log.read_text(errors="replace").splitlines() if part.kind == "cpp" and log.exists() else []
    return [line.removeprefix("summary: ") for line in lines if line.startswith("summary: ")]


def build(targets):
    """None, or why it failed."""
    return _build(BUILD, ["-DBUILD_TESTING=ON"], targets)


def build_cuda():
    """The same of the plugin, for one architecture."""
    return _build(CUDA_BUILD, ["-DBUILD_TESTING=OFF", "-DSERIN_CUDA=ON", "-DSERIN_CUDA_ARCHITECTURES=90a"], ["serin_cuda", "dnn_plans", "chain_codes"])


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
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    for name, command in ("configure", configure), ("build", ["ninja", "-C", folder, *targets]):
        log = LOGS / f"{folder.name}-{name}.log"
        if (status := run(command, log, 7200, ROOT)) != 0:
            text = log.read_text(errors="replace")
            at = text.find("FAILED: ")
            return f"{name} in {folder.name}: {describe(status)}\n{clip(text[at:] if at >= 0 else text)}"
    return None


def _run_gtest(part):
    program = _executable(part)
    if not program.exists():
        return [Case(part.name, part.program, FAILED, detail=f"{program.relative_to(ROOT)} was not built")]
    name = part.program if part.kind == "cpp" else f"{part.kind}-{part.program}"
    report, log = LOGS / f"{name}.xml", LOGS / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [program, f"--gtest_output=xml:{report}", "--gtest_color=no"]
    if part.only:  # *s: instances of parameterised and typed tests
        command.append("--gtest_filter=" + ":".join("*{}*.{}*".format(*name.split(".")) for name in part.only))
    status = run(command, log, PART_LIMIT_S, ROOT)
    text = log.read_text(errors="replace")

    cases = from_junit(part.name, report)
    if not cases and status != 0:
        cases, unfinished = from_gtest_log(part.name, text)
        name = unfinished or part.program
        return cases + [Case(part.name, name, FAILED, detail=f"{describe(status)}\n{gtest_detail(text, name) or clip(text)}")]
    for case in cases:
        if case.status == FAILED:
            case.detail = gtest_detail(text, case.name) or case.detail
    return cases + _unexplained(part, status, cases, text)


def _run_pytest(part):
    folder = _in_memory if part.name == "e2e" else contextlib.nullcontext
    with folder() as scratch:
        return _pytest(part, [TESTS / part.name], f"{part.name}-pytest", scratch)


def _run_pytest_sanitized(part):
    """Whatever a sanitizer finds ends the program: at once, or, leaks, when it was told to end. Process.close of tests/e2e/conftest.py notices both. What was
    freed is kept back for a while only: tests look at the program's memory, too."""
    files = sorted({path for pattern in SANITIZED_FILES[part.kind] for path in (TESTS / "e2e").glob(pattern)})
    env = {"SERIN": str(_executable(part)), "ASAN_OPTIONS": "abort_on_error=1:quarantine_size_mb=8"}
    with _in_memory() as scratch:
        return _pytest(part, files, f"{part.kind}-serin", scratch, env)


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


def _pytest(part, paths, name, scratch, env=None):
    """`scratch`: the folder where its tests write, or None for pytest's own."""
    report, log = LOGS / f"{name}.xml", LOGS / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [
        ROOT / ".deps/venv/bin/python", "-B", "-m", "pytest", *paths, "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
        "-o", "junit_logging=out-err", "-o", "junit_family=xunit1", f"--timeout={TEST_LIMIT_S}", f"--rootdir={ROOT}",
    ]
    if scratch:
        command += ["--basetemp", scratch, "-o", "tmp_path_retention_policy=failed"]
    if part.only:
        command += ["-k", " or ".join(part.only)]
    status = run(command, log, PART_LIMIT_S, ROOT, env)
    cases = from_junit(part.name, report)
    return cases + _unexplained(part, status, cases, log.read_text(errors="replace"))


def _unexplained(part, status, cases, text):
    """A bad end that no case accounts for: a crash after the last test, a leak report, an error of the framework."""
    if status == 0 or (status == 1 and any(case.status == FAILED for case in cases)):
        return []
    return [Case(part.name, part.program or part.name, FAILED, detail=f"{describe(status)}\n{clip(text)}")]


def _run_check(part):
    log = LOGS / f"check-{part.name}.log"
    status = run([CHECKS / part.name], log, PART_LIMIT_S, ROOT)
    if status == 0:
        return [Case(part.name, part.name, PASSED)]
    return [Case(part.name, part.name, FAILED, detail=f"{describe(status)}\n{clip(log.read_text(errors='replace'))}")]
