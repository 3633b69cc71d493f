"""A perceptron whose weights lie in weights.bin beside the model, each at a page boundary, as the ONNX specification advises."""

import numpy as np
import onnx

from .common import build, normal, serialize, write_data_sets

TEXT = """mlp_external (float[batch, 8] x) => (float[batch, 4] y) {
    hidden_sum = Gemm(x, hidden_w, hidden_b)
    hidden = Relu(hidden_sum)
    y = Gemm(hidden, y_w, y_b)
}"""
PAGE = 4096


def write(out):
    rng = np.random.default_rng(15)
    model = build(TEXT, {"hidden_w": normal(rng, 8, 16), "hidden_b": normal(rng, 16), "y_w": normal(rng, 16, 4), "y_b": normal(rng, 4)})
    data = b""
    for tensor in model.graph.initializer:
        if not tensor.name.endswith("_w"):
            continue  # the biases stay inside, as exporters leave small tensors
        data = data.ljust(-(-len(data) // PAGE) * PAGE, b"\0")
        move_out(tensor, "weights.bin", offset=len(data), length=len(tensor.raw_data))
        data += tensor.raw_data
        tensor.ClearField("raw_data")

    folder = out / "mlp_external"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.bin").write_bytes(data)
    (folder / "model.onnx").write_bytes(serialize(model))
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    write_data_sets(folder, folder / "model.onnx", [{"x": normal(rng, batch, 8)} for batch in (2, 1)])


def move_out(tensor, location, **numbers):
    """Says where the bytes are; leaves raw_data to the caller."""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **numbers}.items():
        tensor.external_data.add(key=key, value=str(value))
