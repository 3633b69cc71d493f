"""The models that both servers have, with the same names, inputs and outputs: for Triton in its Python backend, for Serin in ONNX.

identity, and one for each datatype by its name (identity_int8 ...): INPUT0 [n, m] is OUTPUT0. counted: the same, asked a known number of times.
simple: INPUT0 + INPUT1 and INPUT0 - INPUT1 of INT32 [n, 16]; that of tritonclient's examples.
"""

import onnx
from onnx import TensorProto, helper

MAX_BATCH = 8
DATATYPES = {  # as the protocol names them, as ONNX does, as config.pbtxt does
    "BOOL": (TensorProto.BOOL, "TYPE_BOOL"), "INT8": (TensorProto.INT8, "TYPE_INT8"), "INT16": (TensorProto.INT16, "TYPE_INT16"),
    "INT32": (TensorProto.INT32, "TYPE_INT32"), "INT64": (TensorProto.INT64, "TYPE_INT64"), "UINT8": (TensorProto.UINT8, "TYPE_UINT8"),
    "UINT16": (TensorProto.UINT16, "TYPE_UINT16"), "UINT32": (TensorProto.UINT32, "TYPE_UINT32"), "UINT64": (TensorProto.UINT64, "TYPE_UINT64"),
    "FP16": (TensorProto.FLOAT16, "TYPE_FP16"), "FP32": (TensorProto.FLOAT, "TYPE_FP32"), "FP64": (TensorProto.DOUBLE, "TYPE_FP64"),
    "BYTES": (TensorProto.STRING, "TYPE_STRING"),
}  # fmt: skip
IDENTITIES = {"identity": "FP32", **{f"identity_{name.lower()}": name for name in DATATYPES if name != "FP32"}}
COUNTED = "counted"

PYTHON_MODEL = """
import triton_python_backend_utils as utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            inputs = [tensor.as_numpy() for tensor in sorted(request.inputs(), key=lambda tensor: tensor.name())]
            results = inputs if len(inputs) == 1 else [inputs[0] + inputs[1], inputs[0] - inputs[1]]
            answers.append(utils.InferenceResponse([utils.Tensor(f"OUTPUT{i}", result) for i, result in enumerate(results)]))
        return answers
"""


def write_triton_repository(folder, max_batch=MAX_BATCH, dynamic_batching=False):
    settings = [f"max_batch_size: {max_batch}", *(["dynamic_batching { }"] if dynamic_batching else [])]
    for name, datatype in IDENTITIES.items():
        _write_triton_model(folder / name, datatype, 1, -1, settings)
    _write_triton_model(folder / COUNTED, "FP32", 1, -1, settings)
    _write_triton_model(folder / "simple", "INT32", 2, 16, settings)


def _write_triton_model(folder, datatype, tensors, width, settings):
    tensor = f"data_type: {DATATYPES[datatype][1]} dims: [ {width} ]"
    lines = ['backend: "python"', *settings]
    for kind in ("input", "output"):
        lines += [f'{kind} {{ name: "{kind.upper()}{i}" {tensor} }}' for i in range(tensors)]
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")
    (folder / "1/model.py").write_text(PYTHON_MODEL)


def write_serin_repository(folder):
    for name, datatype in IDENTITIES.items():
        _write_onnx_model(folder / name, datatype, ["m"], [("Identity", ["INPUT0"], "OUTPUT0")])
    _write_onnx_model(folder / COUNTED, "FP32", ["m"], [("Identity", ["INPUT0"], "OUTPUT0")])
    _write_onnx_model(folder / "simple", "INT32", [16], [("Add", ["INPUT0", "INPUT1"], "OUTPUT0"), ("Sub", ["INPUT0", "INPUT1"], "OUTPUT1")])


def _write_onnx_model(folder, datatype, dims, nodes):
    def tensor(name):
        return helper.make_tensor_value_info(name, DATATYPES[datatype][0], ["n", *dims])

    inputs = [tensor(name) for name in sorted({name for _, names, _ in nodes for name in names})]
    graph = helper.make_graph([helper.make_node(kind, names, [out]) for kind, names, out in nodes], "graph", inputs, [tensor(out) for _, _, out in nodes])
    (folder / "1").mkdir(parents=True)
    (folder / "serin.yaml").write_text(f"max_batch: {MAX_BATCH}\ninstances: 1\n")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "1/model.onnx")
