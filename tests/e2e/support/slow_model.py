"""A model that takes as long as it is asked to: `turns` products of small matrices, one after the other."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_slow(folder, name="slow"):
    """A model in that folder of models."""
    _save(folder, name, [], ["turns", "", "begin"], helper.make_tensor_value_info("turns", TensorProto.INT64, []), {"begin": np.eye(64, dtype=np.float32)})


def save_busy(folder, turns, name="busy"):
    """One that always takes that many turns, whatever numbers it gets: for `serin load`, which makes them up."""
    _save(folder, name, [helper.make_node("Add", ["begin", "x"], ["start"])], ["count", "", "start"],
          helper.make_tensor_value_info("x", TensorProto.FLOAT, [64]), {"begin": np.zeros((64, 64), np.float32), "count": np.array(turns, dtype=np.int64)})


def _save(folder, name, before, loop, taken, constants):
    turn = helper.make_graph(
        [helper.make_node("MatMul", ["state", "weight"], ["turned"]), helper.make_node("Identity", ["going"], ["going_on"])], "turn",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("going", TensorProto.BOOL, []),
         helper.make_tensor_value_info("state", TensorProto.FLOAT, [64, 64])],
        [helper.make_tensor_value_info("going_on", TensorProto.BOOL, []), helper.make_tensor_value_info("turned", TensorProto.FLOAT, [64, 64])])
    constants = {"weight": np.eye(64, dtype=np.float32), **constants}
    graph = helper.make_graph(
        [*before, helper.make_node("Loop", loop, ["y"], body=turn)], name, [taken], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 64])],
        [numpy_helper.from_array(value, each) for each, value in constants.items()])  # fmt: skip
    (folder / name / "1").mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / name / "1" / "model.onnx")


def turns(count):
    """The body of a request."""
    return json.dumps({"inputs": [{"name": "turns", "shape": [], "datatype": "INT64", "data": [count]}]})


def save_slow_to_load(folder, name="slow"):
    """The same, which is warmed up for minutes before it is ready."""
    save_slow(folder, name)
    (folder / name / "warmup").mkdir()
    (folder / name / "warmup/turns.bin").write_bytes((10_000).to_bytes(8, "little"))
    (folder / name / "serin.yaml").write_text("warmup: [{name: long, count: 10000, inputs: {turns: {dtype: INT64, file: turns.bin}}}]\n")
