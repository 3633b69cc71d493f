"""Ways to look at C++ files that need the compiler's own flags: read from build/compile_commands.json, run and remembered by ninja.

Ninja does what such a check needs: a few at a time, and nothing again whose inputs have not changed.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from repo import root

AT_ONCE = 2


class Commands:
    """How each source file is compiled."""

    def __init__(self):
        top = root()
        listed = top / "build/compile_commands.json"
        if not listed.exists():
            sys.exit("build/compile_commands.json is missing; configure first: cmake --preset release")
        self._entries = {}
        for entry in json.loads(listed.read_text()):
            path = Path(entry["directory"], entry["file"]).resolve()
            if path.is_relative_to(top) and not path.is_relative_to(top / "build"):
                self._entries.setdefault(path.relative_to(top), entry)

    def sources(self):
        return sorted(self._entries)

    def object_of(self, source):
        """Newer than every file the source includes, once it is built."""
        entry = self._entries[source]
        words = shlex.split(entry["command"])
        return Path(entry["directory"], words[words.index("-o") + 1])

    def flags_for(self, header):
        """Include folders, definitions and language flags of the header's own .cc, else of a source beside it, else above it."""
        own = header.with_suffix(".cc")
        if own in self._entries:
            return self._flags(own)
        for folder in header.parents:
            near = [source for source in self.sources() if source.is_relative_to(folder)]
            if near:
                return self._flags(min(near, key=lambda source: (len(source.parts), source)))
        sys.exit(f"{header}: nothing near it is compiled, so its flags are unknown")

    def _flags(self, source):
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
