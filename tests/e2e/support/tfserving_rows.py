"""Asks for rows over gRPC as clients of TensorFlow Serving do, with tensorflow-serving-api: `tfserving_rows.py HOST:PORT`, and a list of calls as JSON on
the command line: {"method": "Predict", "model", "input", "rows", "times"}. Prints for each its last answer, and which versions answered."""

import collections
import json
import sys

import grpc
import numpy as np
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2, types_pb2
from tensorflow_serving.apis import classification_pb2, get_model_metadata_pb2, predict_pb2, prediction_service_pb2_grpc, regression_pb2

REQUESTS = {"Predict": predict_pb2.PredictRequest, "Classify": classification_pb2.ClassificationRequest, "Regress": regression_pb2.RegressionRequest,
            "GetModelMetadata": get_model_metadata_pb2.GetModelMetadataRequest}


def request_of(call):
    made = REQUESTS[call["method"]]()
    made.model_spec.name, made.model_spec.signature_name = call["model"], call.get("signature", "")
    if call["method"] == "GetModelMetadata":
        made.metadata_field.append("signature_def")
    elif call["method"] == "Predict":
        rows = np.array(call["rows"], np.float32)
        dims = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in rows.shape])
        made.inputs[call["input"]].CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_shape=dims, tensor_content=rows.tobytes()))
    else:
        for row in call["rows"]:
            made.input.example_list.examples.add().features.feature[call["input"]].float_list.value.extend(row)
    return made


def numbers_of(method, answer):
    if method == "Predict":
        return {name: list(proto.float_val) for name, proto in answer.outputs.items()}
    if method == "Classify":
        return [[one.score for one in each.classes] for each in answer.result.classifications]
    return [each.value for each in answer.result.regressions] if method == "Regress" else answer.model_spec.name


def ask(stub, call):
    versions, message = collections.Counter(), request_of(call)
    try:
        for _ in range(call.get("times", 1)):
            answer, ended = getattr(stub, call["method"]).with_call(message, timeout=30)
            versions[dict(ended.initial_metadata()).get("x-serin-version", "")] += 1
        return {"answer": numbers_of(call["method"], answer), "versions": versions}
    except grpc.RpcError as error:
        return {"error": [error.code().name, error.details()]}


with grpc.insecure_channel(sys.argv[1]) as channel:
    predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    print(json.dumps([ask(predictions, call) for call in json.loads(sys.argv[2])]))
