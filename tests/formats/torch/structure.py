"""Graphs as `serin inspect` prints them, compared without their names.

A value is described by its operator, its attributes and the descriptions of its operands; a weight by its type and shape, an input by its
place. Two graphs are equal if the same outputs come out, in whatever order and by whatever names the nodes are printed.
"""

import hashlib
import re

NODE = re.compile(r"^(.+?) = (\w+)\((.*)\)$")


def last_graph(text):
    """The lines of the optimised graph."""
    block = text[text.rindex("\nafter the passes") :] if "\nafter the passes" in text else text[text.rindex("\nas read") :]
    lines = [line.split("  #")[0].strip() for line in block.splitlines()[2:]]
    end = next(i for i, line in enumerate(lines) if line.startswith("return "))
    return lines[: end + 1]


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


def symbols_renamed(text, names):
    return re.sub(r"\b[a-z_]\w*\b", lambda match: names.get(match[0], match[0]), text)


def describe(text, alike=()):
    """[description of each output], {description: line}. alike: pairs of texts that count as equal."""
    values, lines, inputs = {}, {}, 0
    graph = last_graph(text)
    for line in graph[:-1]:
        found = NODE.match(line)
        if not found:
            values[line.split(":")[0]] = digest("input", str(inputs))
            inputs += 1
            continue
        name, op, rest = found.groups()
        described = []
        for part in split(rest):
            value = values.get(part)
            if value is None and "=" not in part.split("[")[0].split("{")[0]:
                value = constant(part)
            described.append(value or part)
        for one, other in alike:
            described = [other if part == one else part for part in described]
        multiple = split(name)
        for i, each in enumerate(multiple):
            values[each] = digest(op, *described, str(i))
            lines[values[each]] = f"{op} {described}  ({line})"
    outputs = [values[name.split(" as ")[0]] for name in split(graph[-1].removeprefix("return "))]
    return outputs, lines


def constant(part):
    """x:i64[2]{0,-1} and i64{0,-1} by value; w[64,3] by shape."""
    literal = re.search(r"(?::|^)([a-z0-9]+)?(\[[\d,]*\])?(\{.*\})$", part)
    if literal:
        return f"{literal[1] or ''}{literal[3]}"
    shape = re.search(r"\[[\d,]*\](\{.*\})?$", part)
    return f"weight{shape[0]}" if shape else part
