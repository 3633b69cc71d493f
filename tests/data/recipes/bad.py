"""Files that must not load (two: must not run), one flaw each. CASES is the list; bad/README.md is printed from it.

Each is made from a small valid model, so that nothing but its flaw can be the reason. Where ONNX Runtime takes such a file all the same,
the script says so: it is stricter or laxer than the ONNX specification there, and Serin follows the specification.
"""

import numpy as np
import onnx
from onnx import helper

from .common import build, normal, reference, serialize
from .external import move_out
from .not_a_model import GIT_LFS, HTML, PICKLE, SAFETENSORS, flipped_length, truncated, zip_file

GOOD = """good (float[batch, 8] x) => (float[batch, 4] y) {
    product = MatMul(x, w)
    y = Relu(product)
}"""
CONV = """conv (float[batch, 4, 6, 6] image) => (float[batch, 8, h, v] y) {
    y = Conv<%s>(image, w)
}"""


def good():
    return build(GOOD, {"w": normal(np.random.default_rng(17), 8, 4)})


def conv(attributes, weight_shape=(8, 4, 3, 3)):
    model = build(CONV % attributes, {"w": np.ones(weight_shape, np.float32)})
    model.graph.node[0].name = "the_conv"
    return model


def one_node(inputs, op, output="float y", weights=None, attributes=""):
    """`inputs`: declarations as in a signature, split by "; "; the node takes them in order, then the weights."""
    inputs = inputs.split("; ")
    names = [declared.split()[-1] for declared in inputs] + list(weights or {})
    model = build(f"one ({', '.join(inputs)}) => ({output}) {{ {output.split()[-1]} = {op}{attributes}({', '.join(names)}) }}", weights)
    model.graph.node[0].name = f"the_{op.lower()}"
    return model


# ---- M5, M6: versions, operators, the graph's structure ----

def opset_too_new():
    model = good()
    model.opset_import[0].version = 999
    return model


def no_opset():
    model = good()
    model.ClearField("opset_import")
    return model


def unknown_ops():
    model = build("""unknown (float[batch, 8] x) => (float[batch, 8] y) {
        a = Relu(x)
        b = FrobnicateQuickly(a)
        c = Sigmoid(b)
        d = Defenestrate(c)
        y = TransmogrifyAll(d)
    }""")
    for node in model.graph.node:
        node.name = f"node_{node.output[0]}"
    return model


def unknown_domain():
    model = good()
    model.graph.node[1].domain = "com.example.secret"
    return model


def no_outputs():
    model = good()
    model.graph.ClearField("output")
    return model


def cycle():
    return build("""cycle (float[8] x) => (float[8] y) {
        a = Add(x, b)
        b = Relu(a)
        y = Sigmoid(b)
    }""")


def duplicate_value():
    return build("""duplicate (float[8] x) => (float[8] y) {
        a = Relu(x)
        a = Sigmoid(x)
        y = Tanh(a)
    }""")


def dangling_input():
    return build("""dangling (float[8] x) => (float[8] y) { y = Add(x, nowhere) }""")


def recursive_function():
    model = build("recursive (float[8] x) => (float[8] y) { y = Again(x) }")
    model.graph.node[0].domain = "local"
    model.opset_import.append(helper.make_opsetid("local", 1))
    again = helper.make_node("Again", ["in"], ["out"], domain="local")
    model.functions.append(helper.make_function("local", "Again", ["in"], ["out"], [again], list(model.opset_import)))
    return model


# ---- M7, M8: where the weights are, and how many ----

def weight(change):
    model = good()
    change(model.graph.initializer[0])
    return model


def set_dims(*dims):
    def change(tensor):
        tensor.dims[:] = dims
    return weight(change)


def raw_and_typed():
    return weight(lambda tensor: tensor.float_data.extend([0.0] * 32))


def unknown_dtype():
    def change(tensor):
        tensor.data_type = 77
    return weight(change)


def external(location, **numbers):
    def change(tensor):
        tensor.ClearField("raw_data")
        move_out(tensor, location, **numbers)
    return weight(change)


# ---- M9: attributes, and values that only a run shows ----

def concat_without_axis():
    return one_node("float[2, 3] x", "Concat", "float[4, 3] y")


def gather():
    return one_node("float[8, 4] table; int64[batch] indices", "Gather", "float[batch, 4] y")


def reshape_at_run_time():
    return one_node("float[batch, 8] x; int64[2] shape", "Reshape", "float[a, b] y")


def ints(name, *values):
    return f"<{name}: ints = {list(values)}>"


KERNEL = "kernel_shape: ints = [3, 3]"

# file (.onnx): row of the bad-input list, what makes it, what the answer must say; words in `backticks` must stand in it.
CASES = {
    "empty": ("M1", lambda: b"", "the file is empty"),
    "one_byte": ("M1", lambda: b"\x08", "not an ONNX model, or cut short; its size"),
    "truncated_10pct": ("M2", lambda: truncated(good(), 10), "cut short: the byte offset, what was announced and what is there"),
    "truncated_50pct": ("M2", lambda: truncated(good(), 50), "the same"),
    "truncated_90pct": ("M2", lambda: truncated(good(), 90), "the same"),
    "flipped_length": ("M2", lambda: flipped_length(good()), "a length that runs past the end, or a malformed field; the byte offset"),
    "html": ("M4", lambda: HTML, "an `HTML` page, not a model"),
    "git_lfs": ("M4", lambda: GIT_LFS, "a `Git LFS` pointer; fetch the file itself"),
    "zip": ("M4", lambda: zip_file(good()), "a `zip` archive; unpack it"),
    "pickle": ("M4", lambda: PICKLE, "a Python `pickle`; export the model to ONNX"),
    "safetensors": ("M4", lambda: SAFETENSORS, "a `safetensors` file: weights without a graph"),
    "opset_too_new": ("M5", opset_too_new, "opset `999` and the newest that is supported"),
    "no_opset": ("M5", no_opset, "no `opset` is declared"),
    "unknown_ops": ("M5", unknown_ops, "all three at once with their nodes: `FrobnicateQuickly` `Defenestrate` `TransmogrifyAll`"
                    " `node_b` `node_d` `node_y`"),
    "unknown_domain": ("M5", unknown_domain, "the domain `com.example.secret` and the operator `Relu`"),
    "no_outputs": ("M6", no_outputs, "the graph has no `outputs`"),
    "cycle": ("M6", cycle, "a cycle, or a value used before it is made: `b`"),
    "duplicate_value": ("M6", duplicate_value, "the value made twice: `a`"),
    "dangling_input": ("M6", dangling_input, "a value without a producer: `nowhere`"),
    "recursive_function": ("M6", recursive_function, "the function that calls itself: `Again`"),
    "dims_overflow": ("M7", lambda: set_dims(1 << 33, 1 << 33), "initializer `w`: the element count overflows"),
    "negative_dim": ("M7", lambda: set_dims(-8, -4), "initializer `w`: dimension `-8`"),
    "raw_size_mismatch": ("M7", lambda: set_dims(8, 5), "initializer `w`: has `128` bytes, its shape requires `160`"),
    "raw_and_typed": ("M7", raw_and_typed, "initializer `w`: both raw and typed data"),
    "unknown_dtype": ("M7", unknown_dtype, "initializer `w`: data type `77`"),
    "external_absolute": ("M8", lambda: external("/etc/passwd", length=128), "initializer `w`: an absolute path"),
    "external_dotdot": ("M8", lambda: external("../../mlp_external/weights.bin", length=128), "initializer `w`: leaves the model's folder"),
    "external_inner_dotdot": ("M8", lambda: external("a/../weights.bin", length=128), "initializer `w`: `..` in the path"),
    "external_missing": ("M8", lambda: external("absent.bin", length=128), "initializer `w`: there is no file `absent.bin`"),
    "external_empty_location": ("M8", lambda: external("", length=128), "initializer `w`: no location"),
    "external_past_end": ("M8", lambda: external("weights.bin", offset=64, length=128),
                          "initializer `w`: bytes 64 to 192 of `weights.bin`, which has `128`"),
    "external_negative": ("M8", lambda: external("weights.bin", offset=-64, length=128), "initializer `w`: offset `-64`"),
    "external_length_mismatch": ("M8", lambda: external("weights.bin", offset=0, length=64),
                                 "initializer `w`: `64` bytes are named, its shape requires `128`"),
    "conv_group_mismatch": ("M9", lambda: conv(f"{KERNEL}, group: int = 3", (9, 1, 3, 3)), "node `the_conv`: 4 channels, 3 groups"),
    "conv_channel_mismatch": ("M9", lambda: conv(KERNEL, (8, 5, 3, 3)), "node `the_conv`: the weight has 5 channels, the input 4"),
    "stride_zero": ("M9", lambda: conv(f"{KERNEL}, strides: ints = [0, 1]"), "node `the_conv`: a stride of 0"),
    "dilation_zero": ("M9", lambda: conv(f"{KERNEL}, dilations: ints = [1, 0]"), "node `the_conv`: a dilation of 0"),
    "pads_negative": ("M9", lambda: conv(f"{KERNEL}, pads: ints = [-9, 0, -9, 0]"), "node `the_conv`: pads"),
    "kernel_zero": ("M9", lambda: one_node("float[1, 4, 6, 6] x", "MaxPool", "float[1, 4, h, v] y", attributes=ints("kernel_shape", 0, 2)),
                    "node `the_maxpool`: a kernel of 0"),
    "kernel_too_large": ("M9", lambda: one_node("float[1, 4, 6, 6] x", "MaxPool", "float[1, 4, h, v] y",
                                                attributes=ints("kernel_shape", 9, 2)),
                         "node `the_maxpool`: the window is larger than the input"),
    "missing_attribute": ("M9", concat_without_axis, "node `the_concat`: attribute `axis` is missing"),
    "axis_out_of_range": ("M9", lambda: one_node("float[2, 3] x", "Softmax", "float[2, 3] y", attributes="<axis: int = 2>"),
                          "node `the_softmax`: axis `2`, rank 2"),
    "perm_not_a_permutation": ("M9", lambda: one_node("float[2, 3] x", "Transpose", "float[a, b] y", attributes=ints("perm", 1, 1)),
                               "node `the_transpose`: perm"),
    "reshape_two_unknowns": ("M9", lambda: one_node("float[2, 3] x", "Reshape", "float[a, b] y", {"shape": np.array([-1, -1])}),
                             "node `the_reshape`: -1 twice"),
    "concat_mismatch": ("M9", lambda: one_node("float[2, 3] a; float[2, 4] b", "Concat", "float[4, c] y", attributes="<axis: int = 0>"),
                        "node `the_concat`: 3 and 4"),
    "gather_out_of_range": ("M9", gather, "loads; with test_data_set_0: node `the_gather`: index `8`, the axis has 8"),
    "reshape_wrong_count": ("M9", reshape_at_run_time, "loads; with test_data_set_0: node `the_reshape`: 16 elements, the shape requires 15"),
}
RUN_TIME = {  # inputs that a valid model must refuse
    "gather_out_of_range": {"table": np.zeros((8, 4), np.float32), "indices": np.array([0, 8])},
    "reshape_wrong_count": {"x": np.zeros((2, 8), np.float32), "shape": np.array([3, 5])},
}


def write(out):
    folder = out / "bad"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.bin").write_bytes(bytes(128))
    for name, (_, make, _) in CASES.items():
        content = make()
        (folder / f"{name}.onnx").write_bytes(content if isinstance(content, bytes) else serialize(content))
        if name in RUN_TIME:
            write_inputs(folder / name / "test_data_set_0", RUN_TIME[name])
        if accepted_elsewhere(folder / f"{name}.onnx", RUN_TIME.get(name)):
            print(f"bad/{name}.onnx: ONNX Runtime takes it")
    (folder / "README.md").write_text(readme())


def write_inputs(folder, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    for j, (name, value) in enumerate(inputs.items()):
        (folder / f"input_{j}.pb").write_bytes(serialize(onnx.numpy_helper.from_array(value, name)))


def accepted_elsewhere(file, inputs):
    try:
        session = reference(file)
        if inputs is not None:
            session.run(None, inputs)
    except Exception:  # its own exception types share no base class
        return False
    return True


def readme():
    rows = "\n".join(f"| {name}.onnx | {row} | {says} |" for name, (row, _, says) in CASES.items())
    return f"""# Broken models

tests/data/make_fixtures.py (recipes/bad.py) writes the files and this table. Every file has one flaw. The loader's error has the meaning of the last
column; words in `backticks` are in the message literally. No file may cause a crash, a hang, an allocation of the size that
it claims, or an effect on another model. Rows are those of tests/README.md.

| file | row | the error |
|---|---|---|
{rows}
"""
