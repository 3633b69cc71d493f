"""A fake server of gRPC that breaks its answers in every way of HTTP/2, by hand (h2_frames.py).

    with H2Backend("2") as canary:
        canary.fault, canary.rate = RESET_EARLY, 0.1     # from the next inference on
        ...
        canary.bad                                       # inferences that were answered so

Inferences are told from health checks by their id (INFER): the fields of a request are compressed, and nobody here decompresses them.
"""

import contextlib
import itertools
import random
import socket
import struct
import threading
import time

from grpc_backends import YES, Faults, field as message_field, scores
from grpc_clients import infer
from h2_frames import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RESET, SETTINGS, WINDOW_UPDATE, field, frame, framed
from h2_frames import ACK, PREFACE, ROOM

ID = message_field(3, "id")
INFER = infer(more=ID)
INTERNAL_ERROR, REFUSED_STREAM = 2, 7

HEAD = field(":status", "200") + field("content-type", "application/grpc")


def end(stream, code):
    return frame(RESET, 0, stream, struct.pack(">I", code))


def head(stream, more=b"", flags=END_HEADERS):
    return frame(HEADERS, flags, stream, HEAD + more)


# What is sent instead of an answer to a stream, and whether the connection is closed behind it. `data`: the frame that would be in an answer.
FAULTS = {
    "reset-before-headers": (lambda stream, data: end(stream, INTERNAL_ERROR), False),
    "reset-after-headers": (lambda stream, data: head(stream) + end(stream, INTERNAL_ERROR), False),
    "reset-in-the-message": (lambda stream, data: head(stream) + frame(DATA, 0, stream, data[9:-3]) + end(stream, INTERNAL_ERROR), False),
    "refused-stream": (lambda stream, data: end(stream, REFUSED_STREAM), False),
    "no-status": (lambda stream, data: head(stream) + data + frame(DATA, END_STREAM, stream), False),
    "wrong-length": (lambda stream, data: head(stream, field("content-length", "3")) + data + frame(DATA, END_STREAM, stream), False),
    "malformed-fields": (lambda stream, data: head(stream, field("Upper-Case", "x")) + data, False),
    "bad-compression": (lambda stream, data: frame(HEADERS, END_HEADERS, stream, b"\xff\xff\xff\xff\xff\xff"), False),
    "bad-frame": (lambda stream, data: frame(DATA, 0, 0, b"x"), False),
    "goaway": (lambda stream, data: frame(GOAWAY, 0, 0, struct.pack(">II", stream, INTERNAL_ERROR)), True),
    "closed-before-headers": (lambda stream, data: b"", True),
    "closed-after-headers": (lambda stream, data: head(stream), True),
    "closed-in-the-message": (lambda stream, data: head(stream) + data[:-3], True),
}


class H2Backend:
    def __init__(self, version="1", service="digits"):
        self.version, self.service = version, service
        self.fault, self.rate = "", 0.0  # a key of FAULTS, and its share of the inferences
        self.inferences = self.bad = 0
        self.boot, self._sequence = f"{random.getrandbits(64):016x}", itertools.count()
        self._listener = None

    @property
    def url(self):
        return f"grpc://127.0.0.1:{self._listener.getsockname()[1]}/v2/models/{self.service}/versions/{self.version}"

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection):
        with contextlib.suppress(OSError, EOFError), connection, connection.makefile("rb") as stream:
            read(stream, len(PREFACE))
            connection.sendall(frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", ROOM - 65_535)))
            bodies = {}
            while True:
                kind, flags, number, payload = read_frame(stream)
                if kind == SETTINGS and not flags & ACK:
                    connection.sendall(frame(SETTINGS, ACK, 0))
                if kind == DATA:
                    bodies[number] = bodies.get(number, b"") + payload
                if kind in (DATA, HEADERS) and flags & END_STREAM and not self._answer(connection, number, bodies.pop(number, b"")):
                    return

    def _answer(self, connection, stream, body):
        """False where the connection ends."""
        inferred = ID in body
        message = message_field(1, self.service) + message_field(2, self.version) + scores(Faults()) if inferred else YES
        data = frame(DATA, 0, stream, framed(message))
        if inferred:
            self.inferences += 1
            if random.random() < self.rate:
                self.bad += 1
                bytes_of, closes = FAULTS[self.fault]
                connection.sendall(bytes_of(stream, data))
                if closes:
                    time.sleep(0.001)  # what was sent arrives before the end does
                return not closes
        batch = field("x-serin-batch", f"{self.boot}-{next(self._sequence)}/0/1")
        connection.sendall(head(stream, batch) + data + frame(HEADERS, END_HEADERS | END_STREAM, stream, field("grpc-status", "0")))
        return True


def read(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def read_frame(stream):
    start = read(stream, 9)
    return start[3], start[4], int.from_bytes(start[5:9], "big"), read(stream, int.from_bytes(start[:3], "big"))
