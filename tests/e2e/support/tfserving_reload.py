"""Orders another configuration of TensorFlow Serving, with tensorflow-serving-api: `tfserving_reload.py HOST:PORT CONFIG`, the latter as text."""

import json
import sys

import grpc
from google.protobuf import text_format
from tensorflow_serving.apis import model_management_pb2, model_service_pb2_grpc

request = model_management_pb2.ReloadConfigRequest()
text_format.Parse(sys.argv[2], request.config)
try:
    answer = model_service_pb2_grpc.ModelServiceStub(grpc.insecure_channel(sys.argv[1])).HandleReloadConfigRequest(request, timeout=60)
    print(json.dumps(["OK", str(answer.status.error_code)]))
except grpc.RpcError as error:
    print(json.dumps([error.code().name, error.details()]))
