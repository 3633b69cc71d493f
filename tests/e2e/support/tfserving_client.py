"""Asks a server as clients of TensorFlow Serving do, with tensorflow-serving-api: `tfserving_client.py HOST:PORT` prints what each call came to."""

import json
import sys

import grpc
import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2, types_pb2
from tensorflow_serving.apis import (
    classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2, model_management_pb2, model_service_pb2_grpc, predict_pb2,
    prediction_service_pb2_grpc, regression_pb2,
)  # fmt: skip

address = sys.argv[1]
channel = grpc.insecure_channel(address)
predictions, models = prediction_service_pb2_grpc.PredictionServiceStub(channel), model_service_pb2_grpc.ModelServiceStub(channel)


def tensor(dtype, shape, **values):
    dims = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in shape])
    return tensor_pb2.TensorProto(dtype=getattr(types_pb2, f"DT_{dtype}"), tensor_shape=dims, **values)


def spec(message, name, version=None, label=None, signature=""):
    message.name, message.signature_name = name, signature
    if version is not None:
        message.version.value = version
    if label is not None:
        message.version_label = label


def predict(inputs, name="two", outputs=(), **which):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    spec(request.model_spec, name, **which)
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(value)
    return predictions.Predict(request, timeout=30)


def examples(request, rows, context=None):
    listed = request.input.example_list_with_context if context else request.input.example_list
    for target, features in [(listed.examples.add(), row) for row in rows] + ([(listed.context, context)] if context else []):
        for name, values in features.items():
            feature = target.features.feature[name]
            if isinstance(values[0], float):
                feature.float_list.value.extend(values)
            elif isinstance(values[0], bytes):
                feature.bytes_list.value.extend(values)
            else:
                feature.int64_list.value.extend(values)
    return request


def scored(kind, rows, name="half_plus_two", context=None, **which):
    request = examples({"Classify": classification_pb2.ClassificationRequest, "Regress": regression_pb2.RegressionRequest}[kind](), rows, context)
    spec(request.model_spec, name, **which)
    return getattr(predictions, kind)(request, timeout=30)


def several(*tasks, rows=({"x": [2.0]},), name="half_plus_two"):
    request = examples(inference_pb2.MultiInferenceRequest(), rows)
    for task in tasks:
        added = request.tasks.add(method_name=task)
        spec(added.model_spec, name)
    return predictions.MultiInference(request, timeout=30)


def metadata(field="signature_def", **which):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=[field])
    spec(request.model_spec, "two", **which)
    answer = predictions.GetModelMetadata(request, timeout=30)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    answer.metadata["signature_def"].Unpack(signatures)
    return {"spec": MessageToDict(answer.model_spec), "signatures": MessageToDict(signatures)}


def status(name, **which):
    request = get_model_status_pb2.GetModelStatusRequest()
    spec(request.model_spec, name, **which)
    return models.GetModelStatus(request, timeout=30)


def arrays(answer):
    """Of floats, as TensorFlow's make_ndarray() reads them."""
    outputs = {name: np.array(proto.float_val).reshape([dim.size for dim in proto.tensor_shape.dim]).tolist() for name, proto in answer.outputs.items()}
    return {"spec": MessageToDict(answer.model_spec), "outputs": outputs}


FLOATS = np.array([[1, 2], [3, 4]], np.float32)
A, B = tensor("FLOAT", [2, 2], tensor_content=FLOATS.tobytes()), tensor("FLOAT", [2, 1], float_val=[10, 20])
EVERY = {"FLOAT": ("float_val", [1.5, -2]), "DOUBLE": ("double_val", [1.5, -2]), "INT32": ("int_val", [-1, 2**31 - 1]), "INT16": ("int_val", [-32768, 7]),
         "INT8": ("int_val", [-128, 127]), "UINT8": ("int_val", [0, 255]), "UINT16": ("int_val", [0, 65535]), "INT64": ("int64_val", [-(2**63), 2**63 - 1]),
         "UINT32": ("uint32_val", [0, 2**32 - 1]), "UINT64": ("uint64_val", [0, 2**64 - 1]), "BOOL": ("bool_val", [True, False]),
         "STRING": ("string_val", [b"a", b"\xff\0"]), "HALF": ("half_val", [0x3C00, 0xC000]), "BFLOAT16": ("half_val", [0x3F80, 0xC000])}


def same(dtype):
    """What comes back of two elements, as the list they are sent in."""
    field, values = EVERY[dtype]
    proto = predict({"x": tensor(dtype, [2], **{field: values})}, name=f"same_{dtype.lower()}").outputs["y"]
    sent = [value.hex() if isinstance(value, bytes) else value for value in getattr(proto, field)]
    expected = [value.hex() if isinstance(value, bytes) else value for value in values]
    return {"dtype": types_pb2.DataType.Name(proto.dtype), "same": sent == expected and not proto.tensor_content, "sent": sent}


CALLS = {
    "content": lambda: arrays(predict({"a": A, "b": B})),
    "filtered": lambda: arrays(predict({"a": A, "b": B}, outputs=["twice"], signature="serving_default")),
    "filled": lambda: arrays(predict({"a": tensor("FLOAT", [2, 2], float_val=[7]), "b": tensor("FLOAT", [2, 1])})),
    "label": lambda: arrays(predict({"a": A, "b": B}, label="stable")),
    "regress": lambda: MessageToDict(scored("Regress", [{"x": [1.0]}, {"x": [2.0]}, {"x": [5]}])),
    "context": lambda: MessageToDict(scored("Regress", [{}, {}], context={"x": [1.0]})),
    "classify": lambda: MessageToDict(scored("Classify", [{"x": [1.0]}])),
    "several": lambda: MessageToDict(several("tensorflow/serving/regress", "tensorflow/serving/classify")),
    "metadata": metadata,
    "status": lambda: MessageToDict(status("two")),
    "status_version": lambda: MessageToDict(status("two", version=1)),
    "no_model": lambda: predict({"a": A}, name="half"),
    "no_version": lambda: predict({"a": A}, version=9),
    "no_label": lambda: predict({"a": A}, label="nope"),
    "no_signature": lambda: predict({"a": A, "b": B}, signature="nope"),
    "no_input": lambda: predict({"a": A}),
    "other_input": lambda: predict({"a": A, "c": B}),
    "no_output": lambda: predict({"a": A, "b": B}, outputs=["nope"]),
    "output_twice": lambda: predict({"a": A, "b": B}, outputs=["sum", "sum"]),
    "dtype": lambda: predict({"a": tensor("INT32", [2, 2], int_val=[1]), "b": B}),
    "complex": lambda: predict({"a": tensor("COMPLEX64", [2, 2], scomplex_val=[1]), "b": B}),
    "shape": lambda: predict({"a": tensor("FLOAT", [2, 3], float_val=[1]), "b": B}),
    "negative": lambda: predict({"a": tensor("FLOAT", [-1, 2], float_val=[1]), "b": B}),
    "overflow": lambda: predict({"a": tensor("FLOAT", [2**62, 2], float_val=[1]), "b": B}),
    "huge": lambda: predict({"a": tensor("FLOAT", [10_000_000, 2], float_val=[1]), "b": B}),
    "short": lambda: predict({"a": tensor("FLOAT", [2, 2], tensor_content=b"1234567"), "b": B}),
    "long": lambda: predict({"a": tensor("FLOAT", [1, 2], float_val=[1, 2, 3]), "b": B}),
    "other_list": lambda: predict({"a": tensor("FLOAT", [1, 2], int_val=[1, 2]), "b": B}),
    "rows_disagree": lambda: predict({"a": A, "b": tensor("FLOAT", [1, 1], float_val=[1])}),
    "range": lambda: predict({"x": tensor("INT8", [2], int_val=[1, 128])}, name="same_int8"),
    "no_examples": lambda: scored("Regress", []),
    "no_feature": lambda: scored("Regress", [{}]),
    "other_feature": lambda: scored("Regress", [{"z": [1.0]}]),
    "feature_type": lambda: scored("Regress", [{"x": [b"text"]}]),
    "feature_size": lambda: scored("Regress", [{"x": [1.0, 2.0]}]),
    "task": lambda: several("tensorflow/serving/predict"),
    "no_task": several,
    "metadata_field": lambda: metadata("other"),
    "status_none": lambda: status("half"),
    "status_no_version": lambda: status("two", version=9),
    "no_spec": lambda: models.GetModelStatus(get_model_status_pb2.GetModelStatusRequest(), timeout=30),
    "reload": lambda: models.HandleReloadConfigRequest(model_management_pb2.ReloadConfigRequest(), timeout=30),
    **{f"same_{dtype}": lambda dtype=dtype: same(dtype) for dtype in EVERY},
}

results = {}
for what, ask in CALLS.items():
    try:
        results[what] = ask()
    except grpc.RpcError as error:
        results[what] = [error.code().name, error.details()]
print(json.dumps(results, default=str))
