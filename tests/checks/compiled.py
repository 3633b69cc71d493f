"""Ways to look at C++ files that need the compiler's own flags, run and remembered by ninja.

The flags are those of a build of their own, build/checks/commands, which is configured and, but for its generated headers, not built: each source by itself,
while the program's build puts several into one unit and precompiles headers. Ninja does what such a check needs: a few at a time, and nothing again whose
inputs have not changed.
"""

import fcntl
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from repo import root

AT_ONCE = 2
FOLDER = "build/checks/commands"


def configure():
    """Two checks may want to at once."""
    top = root()
    folder = top / FOLDER
    if not (top / "CMakeLists.txt").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _quietly("cmake", "-S", top, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON", "-DSERIN_UNITY=OFF")
        made = re.findall(r"^(\S+\.h): CUSTOM_COMMAND$", _quietly("ninja", "-C", folder, "-t", "targets", "all"), re.M)
        if made:
            _quietly("ninja", "-C", folder, *made)


def _quietly(*command):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{result.stdout}")
    return result.stdout


class Commands:
    """How each source file is compiled."""

    def __init__(self):
        configure()
        top = root()
        listed = top / FOLDER / "compile_commands.json"
        if not listed.exists():
            sys.exit(f"{FOLDER}/compile_commands.json is missing: cmake did not write it")
        self._entries = {}
        for entry in json.loads(listed.read_text()):
            path = Path(entry["directory"], entry["file"]).resolve()
            if path.is_relative_to(top) and not path.is_relative_to(top / "build"):
                self._entries.setdefault(path.relative_to(top), entry)

    def sources(self):
        return sorted(self._entries)

    def proven(self):
        """Headers that a source includes before anything else: to compile that source is to compile the header alone."""
        first = (re.search(r'^\s*#\s*include\s*["<]([^">]+)', (root() / source).read_text(), re.M) for source in self._entries)
        return {Path(match[1]) for match in first if match}

    def flags_for(self, header):
        """Include folders, definitions and language flags of the header's own .cc, else of a source beside it, else above it."""
        own = header.with_suffix(".cc")
        if own in self._entries:
            return self.flags_of(own)
        for folder in header.parents:
            near = [source for source in self.sources() if source.is_relative_to(folder)]
            if near:
                return self.flags_of(min(near, key=lambda source: (len(source.parts), source)))
        sys.exit(f"{header}: nothing near it is compiled, so its flags are unknown")

    def flags_of(self, source):
        words = iter(shlex.split(self._entries[source]["command"]))
        kept = []
        for word in words:
            if word in ("-isystem", "-include"):
                kept += [word, next(words)]
            elif word.startswith(("-I", "-D", "-U", "-std=", "-W", "-m", "-f", "-O")):
                kept.append(word)
        return " ".join(map(shlex.quote, kept))


def run_ninja(name, rule, edges):
    """rule: its lines, without the first. edges: (stamp, inputs, variables). Ends the program with ninja's verdict."""
    folder = root() / "build/checks" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["builddir = .", "rule check", *(f"  {line}" for line in rule)]
    for stamp, inputs, variables in edges:
        lines.append(f"build {_escape(stamp)}: check {' '.join(map(_escape, inputs))}")
        lines += [f"  {key} = {str(value).replace('$', '$$')}" for key, value in variables.items()]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    command = ["ninja", "-C", str(folder), f"-j{AT_ONCE}", "-k0", "--quiet"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        print(result.stdout)
    sys.exit(result.returncode)


def _escape(path):
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
