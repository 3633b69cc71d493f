"""What people put behind an exported detector with onnx.helper, so that a server answers boxes instead of thousands of candidates."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from materialise import materialise

# So chosen that no two scores of a class, no overlap and no score lie nearer than 1e-4 to each other or to the limit, on the inputs of the tests: two engines that
# differ by a last bit (1e-7) keep the same boxes in the same order.
MOST, OVERLAP, SCORE = 20, 0.55, 0.88


def suppressed(name):
    """The head's boxes [n, 4, count] and scores [n, classes, count] become those that suppression keeps: [found, 4], [found] in percent, and (image, class, box)."""
    model = onnx.load(materialise(name))
    graph = model.graph
    boxes, scores = (output.name for output in graph.output)
    constants = {
        "most": np.array([MOST], np.int64),
        "overlap": np.array([OVERLAP], np.float32),
        "score": np.array([SCORE], np.float32),
        "hundred": np.array(100, np.float32),
        "image_and_box": np.array([0, 2], np.int64),
    }
    graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
    graph.node.extend(
        [
            helper.make_node("Transpose", [boxes], ["rows"], perm=[0, 2, 1]),
            helper.make_node("NonMaxSuppression", ["rows", scores, "most", "overlap", "score"], ["kept"], center_point_box=1),
            helper.make_node("Gather", ["kept", "image_and_box"], ["places"], axis=1),
            helper.make_node("GatherND", ["rows", "places"], ["kept_boxes"]),
            helper.make_node("GatherND", [scores, "kept"], ["kept_scores"]),
            helper.make_node("Mul", ["kept_scores", "hundred"], ["percent"]),
        ]
    )
    del graph.output[:]
    for key, dtype, shape in (
        ("kept_boxes", TensorProto.FLOAT, ["found", 4]),
        ("percent", TensorProto.FLOAT, ["found"]),
        ("kept", TensorProto.INT64, ["found", 3]),
    ):
        graph.output.append(helper.make_tensor_value_info(key, dtype, shape))
    return model


MADE_BY = {"yolo_suppressed": ("yolo", suppressed)}
BASES = {name: base for name, (base, _) in MADE_BY.items()}
MODELS = {name: lambda base=base, make=make: make(base) for name, (base, make) in MADE_BY.items()}
