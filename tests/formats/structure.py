"""Graphs as `serin inspect` prints them, compared without their names.

A value is described by its operator, its attributes and the descriptions of its operands; a weight by its type and shape, an input by its
place. Two graphs are equal if the same outputs come out, in whatever order and by whatever names the nodes are printed.
"""

import hashlib
import re

MASK = "mask"
NODE = re.compile(r"^(.+?) = (\w+)\((.*)\)$")


def last_graph(text):
    """[(line, type)] of the optimised graph."""
    block = text[text.rindex("\nafter the passes") :] if "\nafter the passes" in text else text[text.rindex("\nas read") :]
    lines = [line.strip().split("  # ") for line in block.splitlines()[2:]]
    end = next(i for i, (line, *_) in enumerate(lines) if line.startswith("return "))
    return [(line, comment[0] if comment else "") for line, *comment in lines[: end + 1]]


def split(text):
    """At commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def is_mask(op, operands, kind):
    """Bools, or what an exporter makes of them to add to scores."""
    return kind.startswith("bool[") or (op == "Where" and operands[0] == MASK and any("{-3.4028235e+38}" in each for each in operands))


def describe(text):
    """[description of each output], {description: line}. All masks count as equal: exporters spell them in many ways."""
    values, lines, inputs = {}, {}, 0
    graph = last_graph(text)
    for line, kind in graph[:-1]:
        found = NODE.match(line)
        if not found:
            values[line.split(":")[0]] = digest("input", str(inputs))
            inputs += 1
            continue
        name, op, rest = found.groups()
        operands = [values.get(part) or (part if "=" in part.split("[")[0].split("{")[0] else constant(part)) for part in split(rest)]
        for i, each in enumerate(split(name)):
            values[each] = MASK if is_mask(op, operands, kind) else digest(op, *operands, str(i))
            lines[values[each]] = f"{op} {operands}  ({line})"
    return [values[name.split(" as ")[0]] for name in split(graph[-1][0].removeprefix("return "))], lines


def constant(part):
    """x:i64[2]{0,-1} and i64{0,-1} by value; w[64,3] by shape."""
    literal = re.search(r"(?::|^)([a-z0-9]+)?(\[[\d,]*\])?(\{.*\})$", part)
    if literal:
        return f"{literal[1] or ''}{literal[3]}"
    shape = re.search(r"\[[\d,]*\](\{.*\})?$", part)
    return f"weight{shape[0]}" if shape else part
