"""Fake runtimes: they speak as much of the Open Inference Protocol as a router sees, and misbehave on command.

    with Backend("2") as canary:
        canary.faults = Faults(error_rate=0.5)      # from the next request on
        ...
        assert canary.inferences == canary.shadows  # only mirrored requests came here

Everything is in this process, so that a test switches faults and reads counters without a protocol of its own. The HTTP is by hand: half of
the faults are bytes that no library would send, and a thread that parses little leaves the two cores to the program under test.
"""

import contextlib
import dataclasses
import itertools
import json
import random
import socket
import threading
import time

CLASSES = 10


@dataclasses.dataclass(frozen=True)
class Faults:
    error_rate: float = 0.0  # share of 500; with batch > 1 whole batches fail
    status: int = 0  # every inference is answered with this one
    delay: float = 0.0  # seconds before every answer
    serial: bool = False  # the delays come one after the other
    hang: bool = False  # no answer until the faults change
    reset: bool = False  # the connection is reset instead
    reset_rate: float = 0.0
    closed: bool = False  # the connection is closed instead
    garbage: bytes = b""  # these bytes instead of an answer, then the end
    garbage_rate: float = 1.0  # share of the inferences that closed, garbage and truncated apply to
    then_reset: bool = False  # ... which is a reset
    stays_open: bool = False  # ... or then nothing, for as long as the other side waits
    nan: bool = False
    label: int = 3  # the class with the highest score; -1: any
    wrong_rate: float = 0.0  # share of answers with another class
    classes: int = CLASSES  # another number is another shape
    batch: int = 1  # requests that share one x-serin-batch; 0: the header is missing
    truncated: bool = False  # Content-Length announces more than comes
    only: tuple = ()  # (header, value): requests without it are answered well

    def of(self, headers):
        if not self.only or headers.get(self.only[0]) == self.only[1]:
            return self
        return Faults(batch=self.batch)


class Backend:
    def __init__(self, version="1", service="digits", tls=None, host="127.0.0.1", **faults):
        self.version, self.service, self.tls, self.host = version, service, tls, host
        self.faults = Faults(**faults)
        self.healthy = True
        self.requests = []  # every inference: (time, {lower-case header: value}, path)
        self.under_way = 0  # inferences
        self.bad = 0  # inferences that were answered with a status from 500 on, or with no whole answer
        self.busiest = 0  # most inferences under way at once
        self.boot = f"{random.getrandbits(64):016x}"
        self._sequence = itertools.count()
        self._connections = set()
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._listener = None
        self.port = 0

    # --- what tests look at ---

    @property
    def inferences(self):
        return len(self.requests)

    @property
    def shadows(self):
        return sum("x-serin-shadow" in headers for _, headers, _ in list(self.requests))

    @property
    def served(self):
        """Inferences that a client waits for."""
        return self.inferences - self.shadows

    @property
    def origin(self):
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}"

    @property
    def url(self):
        return f"{self.origin}/v2/models/{self.service}/versions/{self.version}"

    def last(self):
        """Headers of the latest inference."""
        return self.requests[-1][1]

    # --- life ---

    def up(self):
        """Listens; after down() on the port it had."""
        self._listener = socket.create_server((self.host, self.port), backlog=512)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def down(self):
        """As if the process had been killed: connections are reset, new ones refused."""
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept(), which close() alone does not
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.faults = Faults()
        with contextlib.suppress(OSError):
            self.down()

    # --- one thread for each connection ---

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._connections.add(connection)
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while (request := read_request(stream)) and self._answer(connection, *request):
                    pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _answer(self, connection, method, path, headers):
        """False where the connection ends."""
        if method == "POST" and path.endswith("/infer"):
            with self._counted():
                self.requests.append((time.monotonic(), headers, path))
                return self._infer(connection, headers)
        if path.endswith("/ready"):
            send(connection, 200 if self.healthy else 503, {"name": self.service, "ready": self.healthy})
        else:
            send(connection, 200, {"name": self.service, "versions": [self.version], "platform": "fake", "path": path,
                                   "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}], "outputs": []})
        return True

    @contextlib.contextmanager
    def _counted(self):
        with self._lock:
            self.under_way += 1
            self.busiest = max(self.busiest, self.under_way)
        try:
            yield
        finally:
            with self._lock:
                self.under_way -= 1

    def _infer(self, connection, asked):
        faults = self.faults.of(asked)
        while self.faults.hang:
            time.sleep(0.005)
        if faults.delay:
            with self._turn if faults.serial else contextlib.nullcontext():
                time.sleep(faults.delay)
        if faults.reset or random.random() < faults.reset_rate:
            self.bad += 1
            reset_on_close(connection)
            return False
        breaks = (faults.closed or faults.garbage or faults.truncated) and random.random() < faults.garbage_rate
        self.bad += bool(breaks)
        if breaks and not faults.truncated:
            connection.sendall(faults.garbage)
            if faults.stays_open:
                connection.recv(1)
            if faults.then_reset:
                time.sleep(0.002)  # a reset overtakes what was sent before it
                reset_on_close(connection)
            return False
        sequence, place = divmod(next(self._sequence), max(faults.batch, 1))
        fails = random.Random(f"{self.boot}{sequence}").random() < faults.error_rate
        headers = {"x-serin-batch": f"{self.boot}-{sequence}/{place}/{faults.batch}"} if faults.batch else {}
        status = faults.status or (500 if fails else 200)
        self.bad += status >= 500
        body = {"error": f"status {status} as ordered"} if status != 200 else self._output(faults)
        send(connection, status, body, headers, missing=100 if breaks else 0)
        return not breaks

    def _output(self, faults):
        label = faults.label if faults.label >= 0 else random.randrange(faults.classes)
        if random.random() < faults.wrong_rate:
            label = (label + 1 + random.randrange(faults.classes - 1)) % faults.classes
        scores = [float("nan")] * faults.classes if faults.nan else [0.9 if i == label else 0.01 for i in range(faults.classes)]
        return {"model_name": self.service, "model_version": self.version,
                "outputs": [{"name": "scores", "datatype": "FP32", "shape": [1, faults.classes], "data": scores}]}


def reset_on_close(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def read_request(stream):
    """(method, path, headers) with the body read and dropped; nothing at the end."""
    line = stream.readline().split()
    if len(line) != 3:
        return None
    headers = {}
    while (field := stream.readline().strip()):
        name, _, value = field.decode().partition(":")
        headers[name.lower()] = value.strip()
    stream.read(int(headers.get("content-length", 0)))
    return line[0].decode(), line[1].decode(), headers


def send(connection, status, body, headers=None, missing=0):
    content = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json", f"Content-Length: {len(content) + missing}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
