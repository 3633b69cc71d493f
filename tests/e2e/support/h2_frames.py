"""HTTP/2 by hand (RFC 9113): a client of gRPC that keeps none of the rules it does not want to.

    with Peer(port, window=0) as peer:      # reads no answer's body
        peer.call(1, "/inference.GRPCInferenceService/ModelInfer", message)
        peer.reset(1)
        frames = peer.read(until=lambda frame: frame.type == HEADERS)
"""

import collections
import contextlib
import socket
import struct

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ROOM = 2**31 - 1

Frame = collections.namedtuple("Frame", "type flags stream payload")


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    """Without an index and without Huffman's code (RFC 7541, 6.2.2)."""
    return b"\0" + b"".join(length(len(text)) + text for text in (name.encode(), value.encode()))


def length(number):
    if number < 127:
        return bytes([number])
    out, number = b"\x7f", number - 127
    while number >= 128:
        out, number = out + bytes([number % 128 | 128]), number // 128
    return out + bytes([number])


def call_fields(path, **more):
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "content-type": "application/grpc", "te": "trailers",
              **{name.replace("_", "-"): value for name, value in more.items()}}
    return b"".join(field(name, value) for name, value in fields.items())


def framed(message, compressed=False):
    return struct.pack(">BI", compressed, len(message)) + message


class Peer:
    def __init__(self, port, window=ROOM, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.window, self.buffer = window, b""
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", ROOM - 65_535)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def open(self, stream, path, **headers):
        self.send(frame(HEADERS, END_HEADERS, stream, call_fields(path, **headers)))

    def call(self, stream, path, message, **headers):
        self.open(stream, path, **headers)
        self.message(stream, message, END_STREAM)

    def message(self, stream, message, flags=0, compressed=False):
        data = framed(message, compressed)
        pieces = [data[at:at + 16_384] for at in range(0, len(data), 16_384)]
        self.send(b"".join(frame(DATA, flags if piece is pieces[-1] else 0, stream, piece) for piece in pieces))

    def reset(self, stream):
        self.send(frame(RESET, 0, stream, struct.pack(">I", 8)))

    def read(self, until):
        """Frames up to the first of which `until` holds, or to the end of the connection."""
        frames = []
        while True:
            while len(self.buffer) >= 9 and len(self.buffer) >= 9 + (size := int.from_bytes(self.buffer[:3], "big")):
                got = Frame(self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big"), self.buffer[9:9 + size])
                self.buffer = self.buffer[9 + size:]
                frames.append(got)
                if got.type == SETTINGS and not got.flags & ACK:
                    with contextlib.suppress(ConnectionError):  # closed behind what is being read
                        self.send(frame(SETTINGS, ACK, 0))
                if until(got):
                    return frames
            try:
                data = self.socket.recv(65_536)
            except ConnectionError:
                data = b""
            if not data:
                return frames
            self.buffer += data
