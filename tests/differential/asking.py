"""Asks a server one exchange and writes down what counts of its answer, in a form that fits in a line of JSON."""

import base64
import gzip
import http.client
import json
import zlib

import grpc
from google.protobuf import json_format
from tritonclient.grpc import service_pb2, service_pb2_grpc

HEADERS = ("content-type", "content-encoding", "allow", "retry-after")
LENGTH = "inference-header-content-length"
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress, "": bytes, "identity": bytes}


def over_http(port, asked):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest(asked["method"], asked["path"], skip_accept_encoding=True)
        for name, value in asked["headers"].items():
            connection.putheader(name, value)
        if asked["body"] or asked["method"] == "POST":
            connection.putheader("Content-Length", str(len(asked["body"])))
        connection.endheaders(asked["body"])
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return {"broken": type(error).__name__}
    finally:
        connection.close()
    answer = {"status": response.status, "headers": {name: response.headers[name] for name in HEADERS if response.headers[name] is not None}}
    body = UNPACK.get(response.headers.get("content-encoding", ""), bytes)(body)
    if (length := response.headers.get(LENGTH)) is not None:
        answer["tensors"] = base64.b64encode(body[int(length) :]).decode()
        body = body[: int(length)]
    try:
        answer["json"] = json.loads(body)
    except ValueError:
        answer["text"] = body.decode("utf-8", "replace")
    return answer


def messages_of(asked):
    kind = service_pb2.ModelInferRequest if asked["call"] in ("ModelInfer", "ModelStreamInfer") else getattr(service_pb2, f"{asked['call']}Request")
    return [json_format.ParseDict(message, kind()) for message in asked["messages"]]


def over_grpc(channel, asked):
    call = getattr(service_pb2_grpc.GRPCInferenceServiceStub(channel), asked["call"])
    messages = messages_of(asked)
    try:
        answers = list(call(iter(messages), timeout=30)) if asked["call"] == "ModelStreamInfer" else [call(messages[0], timeout=30)]
    except grpc.RpcError as error:
        return {"code": error.code().name, "message": error.details()}
    return {"code": "OK", "json": [json_format.MessageToDict(answer, preserving_proto_field_name=True) for answer in answers]}


def channel_to(port):
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])


def ask(server, channel, asked):
    """`server`: its port of HTTP."""
    return over_grpc(channel, asked) if "call" in asked else over_http(server, asked)


def to_line(exchange):
    """Bodies that are text are kept as such."""
    kept = dict(exchange)
    if isinstance(kept.get("body"), bytes):
        try:
            kept["body"] = kept["body"].decode("ascii")
        except UnicodeDecodeError:
            kept["base64"] = base64.b64encode(kept.pop("body")).decode()
    return json.dumps(kept, separators=(",", ":"))


def from_line(line):
    exchange = json.loads(line)
    if "base64" in exchange:
        exchange["body"] = base64.b64decode(exchange.pop("base64"))
    elif "body" in exchange:
        exchange["body"] = exchange["body"].encode("ascii")
    return exchange
