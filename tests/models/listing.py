"""tests/models.txt: the models, the sizes they are run at, what their inputs must look like; and ONNX Runtime, which answers them."""

import pathlib
from dataclasses import dataclass, field

import numpy as np
import onnxruntime
from onnx import numpy_helper

import recipe

LIST = pathlib.Path(__file__).resolve().parents[1] / "models.txt"
DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


@dataclass
class Entry:
    name: str
    long: bool
    quantised: bool
    dims: dict
    inputs: dict = field(default_factory=dict)  # {input: what it must look like}
    about: str = ""


def entries():
    """{name: Entry} in the order of the file."""
    found = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, dims, inputs, about = (part.strip() for part in line.split("|"))
        long, quantised = "*" in name, "~" in name
        name = name.rstrip("*~")
        if name in found:
            raise ValueError(f"models.txt:{number}: '{name}' is listed twice")
        sizes = {key: int(value) for key, value in (pair.split("=") for pair in dims.split())}
        found[name] = Entry(name, long, quantised, sizes, dict(pair.split(":") for pair in inputs.split()), about)
    return found


def looks_like(seed, kind, shape, dtype):
    """Values of one input: `<N` integers below N, or a named kind; without either, numbers of mean 0 and deviation 1."""
    if kind.startswith("<"):
        return recipe.draw(seed, shape, -0.5, int(kind[1:]) - 0.5).clip(0, None).round().clip(0, int(kind[1:]) - 1).astype(dtype)
    if kind == "prefix":  # an attention mask: the last quarter is padding, in every second row
        mask = np.ones(shape, dtype)
        mask[::2, -(-3 * shape[-1] // 4) :] = 0
        return mask
    if kind.startswith("boxes"):  # x1 <= y1 <= x2 <= y2, so that each is one; the first is the whole image
        corners = np.sort(recipe.draw(seed, shape, 0, float(kind[5:])), axis=-1)
        corners[0] = [0, 0, float(kind[5:]), float(kind[5:])]
        return corners
    if kind.startswith("words"):
        words = kind[6:].split(",")
        return np.array(words, np.object_)[recipe.draw(seed, shape, 0, len(words)).astype(int).clip(0, len(words) - 1)]
    if kind:
        raise ValueError(f"'{kind}' is no kind of input; kinds: <N, prefix, boxesN, words=a,b")
    return recipe.draw(seed, shape, -(3**0.5), 3**0.5, dtype)


def make_inputs(entry, session, dims=None, seed="inputs"):
    """{input: array}, the same in every run."""
    sizes = {**entry.dims, **(dims or {})}
    made = {}
    for tensor in session.get_inputs():
        shape = [size if isinstance(size, int) else sizes[size if size in sizes else "batch"] for size in tensor.shape]
        made[tensor.name] = looks_like(f"{entry.name}/{seed}/{tensor.name}", entry.inputs.get(tensor.name, ""), shape, DTYPES[tensor.type])
    return made


def write_data_set(folder, inputs, outputs):
    """What `serin check` reads: arrays in the order of the model's inputs and outputs."""
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for i, array in enumerate(arrays):
            (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), f"{kind}_{i}").SerializeToString())


# Without VNNI its products of u8 and s8 saturate at 16 bits, which leaves nothing right, unless it is told not to; and then only after it has rewritten the graph.
SATURATES = "vnni" not in pathlib.Path("/proc/cpuinfo").read_text()


def reference(model, optimised=True):
    """A session of ONNX Runtime: one thread. model: a path, or bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # has a meaning where it saturates
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        str(model) if isinstance(model, pathlib.Path) else model, options, providers=["CPUExecutionProvider"]
    )
