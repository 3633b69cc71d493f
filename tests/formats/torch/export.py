#!/usr/bin/env python3
"""Makes the recipes and answers of this folder anew, with torch.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-torch.txt
    venv/bin/python tests/formats/torch/export.py NAME...

The weights are draws (tests/models/recipe.py), scaled so that each layer's results have a deviation of 1, and the statistics of each
BatchNormalization are those of its input: a network of other random weights would answer the same to everything.
"""

import base64
import contextlib
import io
import json
import pathlib
import sys
import warnings
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "models")]

import numpy as np
import torch

import recipe
import stored
import torch_recipe
import torch_zoo
from calibrate import few_bits
from strip import FEW, SMALL, spread

warnings.simplefilter("ignore")
torch.set_num_threads(1)
LAYERS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.ConvTranspose2d, torch.nn.Linear)
NORMS = torch.nn.modules.batchnorm._BatchNorm


def fill(name, tensors, ranges):
    for key, (low, high) in ranges.items():
        tensor = tensors[key]
        tensor.data = torch.from_numpy(recipe.draw(f"{name}/{key}", [tensor.numel()], low, high).reshape(tuple(tensor.shape)))


def drawn_ranges(tensors):
    """{name: (low, high)} of what becomes a draw."""
    ranges = {}
    for key, tensor in tensors.items():
        values = tensor.detach().numpy().astype(np.float64) if tensor.dtype == torch.float32 and tensor.is_contiguous() else np.zeros(0)
        if values.size >= SMALL and np.isfinite(values).all() and len(np.unique(values)) > FEW and "running_" not in key:
            ranges[key] = tuple(map(float, spread(values).split(" ")[1:]))
    return ranges


def settle(module, inputs, ranges, names):
    """One run: each layer's weight is divided by the deviation of its result, each norm takes the statistics of its input."""

    def scale(layer, _, result):
        key = names.get(id(layer.weight))
        sigma = float(result.std())
        if key in ranges and sigma > 1e-6 and key not in done:
            done.add(key)
            ranges[key] = tuple(float(f"{bound / sigma:.4g}") for bound in ranges[key])
            layer.weight.data /= sigma
            bias = 0 if layer.bias is None else layer.bias.reshape(-1, *[1] * (result.dim() - 2 if "Conv" in type(layer).__name__ else 0))
            return (result - bias) / sigma + bias
        return None

    def observe(norm, operands):
        x = operands[0].double()
        axes = [axis for axis in range(x.dim()) if axis != 1]
        mean, var = x.mean(axes).numpy(), x.var(axes, unbiased=False).numpy()
        var = np.maximum(var, np.maximum(1e-3 * var.max() + 1e-12, 1e-2 * mean**2))
        norm.running_mean.data = torch.from_numpy(few_bits(mean, np.sqrt(var) / 16))
        norm.running_var.data = torch.from_numpy(few_bits(var, var / 16))

    done, handles = set(), []
    for part in module.modules():
        if isinstance(part, LAYERS):
            handles.append(part.register_forward_hook(scale))
        elif isinstance(part, NORMS):
            handles.append(part.register_forward_pre_hook(observe))
    module(*inputs)
    for handle in handles:
        handle.remove()


def plain(program):
    """Without what names this machine."""
    for node in program["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    program["graph_module"]["metadata"] = {}
    program["graph_module"]["module_call_graph"] = []
    for group in ("tensor_values",):
        for value in program["graph_module"]["graph"][group].values():
            value.pop("device", None)
    return json.loads(json.dumps(program).replace(str(pathlib.Path.cwd()), ""))


def saved(program):
    """(program, weights' list, constants' list, {path: bytes})"""
    file = io.BytesIO()
    torch.export.save(program, file)
    archive = zipfile.ZipFile(file)
    entries = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    lists = [json.loads(entries[f"data/{kind}/model_{kind}_config.json"]) for kind in ("weights", "constants")]
    files = {}
    for kind, each in zip(("weights", "constants"), lists):
        for key, row in each["config"].items():
            path = f"data/{kind}/{row['path_name']}"
            files.setdefault(path, ([], entries[path]))[0].append(key)  # tied weights have two names
    return plain(json.loads(entries["models/model.json"])), *lists, files


def payloads(name, files, ranges):
    made = {}
    for path, (keys, content) in files.items():
        made[path] = {"raw": base64.b64encode(content).decode()}
        for key in keys:
            if key in ranges:
                drawn = {"seed": key, "count": len(content) // 4, "uniform": list(ranges[key])}
                if torch_recipe.payload(name, path, drawn) == content:
                    made[path] = drawn
    return made


def tensors_of(answer):
    if isinstance(answer, torch.Tensor):
        return [answer]
    return [tensor for each in (answer.values() if isinstance(answer, dict) else answer or []) for tensor in tensors_of(each)]


@contextlib.contextmanager
def unchecked():
    """torch looks at the numbers of quantile where they are on a CPU, so that it cannot export it there. For other devices it takes them as they are."""
    checks = torch._subclasses.fake_impls.op_implementations_checks
    checks.insert(0, (lambda function: function is torch.ops.aten.equal.default, lambda *_, **__: True))
    yield
    checks.pop(0)


def exported(module, examples, dynamic):
    """With open sizes, as far as the model lets them be open."""
    symbols = {symbol: torch.export.Dim(symbol) for axes in dynamic.values() for symbol in axes.values()}
    auto = torch.export.Dim.AUTO
    for dim in (symbols.get, lambda symbol: symbols[symbol] if symbol == "batch" else auto, lambda _: auto):
        sizes = tuple({axis: dim(symbol) for axis, symbol in dynamic.get(key, {}).items()} for key in examples)
        try:
            return torch.export.export(module, tuple(examples.values()), dynamic_shapes=sizes)
        except Exception as error:  # noqa: BLE001 (several kinds)
            failure = error
    raise failure


def export(name):
    module, examples, dynamic, dims, kinds = torch_zoo.make(name)
    tensors = dict(module.named_parameters()) | dict(module.named_buffers())
    ranges = drawn_ranges(tensors)
    fill(name, tensors, ranges)
    shapes = {}
    for key, example in examples.items():
        shape = list(example.shape)
        for axis, symbol in dynamic.get(key, {}).items():
            shape[axis] = dims.get(symbol, 2) if symbol != "batch" else max(2, dims.get(symbol, 2))
        shapes[key] = [shape, str(example.dtype).removeprefix("torch."), kinds.get(key, "")]
    what = {"inputs": shapes, "programs": {}, "weights": {}, "constants": {}, "payloads": {}}
    inputs = [torch.from_numpy(np.asarray(each)) for each in torch_recipe.make_inputs(name, what)]
    with torch.no_grad():
        settle(module, inputs, ranges, {id(tensor): key for key, tensor in tensors.items()})
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        fill(name, tensors, ranges)
        with unchecked():
            program = exported(module, examples, dynamic)
            spellings = {"aten": program, "core": program.run_decompositions()}
        for spelling, each in spellings.items():
            what["programs"][spelling], what["weights"][spelling], what["constants"][spelling], files = saved(each)
            what["payloads"][spelling] = payloads(name, files, ranges)
        outputs = {f"output_{i}": tensor.numpy() for i, tensor in enumerate(tensors_of(module(*inputs)))}
    torch_recipe.write(name, what)
    stored.write_answers(torch_recipe.answers_path(name), outputs)
    spreads = [f"{value.std():.3g}" for value in outputs.values() if value.dtype.kind == "f"]
    sizes = [path.stat().st_size for path in (torch_recipe.recipe_path(name), torch_recipe.answers_path(name))]
    print(f"{name}: {sizes} bytes, deviations {spreads}", flush=True)


class Small(torch.nn.Module):
    """What is worth having as torch writes it: a weight with the strides of its transposition, a tied one, a constant of bools."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 6)
        self.turned = torch.nn.Parameter(self.layer.weight.detach().clone().t())
        self.register_buffer("mask", torch.tensor([True, False, True, True, False, True]), persistent=False)
        self.head = torch.nn.Linear(6, 6, bias=False)
        self.head.weight = self.layer.weight

    def forward(self, x):
        hidden = torch.relu(self.layer(x)) @ self.turned
        return {"scores": self.head(torch.where(self.mask, hidden, x)), "sum": hidden.sum(-1)}


def export_small():
    """One archive byte for byte as torch.export.save writes it, but for the places where nodes were traced."""
    torch.manual_seed(1)
    module, x = Small().eval(), torch.randn(3, 6)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, str(HERE / "as_written.pt2"))
    with torch.no_grad():
        answers = module(x)
    stored.write_answers(HERE / "answers" / "as_written.npz.xz", {"input": x.numpy()} | {key: each.numpy() for key, each in answers.items()})


if __name__ == "__main__":
    if "as_written" in sys.argv:
        sys.argv.remove("as_written")
        export_small()
    for each in sys.argv[1:]:
        try:
            export(each)
        except Exception as error:  # noqa: BLE001 (the others are still made)
            print(f"{each}: {type(error).__name__}: {error}"[:500], flush=True)
