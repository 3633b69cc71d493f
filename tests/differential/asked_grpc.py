"""What is asked over gRPC: every call that Triton has, and what is wrong about inferences. Messages as protobuf's JSON, so that a recording can be read.

Each is a dict {name, call, messages}; of a call that takes one message the list has one.
"""

import struct

from google.protobuf import json_format
from tritonclient.grpc import service_pb2

from asked import SAMPLES, raw_bytes
from models import COUNTED, IDENTITIES

CALLS = []
CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
            "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents", "FP32": "fp32_contents",
            "FP64": "fp64_contents", "BYTES": "bytes_contents"}  # fmt: skip


def ask(name, call, *messages):
    CALLS.append({"name": f"grpc/{name}", "call": call, "messages": [json_format.MessageToDict(message, preserving_proto_field_name=True) for message in messages]})


def request(model="identity", raw=(), **fields):
    return service_pb2.ModelInferRequest(model_name=model, raw_input_contents=raw, **fields)


def with_input(message, shape, datatype="FP32", name="INPUT0", **contents):
    message.inputs.add(name=name, shape=shape, datatype=datatype, contents=service_pb2.InferTensorContents(**contents) if contents else None)
    return message


def good(model="identity", datatype="FP32", data=(1.0, 2.0), **fields):
    return with_input(request(model, [raw_bytes(list(data), datatype)], **fields), [1, len(data)], datatype)


def servers_and_models():
    for call in ("ServerLive", "ServerReady", "ServerMetadata", "RepositoryIndex", "SystemSharedMemoryStatus", "CudaSharedMemoryStatus"):
        ask(call, call, getattr(service_pb2, f"{call}Request")())
    ask("RepositoryIndex/ready", "RepositoryIndex", service_pb2.RepositoryIndexRequest(ready=True))
    ask("RepositoryIndex/named", "RepositoryIndex", service_pb2.RepositoryIndexRequest(repository_name="nope"))
    for call in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
        message = getattr(service_pb2, f"{call}Request")
        for name, version in (("identity", ""), ("identity", "1"), ("identity", "9"), ("identity", "x"), ("identity", "-1"), ("identity", "01"), ("identity", "0"),
                              ("nope", ""), ("", ""), ("", "1"), ("../identity", ""), ("identity\0", "")):  # fmt: skip
            ask(f"{call}/{name!r}/{version!r}", call, message(name=name, version=version))
        for model in IDENTITIES:
            ask(f"{call}/{model}/1", call, message(name=model, version="1"))
    for call, fields in (("RepositoryModelLoad", {"model_name": "identity"}), ("RepositoryModelLoad", {"model_name": "nope"}), ("RepositoryModelUnload", {"model_name": "identity"}),
                         ("RepositoryModelUnload", {"model_name": "nope"})):  # fmt: skip
        ask(f"{call}/{fields['model_name']}", call, getattr(service_pb2, f"{call}Request")(**fields))


def tensors():
    for model, datatype in IDENTITIES.items():
        data = SAMPLES[datatype]
        ask(f"infer/raw/{datatype}", "ModelInfer", good(model, datatype, data))
        ask(f"infer/raw/{datatype}/odd", "ModelInfer", with_input(request(model, [raw_bytes(data, datatype) + b"x"]), [1, 3], datatype))
        if field := CONTENTS.get(datatype):
            values = [text.encode() for text in data] if datatype == "BYTES" else data
            ask(f"infer/contents/{datatype}", "ModelInfer", with_input(request(model), [1, 3], datatype, **{field: values}))
            ask(f"infer/contents/{datatype}/few", "ModelInfer", with_input(request(model), [1, 4], datatype, **{field: values}))
            ask(f"infer/contents/{datatype}/many", "ModelInfer", with_input(request(model), [1, 2], datatype, **{field: values}))
            other = "fp64_contents" if field == "fp32_contents" else "fp32_contents"
            ask(f"infer/contents/{datatype}/wrong-field", "ModelInfer", with_input(request(model), [1, 3], datatype, **{other: [1.0, 2.0, 3.0]}))
    ask("infer/contents/INT8/range", "ModelInfer", with_input(request("identity_int8"), [1, 1], "INT8", int_contents=[128]))
    ask("infer/contents/UINT8/range", "ModelInfer", with_input(request("identity_uint8"), [1, 1], "UINT8", uint_contents=[256]))


def wrong():
    ask("infer/id", "ModelInfer", good(id="a-1"))
    ask("infer/version", "ModelInfer", good(model_version="1"))
    for version in ("9", "x", "-1", "01", "0", str(10**21)):
        ask(f"infer/version/{version}", "ModelInfer", good(model_version=version))
    for model in ("nope", "", "../identity", "identity/", "identity\n", "Identity"):
        ask(f"infer/model/{model!r}", "ModelInfer", good(model))
    for name, shape in {"none": [], "one": [2], "three": [1, 1, 2], "zero": [0, 2], "minus": [-1, 2], "batch-9": [9, 1], "huge": [2**62, 4], "2^32": [2**32, 2**32],
                        "more": [1, 3], "less": [1, 1], "rank-65": [1] * 65}.items():  # fmt: skip
        ask(f"infer/shape/{name}", "ModelInfer", with_input(request(raw=[bytes(8)]), shape))
    for datatype in ("INT32", "FP64", "BF16", "", "fp32", "TYPE_FP32"):
        ask(f"infer/datatype/{datatype}", "ModelInfer", with_input(request(raw=[bytes(8)]), [1, 2], datatype))
    ask("infer/no-inputs", "ModelInfer", request())
    ask("infer/raw-without-input", "ModelInfer", request(raw=[bytes(8)]))
    ask("infer/two-raw", "ModelInfer", with_input(request(raw=[bytes(8), bytes(8)]), [1, 2]))
    ask("infer/no-data", "ModelInfer", with_input(request(), [1, 2]))
    ask("infer/both", "ModelInfer", with_input(request(raw=[bytes(8)]), [1, 2], fp32_contents=[1.0, 2.0]))
    ask("infer/input-unknown", "ModelInfer", with_input(request(raw=[bytes(8)]), [1, 2], name="nope"))
    ask("infer/input-nameless", "ModelInfer", with_input(request(raw=[bytes(8)]), [1, 2], name=""))
    ask("infer/input-twice", "ModelInfer", with_input(with_input(request(raw=[bytes(8), bytes(8)]), [1, 2]), [1, 2]))
    ask("infer/input-missing", "ModelInfer", with_input(request("simple", [bytes(64)]), [1, 16], "INT32"))
    ask("infer/simple", "ModelInfer", with_input(with_input(request("simple", [bytes(64), bytes(64)]), [1, 16], "INT32"), [1, 16], "INT32", "INPUT1"))
    for name, raw in {"length-past-end": struct.pack("<I", 99) + b"abc", "cut-length": b"\x01\0", "trailing": struct.pack("<I", 0) * 3, "too-few": struct.pack("<I", 1) + b"a"}.items():
        ask(f"infer/bytes/{name}", "ModelInfer", with_input(request("identity_bytes", [raw]), [1, 2], "BYTES"))
    for name in ("OUTPUT0", "nope", ""):
        message = good()
        message.outputs.add(name=name)
        ask(f"infer/output/{name}", "ModelInfer", message)
    twice = good()
    for _ in range(2):
        twice.outputs.add(name="OUTPUT0")
    ask("infer/output-twice", "ModelInfer", twice)
    for k in (1, 2, 3, 0, -1, 2**40):
        message = good(data=(0.25, 4.0))
        message.outputs.add(name="OUTPUT0").parameters["classification"].int64_param = k
        ask(f"infer/classification/{k}", "ModelInfer", message)
    for name in ("timeout", "priority", "sequence_id", "sequence_start", "custom", "headers", "triton_x"):
        for kind, value in (("bool_param", True), ("int64_param", 10**9), ("int64_param", -1), ("string_param", "x"), ("double_param", 0.5), ("uint64_param", 10**9)):
            message = good()
            setattr(message.parameters[name], kind, value)
            ask(f"infer/parameters/{name}/{kind}/{value}", "ModelInfer", message)


def counts():
    """After what asked.py asked."""
    ask("ModelStatistics/counted", "ModelStatistics", service_pb2.ModelStatisticsRequest(name=COUNTED))


def streams():
    ask("stream/none", "ModelStreamInfer")
    ask("stream/one", "ModelStreamInfer", good(id="1"))
    ask("stream/bad-one", "ModelStreamInfer", good("nope", id="1"))
    ask("stream/bad-shape", "ModelStreamInfer", with_input(request(raw=[bytes(8)], id="1"), [1, 3]))


def all_asked():
    CALLS.clear()
    for group in (servers_and_models, tensors, wrong, streams, counts):
        group()
    return CALLS
