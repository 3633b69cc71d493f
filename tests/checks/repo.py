"""What the checks share. Each looks at the git repository it is called in, so that test_checks.py can show it a bad one."""

import subprocess
import sys
from pathlib import Path

CPP = (".h", ".cc", ".cuh", ".cu")
SOURCE_FOLDERS = ("kernels", "runtime", "router")


def git(*arguments):
    result = subprocess.run(["git", *arguments], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"git {arguments[0]}: {result.stderr.strip()}")
    return result.stdout


def root():
    return Path(git("rev-parse", "--show-toplevel").strip())


def files(*suffixes, under=()):
    """Tracked and new files, not ignored ones, as paths relative to the root."""
    top = root()
    listed = git("-C", str(top), "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    paths = sorted({Path(name) for name in listed if name})
    return [p for p in paths if (not suffixes or p.suffix in suffixes) and (not under or p.parts[0] in under) and (top / p).is_file()]


def base():
    """The commit that changes are counted from: where the branch left origin/main or main; on main itself the one before; None before the second one."""
    head = _commit("rev-parse", "--verify", "--quiet", "HEAD")
    for reference in ("origin/main", "main"):
        fork = _commit("merge-base", "HEAD", reference)
        if fork not in (None, head):
            return fork
    return _commit("rev-parse", "--verify", "--quiet", "HEAD~1")


def _commit(*arguments):
    found = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def changed(*suffixes, under=()):
    """Those of files() that differ from base(), committed or not."""
    everything, commit = files(*suffixes, under=under), base()
    if commit is None:
        return set(everything)
    names = git("-C", str(root()), "diff", "--name-only", commit) + git("-C", str(root()), "ls-files", "--others", "--exclude-standard")
    return {path for path in everything if str(path) in names.splitlines()}


def newest(paths):
    """Those of changed(), the ones changed last first: not committed, then by commit. Times of files say nothing in a clone."""
    if not _commit("rev-parse", "--verify", "--quiet", "HEAD"):
        return sorted(paths)
    log = git("-C", str(root()), "log", "--name-only", "--format=", *([f"{base()}..HEAD"] if base() else []))
    new = git("-C", str(root()), "diff", "--name-only", "HEAD") + git("-C", str(root()), "ls-files", "--others", "--exclude-standard")
    order = {name: place for place, name in reversed(list(enumerate((new + log).splitlines())))}
    return sorted(paths, key=lambda path: (order.get(str(path), len(order)), path))


def scripts(*interpreters):
    """Files whose first line names one of the interpreters."""
    return [p for p in files() if _interpreter(root() / p) in interpreters]


def _interpreter(path):
    with path.open("rb") as file:
        first = file.readline(200)
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].decode(errors="replace").split()
    return words[-1].rsplit("/", 1)[-1] if words else ""


def finish(problems):
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
