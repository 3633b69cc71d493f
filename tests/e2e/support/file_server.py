"""A server of plain files, as in front of a bucket, that can also do what servers and networks do wrong.

    with FileServer(folder) as files:
        files.url                                   # http://127.0.0.1:PORT; https with FileServer(folder, context=...)
        files.asked                                 # (path, status, Range or None), in order
        files.heads                                 # their headers
        files.do("digits/index.json", "forbid")     # until files.do(path, None)
    files.sent["digits/blobs/sha256/91ab..."]   # bytes of bodies
    FileServer(folder, rate=8 << 20)            # bytes a second, for all clients together
"""

import collections
import functools
import hashlib
import http.server
import threading
import time


class Throttle:
    """So many bytes a second, whoever sends them."""

    def __init__(self, rate):
        self.rate, self.free, self.lock = rate, time.monotonic(), threading.Lock()

    def wait(self, size):
        with self.lock:
            self.free = max(self.free, time.monotonic()) + size / self.rate
            until = self.free
        time.sleep(max(0, until - time.monotonic()))


@functools.lru_cache(maxsize=8)
def read_tagged(file, _changed):
    body = file.read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:20]}"'


class FileServer:
    """Deeds: `forbid` (403), `break` (503), `corrupt` (the last byte differs), `truncate` (half, then the connection ends, and no ranges), `crumbs` (half of what
    is asked for, then the connection ends), `stall` (half, then nothing until the end of the test), `long` (more than there is), `plain` (no ranges), `fail once` (half, then the connection ends, the first time only),
    `loop` (redirects to itself), and (`redirect`, URL)."""

    def __init__(self, folder, context=None, rate=None):
        self.folder, self.asked, self.heads, self.deeds = folder, [], [], {}
        self.sent, self.sending, self.throttle = collections.Counter(), threading.Lock(), rate and Throttle(rate)
        self.stalled, self.goes_on, self.counts = threading.Event(), threading.Event(), collections.Counter()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"files": self}))
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def do(self, path, deed):
        self.deeds[path] = deed

    def bodies(self, path):
        """How often the file was sent, wholly or from some byte on."""
        return [each for each in self.asked if each[0] == path and each[1] in (200, 206)]

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
    files: FileServer

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", length=None, **headers):
        self.files.asked.append((self.path.lstrip("/"), status, self.headers.get("Range")))
        self.files.heads.append(dict(self.headers.items()))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.send(body)
        self.wfile.flush()

    def send(self, body):
        piece = 64 * 1024 if self.files.throttle else max(len(body), 1)
        for begin in range(0, len(body), piece):
            part = body[begin:begin + piece]
            if self.files.throttle:
                self.files.throttle.wait(len(part))
            self.wfile.write(part)
            with self.files.sending:
                self.files.sent[self.path.lstrip("/")] += len(part)

    def do_GET(self):
        path = self.path.lstrip("/")
        deed, file = self.files.deeds.get(path), self.files.folder / path
        self.files.counts[path] += 1
        if deed == "forbid":
            return self.answer(403, b"no" * 5000)
        if deed == "break":
            return self.answer(503, b"later")
        if deed == "loop":
            return self.answer(302, Location=self.path)
        if isinstance(deed, tuple):
            return self.answer(307, Location=deed[1])
        if not file.is_file():
            return self.answer(404, b"not here" * 500)
        body, tag = read_tagged(file, file.stat().st_mtime_ns)
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, ETag=tag)
        if deed == "corrupt":
            body = body[:-1] + bytes([body[-1] ^ 1])
        if deed == "long":
            body += b"x" * 100_000
        status = 200
        if self.headers.get("Range") and deed not in ("plain", "truncate"):
            begin, last = self.headers["Range"].removeprefix("bytes=").split("-")
            status, body = 206, body[int(begin):int(last) + 1 if last else None]
        if deed in ("truncate", "crumbs", "stall") or (deed == "fail once" and self.files.counts[path] == 1):
            self.answer(status, body[:(len(body) + 1) // 2], len(body), ETag=tag)
            if deed == "stall":
                self.files.stalled.set()
                self.files.goes_on.wait()
            self.close_connection = True
            return None
        return self.answer(status, body, ETag=tag)
