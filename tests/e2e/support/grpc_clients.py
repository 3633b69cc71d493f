"""Clients of gRPC, made with grpcio."""

import collections
import threading

import grpc
import pytest

from grpc_backends import OIP, field


def infer(model="digits", more=b""):
    """The message of an inference."""
    return field(1, model) + more


def code_of(failing):
    with pytest.raises(grpc.RpcError) as error:
        failing()
    return error.value.code()


class Calls:
    """Clients in threads that infer as fast as they are answered; no more than the shield may run again at once, however little goes on."""

    def __init__(self, channel, clients=3, message=infer(), **options):
        self.method, self.message, self.options = channel.unary_unary(OIP + "ModelInfer"), message, options
        self.versions, self.failures = collections.Counter(), []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]

    @property
    def answers(self):
        return sum(self.versions.values())

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self):
        while not self._stop.is_set():
            try:
                _, ended = self.method.with_call(self.message, timeout=30, **self.options)
                self.versions[dict(ended.initial_metadata())["x-serin-version"]] += 1
            except grpc.RpcError as error:
                self.failures.append((error.code(), error.details()))
