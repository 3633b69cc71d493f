"""Fake servers of gRPC, made with grpcio: messages are bytes, and the few fields that matter are read and written by hand.

    with GrpcBackend("2") as canary:
        canary.faults = Faults(error_rate=0.5)      # from the next call on
"""

import concurrent.futures
import dataclasses
import itertools
import random
import struct
import threading
import time

import grpc

OIP = "/inference.GRPCInferenceService/"
YES = b"\x08\x01"
CLASSES = 10
ECHOED = (3, 7)  # of a request: its id and its raw contents, which an answer has no field of


@dataclasses.dataclass(frozen=True)
class Faults:
    error_rate: float = 0.0
    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    delay: float = 0.0
    nan: bool = False
    label: int = 3  # the class with the highest score; -1: any
    classes: int = CLASSES  # another number is another shape
    raw: bool = True  # the scores stand behind the outputs; otherwise in theirs
    compression: grpc.Compression = grpc.Compression.NoCompression


def scores(faults):
    """What is left of a ModelInferResponse: an output with its scores."""
    label = faults.label if faults.label >= 0 else random.randrange(faults.classes)
    numbers = [float("nan")] * faults.classes if faults.nan else [0.9 if i == label else 0.01 for i in range(faults.classes)]
    elements = struct.pack(f"<{faults.classes}f", *numbers)
    output = field(1, "scores") + field(2, "FP32") + field(3, bytes([1, faults.classes]))
    return field(5, output) + field(6, elements) if faults.raw else field(5, output + field(5, field(6, elements)))


def field(number, content):
    """A field of length `content`, as protobuf writes it."""
    content = content.encode() if isinstance(content, str) else content
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def fields(message):
    """{number: last content} of the text fields, as every reader of protobuf takes them."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
            continue
        assert tag & 7 == 2, message
        size = varint()
        assert at + size <= len(message), message
        found[tag >> 3] = message[at:at + size]
        at += size
    return found


class GrpcBackend(grpc.GenericRpcHandler):
    def __init__(self, version="1", service="digits", options=(), credentials=None, **faults):
        self.version, self.service_name, self.options, self.credentials = version, service, options, credentials
        self.faults = Faults(**faults)
        self.calls = []  # every inference: (metadata, message)
        self.left = []  # seconds that the last calls had
        self.produced = 0  # messages of streams
        self.cancelled = threading.Event()
        self.boot = f"{random.getrandbits(64):016x}"
        self._sequence = itertools.count()
        self._server = None
        self.port = 0

    @property
    def shadows(self):
        return sum("x-serin-shadow" in metadata for metadata, _ in list(self.calls))

    @property
    def inferences(self):
        return len(self.calls)

    @property
    def url(self):
        return f"grpc{'s' if self.credentials else ''}://127.0.0.1:{self.port}/v2/models/{self.service_name}/versions/{self.version}"

    def __enter__(self):
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[self], options=list(self.options))
        address = f"127.0.0.1:{self.port}"
        self.port = self._server.add_secure_port(address, self.credentials) if self.credentials else self._server.add_insecure_port(address)
        self._server.start()
        return self

    def __exit__(self, *_):
        self.down()

    def down(self, grace=None):
        self._server.stop(grace).wait()

    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        if name == "ModelInfer":
            return grpc.unary_unary_rpc_method_handler(self._infer)
        if name in ("ModelStreamInfer", "Bidi"):
            return grpc.stream_stream_rpc_method_handler(self._answer_each)
        if name in ("ModelReady", "Check"):
            return grpc.unary_unary_rpc_method_handler(lambda message, context: YES)
        if name == "Produce":
            return grpc.unary_stream_rpc_method_handler(self._produce)
        if name == "Collect":
            return grpc.stream_unary_rpc_method_handler(self._collect)
        return None

    def _infer(self, message, context):
        faults = self.faults
        self.calls.append((dict(context.invocation_metadata()), message))
        self.left.append(context.time_remaining())
        context.add_callback(lambda: context.code() or self.cancelled.set())
        if faults.delay:
            time.sleep(faults.delay)
        context.set_compression(faults.compression)  # the initial metadata say it
        context.send_initial_metadata((("x-serin-batch", f"{self.boot}-{next(self._sequence)}/0/1"), ("x-backend", self.version)))
        context.set_trailing_metadata((("x-trailer", "t"), ("x-trailer-bin", b"\x00\xff")))
        if random.random() < faults.error_rate:
            context.abort(faults.code, f"as ordered: 100 % {faults.code.name}")
        return self._answer(message, faults)

    def _answer(self, message, faults):
        asked = fields(message)
        echo = b"".join(field(number, asked[number]) for number in ECHOED if number in asked)
        return field(1, self.service_name) + field(2, self.version) + echo + scores(faults)

    def _answer_each(self, messages, context):
        for message in messages:
            yield field(2, self._answer(message, self.faults))  # of a ModelStreamInferResponse

    def _produce(self, message, context):
        for _ in range(int(message)):
            self.produced += 1
            yield bytes(64 << 10)

    def _collect(self, messages, context):
        total = 0
        for message in messages:
            self.produced += 1
            total += len(message)
            time.sleep(self.faults.delay)
        return str(total).encode()


def main():
    """One in a process of its own, to be killed; says where it is."""
    with GrpcBackend() as backend:
        print(backend.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
