"""Asks models that parse tf.Example messages themselves, and models with several signatures, with tensorflow-serving-api:
`tfserving_examples.py HOST:PORT PEOPLE` prints what each call came to. PEOPLE is a list of {feature: values}, as JSON."""

import json
import sys

import grpc
import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2, types_pb2
from tensorflow_serving.apis import classification_pb2, get_model_metadata_pb2, inference_pb2, predict_pb2, prediction_service_pb2_grpc, regression_pb2

channel = grpc.insecure_channel(sys.argv[1])
predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
PEOPLE = json.loads(sys.argv[2])
MESSAGES = {"Classify": classification_pb2.ClassificationRequest, "Regress": regression_pb2.RegressionRequest}


def fill(example, features):
    for name, values in features.items():
        feature = example.features.feature[name]
        if values and isinstance(values[0], str):
            feature.bytes_list.value.extend(value.encode() for value in values)
        elif values and isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif values:
            feature.int64_list.value.extend(values)
    return example


def with_examples(request, rows, context=None):
    listed = request.input.example_list_with_context if context else request.input.example_list
    for row in rows:
        fill(listed.examples.add(), row)
    if context:
        fill(listed.context, context)
    return request


def scored(kind, rows, name="columns", signature="", context=None):
    request = with_examples(MESSAGES[kind](), rows, context)
    request.model_spec.name, request.model_spec.signature_name = name, signature
    return MessageToDict(getattr(predictions, kind)(request, timeout=30))


def several(tasks, rows, name="columns"):
    request = with_examples(inference_pb2.MultiInferenceRequest(), rows)
    for method, signature in tasks:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = name, signature
    return MessageToDict(predictions.MultiInference(request, timeout=30))


def predict(name, inputs, signature=""):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, values in inputs.items():
        shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in np.shape(values)])
        if isinstance(values[0], bytes):
            request.inputs[key].CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, tensor_shape=shape, string_val=values))
        else:
            request.inputs[key].CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_shape=shape, float_val=np.ravel(values)))
    response = predictions.Predict(request, timeout=30)
    return {"signature": response.model_spec.signature_name, "outputs": {key: list(value.float_val) for key, value in response.outputs.items()}}


def metadata(name):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = name
    signatures = get_model_metadata_pb2.SignatureDefMap()
    predictions.GetModelMetadata(request, timeout=30).metadata["signature_def"].Unpack(signatures)
    return {key: [value.method_name, sorted(value.inputs), sorted(value.outputs)] for key, value in signatures.signature_def.items()}


def damaged(rows):
    """A message that is cut, in a tensor of text."""
    raw = [fill(example_pb2.Example(), row).SerializeToString() for row in rows]
    return predict("columns", {"examples": [raw[0], raw[1][:-1]]}, "predict")


raw = [fill(example_pb2.Example(), row).SerializeToString() for row in PEOPLE]
ROWS = [[0.1 * i + 0.05 * j for j in range(6)] for i in range(3)]
CALLS = {
    "classify": lambda: scored("Classify", PEOPLE),
    "classify_by_method": lambda: scored("Classify", PEOPLE, signature="tensorflow/serving/classify"),
    "regress": lambda: scored("Regress", PEOPLE, signature="regression"),
    "context": lambda: scored("Classify", [{key: value for key, value in row.items() if key != "city"} for row in PEOPLE[:2]], context={"city": ["Chengdu"]}),
    "without_context": lambda: scored("Classify", [{**row, "city": ["Chengdu"]} for row in PEOPLE[:2]]),
    "several": lambda: several([("classify", ""), ("regress", "regression"), ("classify", "serving_default")], PEOPLE),
    "predict": lambda: predict("columns", {"examples": raw}, "predict"),
    "predict_classes": lambda: predict("columns", {"inputs": raw}),
    "metadata": lambda: metadata("columns"),
    "dense": lambda: scored("Classify", [{key: row[key] for key in ("age", "city", "vector") if key in row} for row in PEOPLE], name="dense"),
    "standard": lambda: predict("several", {"x": ROWS}),
    "again": lambda: predict("several", {"x": ROWS}, "again"),
    "embed": lambda: predict("several", {"x": ROWS}, "embed"),
    "several_metadata": lambda: metadata("several"),
    "chosen": lambda: predict("chosen", {"x": ROWS}),
    "chosen_other": lambda: predict("chosen", {"x": ROWS}, "serving_default"),
    "chosen_metadata": lambda: metadata("chosen"),
    # refused
    "wrong_method": lambda: scored("Regress", PEOPLE),
    "wrong_method_in_several": lambda: several([("classify", ""), ("regress", "")], PEOPLE),
    "no_signature": lambda: scored("Classify", PEOPLE, signature="nothing"),
    "left_out": lambda: predict("several", {"x": ROWS}, "reads_files"),
    "not_chosen": lambda: predict("chosen", {"x": ROWS}, "again"),
    "empty": lambda: scored("Classify", []),
    "kind": lambda: scored("Classify", [PEOPLE[0], {**PEOPLE[1], "age": [3]}]),
    "several_kind": lambda: several([("classify", ""), ("regress", "regression")], [{**PEOPLE[1], "vector": [0.5]}]),
    "damaged": lambda: damaged(PEOPLE),
}
results = {}
for name, ask in CALLS.items():
    try:
        results[name] = ask()
    except grpc.RpcError as error:
        results[name] = [error.code().name, error.details()]
print(json.dumps(results))
