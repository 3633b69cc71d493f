"""Reference pages and the sources that they describe. A source is found by its name, wherever in the tree it lies."""

import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build" / "serin"))
MODELS = ROOT / "models"


def page(path):
    return (ROOT / path).read_text()


def sources(pattern):
    """Paths and texts of what fits runtime/**/PATTERN; there is at least one."""
    found = sorted((ROOT / "runtime").rglob(pattern))
    assert found, f"no source fits runtime/**/{pattern}"
    return [(path, path.read_text()) for path in found]


def source(name):
    """The text of the one source of that name."""
    (_, text), = sources(name)
    return text


def section(text, heading):
    """What stands under a heading, with the headings below it; `heading` without its hashes."""
    lines, depth, taken, fenced = text.splitlines(), 0, [], False
    for line in lines:
        fenced ^= line.startswith("```")
        hashes = 0 if fenced else len(line) - len(line.lstrip("#"))
        if depth == 0:
            if hashes > 0 and line.lstrip("#").strip() == heading:
                depth = hashes
            continue
        if 0 < hashes <= depth:
            break
        taken.append(line)
    assert depth, f"there is no heading '{heading}'"
    return "\n".join(taken)


def headings(text, hashes):
    return re.findall(rf"^{'#' * hashes} (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)


def rows(text):
    """Cells of every table's rows, without heads and rules."""
    table, before = [], []
    for line in text.splitlines():
        if not line.startswith("|"):
            before = []
            continue
        before.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        if len(before) > 2:
            table.append(before[-1])
    return table


def words(cell):
    """What stands between backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def strings(text):
    """Literals of C++."""
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)


def between(text, start, end):
    """From the first `start` to the next `end` behind it."""
    begin = text.index(start) + len(start)
    return text[begin:text.index(end, begin)]


def serin(*arguments):
    ran = subprocess.run([SERIN, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    return ran.stdout + ran.stderr


class Server:
    """`serin serve` with these arguments, until the block ends."""

    def __init__(self, folder, *arguments):
        self.ready_file = folder / "ready"
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen([SERIN, "serve", *map(str, arguments), "--drain-seconds=0", f"--ready-file={self.ready_file}"], stdout=log,
                                            stderr=log)
        self.log_file = folder / "log"

    def __enter__(self):
        deadline = time.monotonic() + 60
        while not self.ready_file.exists():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log_file.read_text()
            time.sleep(0.02)
        self.ports = json.loads(self.ready_file.read_text())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
