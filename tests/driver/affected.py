"""`tests/run --affected`: the parts that a change can have touched.

A test program depends on its folder, on what its CMakeLists.txt takes from elsewhere, on the folders of the libraries it links, and on what these may include
(the table of tests/checks/layering). A Python part depends on its own folder and on the program's sources; where only its tests have changed, only they are
run. What speaks for all, as the top CMakeLists.txt does, touches all.
"""

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from parts import CHECKS, COSTLY, DEVICES, E2E, FRONT, IMAGES, ROOT, TESTS, files_of_sanitized, test_files

CPP = (".h", ".cc", ".cuh", ".cu")
SOURCES = ("kernels", "runtime", "router")
LANDS_TOGETHER_S = 12 * 3600  # many small commits land at once, and nothing in a clone says which
FOR_ALL = {"CMakeLists.txt", "tests/CMakeLists.txt", "tests/run", "deploy/install-deps", ".ci/run"}
OF_ALL = ("tests/driver/", "deploy/requirements-", "cmake/")
TEST_DATA = ("tests/data", "models", "tests/models")  # read by tests of nearly every folder
OF_SCRIPTS = {"checks": ("router/dashboard",), "bench": ("bench", "tests/e2e/support"), "driver": ("tests/checks/layering", "tests/sanitized")}  # Python parts that do not look at the program, and what they look at
WITHOUT_ROUTER = {"operators", "models", "gpu", "cuda", "differential"}  # Python parts that ask the runtime alone
OTHER_FOLDERS = {  # that Python parts look at, beside their own and the program's sources
    E2E: ("deploy", "tests/net", "tests/runtime/net", "tests/gpu"), "deploy": ("deploy", ".dockerignore"), "gpu": ("bench", "tests/conformance"),
    "cuda": ("tests/gpu",), "kubernetes": ("deploy", "tests/e2e"),
}
LOOKED_AT = {  # by checks; one that is not here looks at every file
    "format": CPP, "headers": (*CPP, ".txt", ".cmake"), "lint": (*CPP, ".txt", ".cmake", ".clang-tidy"), "layering": CPP,
    "locks": (*CPP, ".txt", ".cmake"),
}


def narrow(parts, reference=""):
    """Those parts that what changed since the reference can have touched. Raises LookupError where there is no such reference."""
    changed = changed_since(reference or base())
    return [narrowed for part in parts if (narrowed := touched(part, changed))]


def touches(name, reference=""):
    """Whether what changed since the reference can change a result of those costly tests. It is assumed where nothing says what has changed."""
    try:
        changed = changed_since(reference or base())
    except LookupError:
        return True
    places, sources = depends_on(name)
    changed = [path for path in changed if not path.endswith(".md")]
    return any(layering().layer(path) in sources or any((ROOT / path).is_relative_to(place) for place in places) for path in changed)


def depends_on(name):
    """(folders and files, layers of sources)."""
    own = {path for paths in COSTLY[name].values() for path in paths}
    if name == IMAGES:
        return own | {ROOT / path for path in ("CMakeLists.txt", "cmake", "deploy", "tests/deploy", "runtime/cli/serve", ".dockerignore")}, set()
    if name == FRONT:
        return front_depends_on()
    assert name == DEVICES
    places, sources = around(TESTS / "gpu/CMakeLists.txt")
    return places | own | {TESTS / "conformance"}, {layer for layer in sources if not layer.startswith("runtime/formats")}


def front_depends_on():
    """The libraries that tests/sanitized copies, and the tests that ask the copies. The rest of these programs is compiled as always."""
    programs = TESTS / "sanitized/CMakeLists.txt"
    named = set(re.findall(r"\bserin_\w+|\b\w+_test\b", programs.read_text()))
    homes = {name: home for name, home in libraries().items() if name in named}
    sources = {layer for layer in layering().ALLOWED if any((ROOT / layer).is_relative_to(home) for home in homes.values())}
    tests = {cmake_file(name).parent for name in named if name.endswith("_test")}
    return {programs.parent, *tests, *files_of_sanitized("front")}, sources


def base():
    """Where the branch left origin/main. On main itself, the last commit that is so old that it did not land together with HEAD."""
    head = _git("rev-parse", "HEAD")
    fork = _git("merge-base", "HEAD", "origin/main", or_else="")
    if fork not in ("", head):
        return fork
    before = int(_git("show", "--no-patch", "--format=%ct", "HEAD")) - LANDS_TOGETHER_S
    old = _git("rev-list", "-1", f"--before={before}", "HEAD")
    if not old:
        raise LookupError("every commit may have landed together with HEAD")
    return old


def changed_since(commit):
    """Files that differ from it, committed or not, as paths relative to the root."""
    listed = _git("diff", "--name-only", "--no-renames", commit, "--") + "\n" + _git("ls-files", "--others", "--exclude-standard")
    return sorted(set(filter(None, listed.splitlines())))


def _git(*arguments, or_else=None):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout.strip()
    if or_else is None:
        raise LookupError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return or_else


def touched(part, changed):
    """The part, or the files of it that alone have changed, or None."""
    if part.kind == "checks":
        ends = LOOKED_AT.get(part.name, "")
        return part if any(path.endswith(ends) or path == f"tests/checks/{part.name}" for path in changed) else None
    changed = [path for path in changed if not path.endswith(".md")]
    if any(path in FOR_ALL or path.startswith(OF_ALL) for path in changed):
        return part
    depends_on = dependencies(part)
    touching = [path for path in changed if depends_on(path)]
    if part.program == "serin":  # it runs some of the tests in its folder
        others = {f for f in test_files(part.folder) if f not in files_of_sanitized(part.kind)}
        touching = [path for path in touching if ROOT / path not in others]
    if (part.kind == "pytest" or part.program == "serin") and not part.paths and touching and all(is_test_of(part, path) for path in touching):
        there = [ROOT / path for path in touching if (ROOT / path).exists()]
        return replace(part, paths=there) if there else None
    return part if touching else None


def is_test_of(part, path):
    """No helper of other tests."""
    return (ROOT / path).is_relative_to(part.folder) and re.fullmatch(r"test_\w+\.py", Path(path).name)


def dependencies(part):
    """Says of a path whether the part depends on that file."""
    if part.kind == "pytest" and part.name in OF_SCRIPTS:
        places, sources = {part.folder, *(ROOT / name for name in OF_SCRIPTS[part.name])}, set()
    elif part.kind == "pytest" or part.program == "serin":
        name = part.folder.name
        places = {part.folder, *(ROOT / other for other in (*TEST_DATA, *OTHER_FOLDERS.get(name, ())))}
        sources = {entry for entry in layering().ALLOWED if not (name in WITHOUT_ROUTER and entry.startswith("router"))}
    else:
        places, sources = around(cmake_file(part.program))
        places = places | {ROOT / name for name in TEST_DATA}
    if part.kind == "front":
        places.add(TESTS / "sanitized")
    return lambda path: layering().layer(path) in sources or any((ROOT / path).is_relative_to(place) for place in places)


def cmake_file(program):
    return next(path for path in TESTS.rglob("CMakeLists.txt") if re.search(rf"^\s*serin_test\(\s*{program}\b", path.read_text(), re.M))


@cache
def around(cmake):
    """(folders and files of tests that a CMakeLists.txt names, its own folder among them; layers of the sources that it links or compiles)."""
    text = cmake.read_text()
    named = re.findall(r"(?<=[\s(])\.\./[\w./-]+", text)
    places = {cmake.parent, *((cmake.parent / name).resolve() for name in named)}
    named = re.findall(r"\$\{CMAKE_SOURCE_DIR\}/([\w./-]+)", text)
    places |= {ROOT / name for name in named}
    sources = set().union(*(layers(name) for name in named if name.startswith(SOURCES)))
    homes = libraries()
    for name in re.findall(r"\b\w+\b", text):
        home = homes.get(name)
        if home and home.is_relative_to(TESTS) and home != cmake.parent:
            more_places, more_sources = around(home / "CMakeLists.txt")
            places, sources = places | more_places, sources | more_sources
        elif home and not home.is_relative_to(TESTS):
            sources |= layers(str(home.relative_to(ROOT)))
    return places, sources


@cache
def libraries():
    """{library: the folder whose CMakeLists.txt defines it}."""
    found = {}
    for cmake in sorted(path for top in (*SOURCES, "tests") for path in (ROOT / top).rglob("CMakeLists.txt")):
        found |= {name: cmake.parent for name in re.findall(r"^\s*(?:add_library|serin_house|serin_library)\(\s*(\w+)", cmake.read_text(), re.M)}
    return found


@cache
def layers(folder):
    """The layers of a folder or file, and what they may include, and so on."""
    allowed, layer = layering().ALLOWED, layering().layer
    todo = [layer(folder), *(entry for entry in allowed if entry.startswith(folder + "/")), *layering().FOR_EVERYBODY]
    reached = set()
    while todo:
        entry = todo.pop()
        if entry is not None and entry not in reached:
            reached.add(entry)
            todo += allowed[entry]
    return reached


@cache
def layering():
    """tests/checks/layering, whose table is the architecture."""
    sys.path.append(str(CHECKS))
    loader = SourceFileLoader("layering", str(CHECKS / "layering"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
