#!/usr/bin/env python3
"""Writes programs whose operators miss an argument, or have another one: what random bytes seldom reach behind the syntax of JSON and protobuf.

    .deps/venv/bin/python tests/fuzz/seeds.py SEEDS
    .deps/venv/bin/python tests/fuzz/arguments.py SEEDS FOLDER         about 50,000 files
    find FOLDER -type f | xargs -n 500 build-fuzz/formats_fuzz -timeout=10
"""

import copy
import json
import pathlib
import sys

BETWEEN = b"\n===\n"
FAR = [2**31 - 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
LISTS = [[], [0], [-1, -1], [0] * 5, [2**40] * 2, [2**62] * 3, [2**63 - 1], [2**63 - 1] * 4, [-(2**63)] * 2]
OTHER_SIZES = [[], [0] * 4, [1] * 9, [2**40] * 4, [2**62] * 2]


# --- torch.export: JSON ----------------------------------------------------------------------------------------------------------------

TORCH = [{"as_int": value} for value in (0, -1, *FAR)]
TORCH += [{"as_ints": values} for values in LISTS] + [{"as_float": value} for value in (1e30, -1e300)]
TORCH += [{"as_none": True}, {"as_bool": True}, {"as_string": "x"}, {"as_tensors": []}, {"as_optional_tensors": []}, {"as_sym_ints": []}]


def torch(document):
    """Yields after each change, and takes it back."""
    graph = document["graph_module"]["graph"]
    for node in graph["nodes"]:
        for i, argument in enumerate(list(node["inputs"])):
            del node["inputs"][i]
            yield
            node["inputs"].insert(i, argument)
            for other in TORCH:
                node["inputs"][i] = {**argument, "arg": other}
                yield
            node["inputs"][i] = argument
    for name, kept in list(graph["tensor_values"].items()):
        del graph["tensor_values"][name]
        yield
        for sizes in OTHER_SIZES:
            changed = [{"as_int": size} for size in sizes]
            graph["tensor_values"][name] = {**kept, "sizes": changed, "strides": [{"as_int": 1}] * len(sizes)}
            yield
        for dtype in (1, 5, 6, 12):
            graph["tensor_values"][name] = {**kept, "dtype": dtype}
            yield
        graph["tensor_values"][name] = kept


# --- Paddle: PIR in JSON ---------------------------------------------------------------------------------------------------------------

PADDLE = [0, -1, *FAR, *LISTS, 1e30, -1e300, True, "x", [{"#": "0.a_i64", "D": 0}]]


def paddle(document):
    for operation in document["program"]["regions"][0]["blocks"][0]["ops"]:
        if not isinstance(operation.get("A"), list) or not isinstance(operation.get("I"), list):
            continue
        if operation["#"] == "1.data":
            tensor = operation["O"][0]["TT"]["D"]
            kept = copy.copy(tensor)
            for sizes in OTHER_SIZES:
                tensor[1] = sizes
                yield
            tensor[:] = kept
            for dtype in ("0.t_i64", "0.t_bool", "0.t_f16"):
                tensor[0] = {"#": dtype}
                yield
            tensor[:] = kept
            continue
        for list_of, others in (("A", PADDLE), ("I", [0, 99999])):
            for i, argument in enumerate(list(operation[list_of])):
                del operation[list_of][i]
                yield
                operation[list_of].insert(i, argument)
                for other in others:
                    operation[list_of][i] = {"N": argument["N"], "AT": {**argument["AT"], "D": other}} if list_of == "A" else {"%": other}
                    yield
                operation[list_of][i] = argument


# --- TensorFlow: protobuf --------------------------------------------------------------------------------------------------------------


def varint(value):
    value, out = value % 2**64, b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def message(field, body):
    return varint(field << 3 | 2) + varint(len(body)) + body


def integer(field, value):
    return varint(field << 3) + varint(value)


def take_varint(data, at):
    value, shift = 0, 0
    while True:
        byte, at = data[at], at + 1
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, bytes of the whole field, bytes of its value)"""
    at = 0
    while at < len(data):
        begin = at
        tag, at = take_varint(data, at)
        if tag & 7 == 2:
            size, at = take_varint(data, at)
        elif tag & 7 == 0:
            size = take_varint(data, at)[1] - at
        else:
            size = 8 if tag & 7 == 1 else 4
        at += size
        yield tag >> 3, data[begin:at], data[at - size : at]


TENSORFLOW = [integer(3, value) for value in (0, -1, *FAR)] + [message(1, b"".join(integer(3, each) for each in values)) for values in LISTS]
TENSORFLOW += [message(2, b""), message(2, b"x"), b"\x25\xff\xff\xff\x7e", integer(6, 1), integer(6, 7), integer(6, 99), b""]
NODES = {(2, 2, 1), (2, 2, 2, 1, 3)}  # meta_graphs.graph_def.node, and those of library.function


def changed_nodes(node):
    parts = list(fields(node))
    for i, (number, _, value) in enumerate(parts):
        before, after = (b"".join(whole for _, whole, _ in side) for side in (parts[:i], parts[i + 1 :]))
        if number in {3, 5}:  # an operand, an attribute
            yield before + after
        if number == 5:
            key = b"".join(whole for inner, whole, _ in fields(value) if inner == 1)
            for other in TENSORFLOW:
                yield before + message(5, key + message(2, other)) + after


def tensorflow(data, seen, path=()):
    """Yields the message with one node changed; each operator once."""
    if path in NODES:
        operator = next((value for number, _, value in fields(data) if number == 2), b"")
        if operator not in seen:
            seen.add(operator)
            yield from changed_nodes(data)
        return
    if not any(nodes[: len(path)] == path for nodes in NODES):
        return
    parts = list(fields(data))
    for i, (number, _, value) in enumerate(parts):
        for changed in tensorflow(value, seen, (*path, number)) if isinstance(value, bytes) else ():
            yield b"".join(whole for _, whole, _ in parts[:i]) + message(number, changed) + b"".join(whole for _, whole, _ in parts[i + 1 :])


def main():
    seeds, target = map(pathlib.Path, sys.argv[1:3])
    target.mkdir(parents=True, exist_ok=True)
    seen = set()
    for seed in sorted(seeds.iterdir()):
        letter, (program, *rest) = seed.read_bytes()[:1], seed.read_bytes()[1:].split(BETWEEN)
        if letter == b"s":
            changes = (BETWEEN.join([changed, *rest]) for changed in tensorflow(program, seen))
        elif letter in {b"p", b"t"} and not rest:  # a program of one operator
            document = json.loads(program)
            steps = (torch if letter == b"t" else paddle)(document)
            changes = (json.dumps(document, separators=(",", ":")).encode() for _ in steps)
        else:
            continue
        for number, change in enumerate(changes):
            (target / f"{seed.name}_{number}").write_bytes(letter + change)


if __name__ == "__main__":
    main()
