"""Clients in threads: they ask as fast as they are answered, and keep count of what they saw.

    with Traffic(router.url) as traffic:
        ...
    assert traffic.failures == [] and traffic.versions["1"] > 100

Each has one kept connection; the HTTP is by hand, because two cores are shared with the router and the backends.
"""

import collections
import json
import socket
import threading
import time
import urllib.parse

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}).encode()


class Connection:
    """One kept connection to a server, opened when it is first needed."""

    def __init__(self, url, timeout=30, tls=None):
        parts = urllib.parse.urlsplit(url)
        self.address, self.timeout, self.tls = (parts.hostname, parts.port), timeout, tls
        self.socket = self.stream = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, part):
        if self.socket is None:
            self.socket = socket.create_connection(self.address, timeout=self.timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                self.socket = self.tls.wrap_socket(self.socket, server_hostname=self.address[0])
            self.stream = self.socket.makefile("rb")
        self.socket.sendall(part)

    def ask(self, request):
        """Sends the bytes of a request, or its last ones; (status, {lower-case header: value}, body)."""
        self.send(request)
        line = self.stream.readline()
        if not line:
            raise ConnectionError("closed before an answer came")
        headers = {}
        while (field := self.stream.readline().strip()):
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = self.stream.read(length)
        if len(body) < length:
            raise ConnectionError("closed in the middle of the answer")
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(line.split()[1]), headers, body

    def close(self):
        if self.socket is not None:
            self.stream.close()
            self.socket.close()
        self.socket = self.stream = None


def infer_request(service="digits", body=BODY, headers=None, path=None):
    lines = [f"POST {path or f'/v2/models/{service}/infer'} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Traffic:
    def __init__(self, url, clients=4, service="digits", body=BODY, headers=None, path=None, pause=0.0, reconnect=False, tls=None):
        self.url, self.clients, self.pause, self.reconnect, self.tls = url, clients, pause, reconnect, tls
        self.request = infer_request(service, body, headers, path)
        self.statuses, self.versions = collections.Counter(), collections.Counter()
        self.failures = []  # the first few answers that were not 200, and lost connections
        self.broken = 0  # connections lost without an answer
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = []

    @property
    def answers(self):
        return sum(self.statuses.values())

    def __enter__(self):
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client still waits for its answer"

    def __exit__(self, *_):
        self.stop()

    def _run(self):
        connection = Connection(self.url, tls=self.tls)
        while not self._stop.is_set():
            try:
                status, headers, body = connection.ask(self.request)
            except (OSError, ValueError, IndexError) as error:
                connection.close()
                self._lost(error)
                time.sleep(0.01)  # the server may be away for a moment: no reason to burn a core
                continue
            with self._lock:
                self.statuses[status] += 1
                self.versions[headers.get("x-serin-version")] += 1
                if status != 200 and len(self.failures) < 10:
                    self.failures.append((status, body.decode(errors="replace")))
            if self.reconnect:
                connection.close()
            if self.pause:
                time.sleep(self.pause)
        connection.close()

    def _lost(self, error):
        with self._lock:
            self.broken += 1
            if len(self.failures) < 10:
                self.failures.append((0, repr(error)))


def ask(url, count, tls=None, **options):
    """`count` requests, one after the other, on one connection: the list of (status, headers, body)."""
    connection, request = Connection(url, tls=tls), infer_request(**options)
    try:
        return [connection.ask(request) for _ in range(count)]
    finally:
        connection.close()
