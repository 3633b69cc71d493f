"""What deploy/docker/Dockerfile says, read as text."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"


def stages():
    """{name: [(instruction, what follows)]}, the instructions of the stages that one is made from before its own."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    found, current = {}, []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = rest.split()
            current = found[name] = list(found.get(base, []))
        elif instruction:
            current.append((instruction, " ".join(rest.split())))
    return found


def targets():
    """Of them, what images are made of."""
    return [name for name in stages() if name != "runtime" and not name.startswith(("build", "tools"))]


def said(stage, instruction):
    """The last such instruction: as a list where it is one in JSON; nothing: None."""
    text = next((rest for name, rest in reversed(stages()[stage]) if name == instruction), None)
    return json.loads(text) if text and text.startswith("[") else text


def packages():
    install = next(rest for _, rest in stages()["runtime"] if "apt-get" in rest)
    return {word for word in re.search(r" install (.*?)&&", install)[1].split() if not word.startswith("-")}


def links():
    """Paths that lead to the program."""
    return re.search(r"for name in (.*?);", dict(stages()["runtime"])["RUN"])[1].split()


def taken(paths):
    """Those that .dockerignore leaves in the context. Of its patterns the last one that fits a path, or a folder that it lies in, decides."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    decisions = [(not line.startswith("!"), re.compile(_expression(line.lstrip("!")) + r"(/.*)?")) for line in patterns]
    return [path for path in paths if not next((out for out, pattern in reversed(decisions) if pattern.fullmatch(path)), False)]


def _expression(pattern):
    words = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*"}
    return "".join(words.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*)", pattern))
