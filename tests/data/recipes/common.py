"""What the recipes share: a model from ONNX's own text syntax plus NumPy weights, and its folder of inputs and expected outputs."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper

OPSET = 18
IR_VERSION = 10


def build(text, weights=None, opset=OPSET):
    """The text is what onnx.printer prints: `name (inputs) => (outputs) { nodes }`; `weights` become its initializers."""
    model = onnx.parser.parse_model(f'<ir_version: {IR_VERSION}, opset_import: ["" : {opset}]>\n{text}')
    for name, value in (weights or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def write(folder, model, data_sets):
    """model.onnx and test_data_set_<i>/{input,output}_<j>.pb. `data_sets`: for each, the inputs by name."""
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(serialize(model))
    write_data_sets(folder, folder / "model.onnx", data_sets)


def write_data_sets(folder, model_file, data_sets):
    session = reference(model_file)
    outputs = [output.name for output in session.get_outputs()]
    for i, inputs in enumerate(data_sets):
        inputs = {name: np.asarray(value) for name, value in inputs.items()}
        answers = session.run(outputs, inputs)
        ordered = {entry.name: inputs[entry.name] for entry in session.get_inputs()}
        write_tensors(folder / f"test_data_set_{i}", "input", ordered)
        write_tensors(folder / f"test_data_set_{i}", "output", dict(zip(outputs, answers)))


def write_tensors(folder, kind, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    for j, (name, value) in enumerate(tensors.items()):
        (folder / f"{kind}_{j}.pb").write_bytes(serialize(numpy_helper.from_array(np.asarray(value), name)))


def reference(model_file):
    """ONNX Runtime on one thread and without its rewrites: the operators as they stand in the file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])


def serialize(message):
    return message.SerializeToString(deterministic=True)


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)
