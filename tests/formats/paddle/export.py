"""Makes recipes and answers of the models in zoo_*.py, with Paddle; see README.md.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-paddle.txt
    venv/bin/python tests/formats/paddle/export.py [NAME...]

Paddle 3 writes PIR (`<name>.pir`); with Paddle 2, of deploy/requirements-paddle2.txt, it writes a ProgramDesc (`<name>.desc`).
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "models")]
os.environ.setdefault("GLOG_minloglevel", "3")

import numpy as np  # noqa
import paddle  # noqa
from paddle import inference, nn  # noqa

import paddle_recipe  # noqa
import recipe  # noqa
import stored  # noqa
import zoo_detection  # noqa
import zoo_operators  # noqa
import zoo_quantised  # noqa
import zoo_sequence  # noqa
import zoo_vision  # noqa

PIR = paddle.__version__ >= "3"
ZOO = {**zoo_vision.MODELS, **zoo_sequence.MODELS, **zoo_detection.MODELS, **zoo_operators.MODELS, **zoo_quantised.MODELS}
NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D, nn.BatchNorm)
BATCH = 2
PIR_TYPES = {"0.t_f32": "float32", "0.t_i64": "int64", "0.t_i32": "int32", "0.t_bool": "bool", "0.t_ui8": "uint8", "0.t_i8": "int8", "0.t_f64": "float64"}


def bounds(name, layer, tensor):
    """The range of a parameter: networks stay lively in their depth, and nothing is zero or one everywhere."""
    shape = tensor.shape
    if isinstance(layer, (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2D, *NORMS)):
        return (0.7, 1.3) if name in ("weight", "scale") else (-0.3, 0.3)
    if isinstance(layer, nn.Embedding):
        return -1.0, 1.0
    if isinstance(layer, nn.PReLU):
        return 0.1, 0.4
    if len(shape) < 2 and not name.startswith("weight"):
        return (-0.2, 0.2) if "bias" in name or name in ("u", "w") else (0.7, 1.3)
    if not hasattr(layer, "weight") and not name.startswith("weight"):
        return -0.5, 0.5
    fan = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
    if isinstance(layer, nn.Conv2DTranspose):
        fan = shape[0] * shape[2] * shape[3] // 4
    limit = (3 * (2 if len(shape) > 2 else 1) / max(fan, 1)) ** 0.5
    return -float(limit), float(limit)


class Drawn:
    """The weights of a network, replaced by drawn ones."""

    def __init__(self, model, net):
        self.model, self.table, self.last = model, {}, None
        for layer in net.sublayers(include_self=True):
            for name, tensor in layer._parameters.items():
                if tensor is None or tensor.name in self.table:
                    continue
                self.set(tensor, *bounds(name, layer, tensor))
                if len(tensor.shape) >= 2 and isinstance(layer, (nn.Linear, nn.Conv2D)):
                    self.last = tensor
            for name, tensor in layer._buffers.items():
                if tensor is None or tensor.numpy().size == 0 or (isinstance(layer, NORMS) and name in ("_mean", "_variance")):
                    continue
                self.table[tensor.name] = [str(tensor.dtype).removeprefix("paddle."), list(tensor.shape), tensor.numpy().ravel().tolist(), 0]

    def set(self, tensor, low, high):
        low, high = float(np.float32(low)), float(np.float32(high))
        dtype = str(tensor.dtype).removeprefix("paddle.")
        self.table[tensor.name] = [dtype, list(tensor.shape), low, high]
        tensor.set_value(recipe.draw(f"{self.model}/{tensor.name}", tensor.shape, low, high, np.dtype(dtype)))

    def calibrate(self, net, inputs):
        """Statistics of BatchNorm like those of its input, and results of deviation 1."""

        def before(layer, operands):
            x = operands[0].numpy()
            axes = tuple(i for i in range(x.ndim) if i != 1)
            mean, variance = x.mean(axes), x.var(axes) + 1e-3
            self.set(layer._mean, mean.mean() - mean.std(), mean.mean() + mean.std() + 1e-3)
            self.set(layer._variance, np.median(variance) * 0.7, np.median(variance) * 1.3)

        hooks = [layer.register_forward_pre_hook(before) for layer in net.sublayers(include_self=True) if isinstance(layer, NORMS)]
        results = net(*inputs)
        for hook in hooks:
            hook.remove()
        first = results[0] if isinstance(results, (list, tuple)) else results
        deviation = float(first.astype("float32").std())
        if self.last is not None and not getattr(net, "unscaled", False) and not 0.3 < deviation < 8:
            dtype, _, low, high = self.table[self.last.name]
            self.set(self.last, low / deviation, high / deviation)


def as_they_are(net):
    """The elements themselves, of quantised networks: their weights are no numbers that can be drawn."""
    tensors = [*net.parameters(), *net.buffers(), *(layer._zero_point for layer in net.sublayers() if hasattr(layer, "_zero_point"))]
    return {t.name: [str(t.dtype).removeprefix("paddle."), list(t.shape), t.numpy().ravel().tolist(), 0] for t in tensors}


def parameters(program):
    """{name: [dtype, dims]}, as the program declares them."""
    if PIR:
        ops = json.loads(program)["program"]["regions"][0]["blocks"][0]["ops"]
        types = {op["A"][3]: op["O"]["TT"]["D"] for op in ops if op["#"] == "p" and op["OA"][0]}  # others are not stored
        return {name: [PIR_TYPES[parts[0]["#"]], parts[1]] for name, parts in types.items()}
    tensors = {var.name: var.type.lod_tensor.tensor for var in describe(program).blocks[0].vars if var.persistable and var.name not in ("feed", "fetch")}
    numbers = {number: name for name, number in paddle_recipe.NUMBERS.items()}
    return {name: [numbers[tensor.data_type], list(tensor.dims)] for name, tensor in tensors.items()}


def describe(program):
    from paddle.base.proto import framework_pb2

    desc = framework_pb2.ProgramDesc()
    desc.ParseFromString(program)
    return desc


def stripped(program):
    """Without call stacks, which have paths of the machine."""
    if PIR:
        return program
    desc = describe(program)
    for block in desc.blocks:
        for op in block.ops:
            kept = [attr for attr in op.attrs if attr.name not in ("op_callstack", "op_role", "op_role_var", "op_namescope", "op_device", "with_quant_attr")]
            del op.attrs[:]
            op.attrs.extend(kept)
    return desc.SerializeToString(deterministic=True)


def sizes(dims, batch):
    """A size is a number, None (the batch), or "name=number" for another open one."""
    return [batch if dim is None else int(dim.split("=")[1]) if isinstance(dim, str) else dim for dim in dims]


def export(model, folder):
    make, inputs = ZOO[model]
    paddle.seed(1)
    quantised = model in zoo_quantised.MODELS
    net = make(lambda plain: Drawn(model, plain)) if quantised else make()
    net.eval()
    document = {"inputs": [[name, dtype, sizes(dims, BATCH), look] for name, dtype, dims, look in inputs]}
    arrays = paddle_recipe.inputs_of(document, model)
    drawn = None if quantised else Drawn(model, net)
    if drawn:
        drawn.calibrate(net, [paddle.to_tensor(array) for array in arrays.values()])
    table = drawn.table if drawn else as_they_are(net)
    spec = [paddle.static.InputSpec([None if isinstance(dim, str) else dim for dim in dims], dtype, name) for name, dtype, dims, _ in inputs]
    path = folder / "inference"
    paddle.jit.save(net, str(path), input_spec=spec)
    file = "inference.json" if PIR else "inference.pdmodel"
    program = (folder / file).read_bytes()
    declared = parameters(program)
    document["program"] = {"file": file, "text": stripped(program).decode("latin-1")}
    # What no layer has is state that a program for inference does not read.
    document["parameters"] = {"file": "inference.pdiparams", "tensors": [[name, *table.get(name, [*declared[name], 0, 0])] for name in declared]}
    assert not re.search(r"/(work|home|tmp|usr)/", document["program"]["text"]), "a path of this machine"
    return document, arrays


def answers(document, model, arrays, folder):
    program = paddle_recipe.write_model(document, model, folder)
    parameters = folder / "inference.pdiparams"
    config = inference.Config(str(program), str(parameters) if parameters.exists() else "")
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_ir_optim(False)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    for name in predictor.get_input_names():
        predictor.get_input_handle(name).copy_from_cpu(arrays[name])
    predictor.run()
    return {name: predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()}


def main(names):
    kind = "pir" if PIR else "desc"
    for model in names:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            try:
                with paddle.utils.unique_name.guard():  # names do not depend on the models before
                    document, arrays = export(model, folder)
                shutil.rmtree(folder)
                outputs = answers(document, model, arrays, folder)
                stored.assert_spread({name: value for name, value in outputs.items() if model not in zoo_detection.MODELS and model not in zoo_operators.MODELS})
            except Exception as error:
                print(f"FAILED {model} {kind}: {type(error).__name__} {str(error)[-300:]}", flush=True)
                continue
            paddle_recipe.write(document, HERE / f"recipes/{model}.{kind}.xz")
            stored.write_answers(HERE / f"answers/{model}.{kind}.xz", outputs)
            print(model, kind, {name: (value.shape, round(float(value.astype("float64").std()), 3)) for name, value in outputs.items()}, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(ZOO))
