"""Peers of a registry (runtime/registry/peer_listener.h) that do what peers should not.

    with FalsePeer("127.0.0.9", port, "corrupt", blobs={"sha256:91ab...": contents}) as peer:
        peer.asked                                     # paths, in order
"""

import http.server
import json
import threading

MIB = 1 << 20


class FalsePeer:
    """Deeds: `corrupt` (offers all, a byte of each chunk differs), `short` and `long` (chunks of another size), `dies` (half of a chunk), `hangs` (says
    nothing at all), `stalls` (offers all, sends nothing), `other` (404), `page` (HTML), `lies` (states of another size)."""

    def __init__(self, address, port, deed, blobs):
        self.deed, self.blobs, self.asked, self.goes_on = deed, blobs, [], threading.Event()
        self.server = http.server.ThreadingHTTPServer((address, port), type("Handler", (Handler,), {"peer": self}))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.goes_on.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    peer: FalsePeer

    def log_message(self, *_):
        pass

    def answer(self, status, body, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        deed = self.peer.deed
        self.peer.asked.append(self.path)
        digest, _, chunk = self.path.removeprefix("/v1/blobs/").partition("/")
        contents = self.peer.blobs.get(digest)
        if deed == "hangs" or (deed == "stalls" and chunk):
            self.peer.goes_on.wait()
            self.close_connection = True
            return None
        if deed == "page":
            return self.answer(200, b"<html>")
        if deed == "other" or contents is None:
            return self.answer(404, b"{}")
        if not chunk:
            count = -(-len(contents) // MIB) + (deed == "lies")
            return self.answer(200, json.dumps({"server": "false", "bytes": len(contents), "chunk_bytes": MIB, "chunks": "+" * count}).encode())
        piece = contents[int(chunk) * MIB:(int(chunk) + 1) * MIB]
        if deed == "corrupt":
            piece = bytes([piece[0] ^ 1]) + piece[1:]
        if deed == "dies":
            self.close_connection = True
            return self.answer(200, piece[:len(piece) // 2], len(piece))
        return self.answer(200, {"short": piece[:-1], "long": piece + b"x"}.get(deed, piece))
