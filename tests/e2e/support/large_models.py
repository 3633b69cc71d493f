"""Models that have nothing to do: what takes time is reading what they are asked, or writing what they answer."""

import onnx
from onnx import TensorProto, helper


def save(folder):
    """size: how many numbers came, and the last; texts: how many; fill: as many halves as it is asked for."""
    x, n = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]), helper.make_tensor_value_info("n", TensorProto.INT64, [1])
    text = helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])
    last = helper.make_tensor("last", TensorProto.INT64, [1], [-1])
    half = helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])
    graphs = {
        "size": ([helper.make_node("Shape", ["x"], ["size"]), helper.make_node("Gather", ["x", "last"], ["tail"])],
                 [x], [("size", TensorProto.INT64, [1]), ("tail", TensorProto.FLOAT, [1])], [last]),
        "texts": ([helper.make_node("Shape", ["x"], ["size"])], [text], [("size", TensorProto.INT64, [1])], []),
        "fill": ([helper.make_node("ConstantOfShape", ["n"], ["y"], value=half)], [n], [("y", TensorProto.FLOAT, ["m"])], []),
    }  # fmt: skip
    for name, (nodes, inputs, outputs, constants) in graphs.items():
        (folder / name / "1").mkdir(parents=True)
        outputs = [helper.make_tensor_value_info(*output) for output in outputs]
        graph = helper.make_graph(nodes, name, inputs, outputs, constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / name / "1/model.onnx")
    return folder
