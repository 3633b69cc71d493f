"""Models of one node: what the serin program answers is compared with ONNX Runtime, or with arrays that a test computed itself."""

import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

SERIN = pathlib.Path(os.environ.get("SERIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "serin"))


def tensor_type(array):
    return onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


def declared(name, array):
    return helper.make_tensor_value_info(name, tensor_type(array), array.shape)


def expect_match(folder, *flags):
    """Runs `serin check` in `folder`; fails where it says no."""
    done = subprocess.run([SERIN, "check", folder / "model.onnx", folder, *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


class OneNode:
    """One node with `inputs` as the inputs of its model, `constants` (by position; None: an operand that is absent) as initializers."""

    def __init__(self, op, inputs, outputs=1, domain="", version=18, ml=3, constants=None, **attributes):
        self.inputs, self.constants = list(inputs), constants or {}
        self.names = [f"y{i}" for i in range(outputs)]
        slots = len(self.inputs) + len(self.constants)
        fed = iter(f"x{i}" for i in range(len(self.inputs)))
        operands = [("" if self.constants[i] is None else f"c{i}") if i in self.constants else next(fed) for i in range(slots)]
        self.node = helper.make_node(op, operands, self.names, domain=domain, **attributes)
        self.opsets = [helper.make_opsetid(*used) for used in (("", version), ("ai.onnx.ml", ml), ("com.microsoft", 1))]

    def model(self, answers=None):
        outputs = [declared(name, array) for name, array in zip(self.names, answers)] if answers else [
            onnx.ValueInfoProto(name=name) for name in self.names]
        initializers = [numpy_helper.from_array(np.asarray(array), f"c{i}") for i, array in self.constants.items() if array is not None]
        graph = helper.make_graph([self.node], "one_node", [declared(f"x{i}", x) for i, x in enumerate(self.inputs)], outputs, initializers)
        return helper.make_model(graph, opset_imports=self.opsets, ir_version=9)

    def by_onnxruntime(self):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(self.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {f"x{i}": x for i, x in enumerate(self.inputs)})

    def check(self, folder, answers, rtol=1e-4, atol=1e-5):
        """Serin gives these answers, within rtol * |answer| + atol."""
        self.write(folder, answers)
        expect_match(folder, "--rtol", str(rtol), "--atol", str(atol), "--absolute-atol")

    def write(self, folder, answers):
        """The model, with its inputs and the answers as a data set."""
        data = folder / "test_data_set_0"
        data.mkdir()
        onnx.save(self.model(answers), folder / "model.onnx")
        for kind, arrays in (("input", self.inputs), ("output", answers)):
            for i, array in enumerate(arrays):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())

    def refusal(self, folder):
        """What `serin inspect` says against it."""
        onnx.save(self.model(), folder / "model.onnx")
        done = subprocess.run([SERIN, "inspect", folder / "model.onnx", "--explain"], capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr
