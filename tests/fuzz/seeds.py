#!/usr/bin/env python3
"""Writes the corpus with which the fuzzer of formats starts, as formats_anything reads it.

    .deps/venv/bin/python tests/fuzz/seeds.py FOLDER

The models of tests/formats that are small enough; and of those of Paddle and PyTorch, a program for each operator, with the operations that give
it its sizes.
"""

import json
import lzma
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATS = ROOT / "tests/formats"
sys.path[:0] = [str(ROOT / "tests/models"), *(str(FORMATS / name) for name in ("paddle", "tensorflow", "torch", "keras"))]

import keras_recipe  # noqa: E402
import paddle_recipe  # noqa: E402
import tensorflow_recipe  # noqa: E402
import torch_recipe  # noqa: E402

BETWEEN = b"\n===\n"
MOST_BYTES = 30_000
# Operations whose results are read as constants: sizes, axes, lists.
MAKES_CONSTANTS = {"1.full", "1.full_int_array", "0.combine", "0.constant"}


def compact(document):
    return json.dumps(document, separators=(",", ":")).encode()


def smallest(programs):
    """(operator, program) -> the smallest program of each operator."""
    best = {}
    for operator, program in programs:
        if operator not in best or len(program) < len(best[operator]):
            best[operator] = program
    return sorted(best.items())


def values_of(operation):
    return [value["%"] for value in operation.get("I", []) if "%" in value]


def pir_of_each_operation(document):
    program = json.loads(document["program"]["text"])
    operations = program["program"]["regions"][0]["blocks"][0]["ops"]
    producer, types = {}, {}
    for operation in operations:
        outputs = operation.get("O", [])
        for output in outputs if isinstance(outputs, list) else [outputs]:
            producer[output["%"]] = operation
            types[output["%"]] = output
    for operation in operations:
        if operation["#"] in {"p", "1.data", "1.fetch", *MAKES_CONSTANTS} or "regions" in operation or not isinstance(operation.get("O"), list):
            continue
        kept, open_values, inputs = [operation], values_of(operation), []
        while open_values:
            value = open_values.pop(0)
            made_by = producer.get(value)
            if made_by and made_by["#"] in MAKES_CONSTANTS:
                if made_by not in kept:
                    kept.insert(0, made_by)
                    open_values += values_of(made_by)
            elif value in types and value not in inputs:
                inputs.append(value)
        data = [{"#": "1.data", "A": [{"AT": {"#": "0.a_str", "D": f"x{i}"}, "N": "name"}], "I": [], "O": [types[v]]} for i, v in enumerate(inputs)]
        fetches = []
        for column, output in enumerate(operation["O"][:1]):
            attributes = [{"AT": {"#": "0.a_str", "D": f"y{column}"}, "N": "name"}, {"AT": {"#": "0.a_i32", "D": column}, "N": "col"}]
            fetches.append({"#": "1.fetch", "A": attributes, "I": [{"%": output["%"]}], "O": []})
        block = {"#": "block_0", "args": [], "ops": data + kept + fetches}
        yield operation["#"], compact({"base_code": program["base_code"], "program": {"regions": [{"#": "region_0", "blocks": [block]}]}})


def paddle(folder):
    recipes = {path.name.removesuffix(".xz"): paddle_recipe.read(path) for path in sorted((FORMATS / "paddle/recipes").glob("*.xz"))}
    for name, document in recipes.items():
        if len(document["program"]["text"]) > MOST_BYTES or sum(len(str(tensor)) for tensor in document["parameters"]["tensors"]) > MOST_BYTES:
            continue
        program = paddle_recipe.write_model(document, name.split(".")[0], folder / name)
        parameters = folder / name / (document["parameters"]["file"] or "none")
        parts = [program.read_bytes(), *([parameters.read_bytes()] if parameters.is_file() else [])]
        yield f"paddle_{name}", b"p" if name.endswith(".pir") else b"d", parts
    programs = (each for name, document in recipes.items() if name.endswith(".pir") for each in pir_of_each_operation(document))
    for operator, program in smallest(programs):
        yield f"paddle_{operator.split('.')[-1]}", b"p", [program]


def tensorflow(folder):
    for name in tensorflow_recipe.names():
        if len(tensorflow_recipe.read(name)[1]) > MOST_BYTES:
            continue
        program, head = tensorflow_recipe.materialise(name, folder / name)
        variables = program.parent / "variables"
        index, data = ((variables / f"variables.{ending}").read_bytes() for ending in ("index", "data-00000-of-00001"))
        yield f"tensorflow_{name}", b"s", [program.read_bytes(), index, data, *(text.encode() for text in head.get("assets", {}).values())]


def in_one_storage(rows):
    """Weights that begin at the same place. Their bytes do not matter."""
    rows = json.loads(json.dumps(rows))
    for row in rows["config"].values():
        row["path_name"] = "weight_0"
        row["tensor_meta"]["storage_offset"] = {"as_int": 0}
        for idle in ("requires_grad", "device"):
            row["tensor_meta"].pop(idle, None)
    return rows


def names_in(argument, kind):
    """Names of tensors, or of numbers, that an argument mentions."""
    if isinstance(argument, list):
        return [name for each in argument for name in names_in(each, kind)]
    if not isinstance(argument, dict):
        return []
    if kind in argument and isinstance(argument[kind], str):
        return [argument[kind]]
    return [name for each in argument.values() for name in names_in(each, kind)]


def torch_of_each_node(program):
    graph = program["graph_module"]["graph"]
    numbers = {name: node for node in graph["nodes"] for name in names_in(node["outputs"], "as_name")}
    for node in graph["nodes"]:
        kept, open_numbers = [node], names_in(node["inputs"], "as_name")
        while open_numbers:
            made_by = numbers.get(open_numbers.pop())
            if made_by and made_by not in kept:
                kept.insert(0, made_by)
                open_numbers += names_in(made_by["inputs"], "as_name")
        outputs = names_in(node["outputs"], "name")
        inputs = [name for each in kept for name in names_in([i["arg"] for i in each["inputs"]], "name")]
        inputs = [name for name in dict.fromkeys(inputs) if name in graph["tensor_values"] and name not in outputs]
        if not outputs or outputs[0] not in graph["tensor_values"] or not inputs:
            continue
        mentioned = {name: graph["tensor_values"][name] for name in [*inputs, *outputs] if name in graph["tensor_values"]}
        part = {
            "inputs": [{"as_tensor": {"name": name}} for name in inputs],
            "outputs": [{"as_tensor": {"name": outputs[0]}}],
            "nodes": [{key: each[key] for key in ("target", "inputs", "outputs", "metadata")} for each in kept],
            "tensor_values": mentioned,
        }
        signature = {
            "input_specs": [{"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in inputs],
            "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": outputs[0]}}}}],
        }
        whole = {key: program[key] for key in ("range_constraints", "schema_version") if key in program}
        yield node["target"].removeprefix("torch.ops."), compact({"graph_module": {"graph": part, "signature": signature}, **whole})


def torch(_):
    recipes = {name: torch_recipe.read(name) for name in torch_recipe.NAMES}
    for name, what in recipes.items():
        for spelling, program in what["programs"].items():
            rows = [compact(in_one_storage(what[kind][spelling])) for kind in ("weights", "constants")]
            yield f"torch_{name}_{spelling}", b"t", [compact(program), *rows, bytes(range(256)) * 16]
    for operator, program in smallest(each for what in recipes.values() for p in what["programs"].values() for each in torch_of_each_node(p)):
        yield f"torch_{operator}", b"t", [program]


def keras(_):
    for name in keras_recipe.names():
        head, config = keras_recipe.read(name)
        if len(config) > MOST_BYTES or sum(len(str(entry)) for entry in head["tensors"].values()) > MOST_BYTES:
            continue
        for layout in keras_recipe.LAYOUTS:
            yield f"keras_{name}_{layout}", b"k", [config, keras_recipe.weights_file(keras_recipe.tensors_of(head), layout)]


def trees(_):
    for path in sorted((FORMATS / "trees/models").glob("*.xz")):
        yield f"trees_{path.name.removesuffix('.xz')}", b"l" if path.name.startswith("lgb") else b"x", [lzma.decompress(path.read_bytes())]


def main():
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for source in (paddle, tensorflow, torch, keras, trees):
            for name, letter, parts in source(pathlib.Path(folder)):
                whole = letter + BETWEEN.join(parts)
                if len(whole) <= MOST_BYTES:
                    (target / name).write_bytes(whole)


if __name__ == "__main__":
    main()
