"""A client of KEDA's external scalers, with a stub that protoc generates, and the listener of a router that it asks.

    asked = Scaler(tmp_path)                              # asked.yaml: for router.yaml
    asked.trigger(version="2").is_active()
    with asked.trigger(version="2").stream() as activity:
        wait_until(lambda: activity.told[-1:] == [True])
"""

import contextlib
import functools
import importlib.util
import subprocess
import tempfile
import threading

import grpc

from conftest import ROOT, free_port


@functools.cache
def messages():
    """The module of the messages."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={ROOT / 'runtime/protocol/proto'}", f"--python_out={folder}", "external_scaler.proto"], check=True)
        made = importlib.util.spec_from_file_location("external_scaler_pb2", f"{folder}/external_scaler_pb2.py")
        module = importlib.util.module_from_spec(made)
        made.loader.exec_module(module)
    return module


class Activity:
    """What a stream tells, in a thread of its own."""

    def __init__(self, call):
        self.told, self.ended, self._call = [], None, call
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for answer in self._call:
                self.told.append(answer.result)
            self.ended = grpc.StatusCode.OK
        except grpc.RpcError as error:
            self.ended = error.code()

    def close(self):
        self._call.cancel()
        self._thread.join(10)


class Trigger:
    def __init__(self, channel, metadata):
        self._channel = channel
        self._object = messages().ScaledObjectRef(name="serin", namespace="models", scaler_metadata=metadata)

    def _ask(self, method, request, answer):
        serialize = type(request).SerializeToString
        return self._channel.unary_unary(f"/externalscaler.ExternalScaler/{method}", serialize, answer.FromString)(request, timeout=10)

    def is_active(self):
        return self._ask("IsActive", self._object, messages().IsActiveResponse).result

    def spec(self):
        """(name, whole target, target)"""
        [spec] = self._ask("GetMetricSpec", self._object, messages().GetMetricSpecResponse).metric_specs
        return spec.metric_name, spec.target_size, spec.target_size_float

    def value(self, metric="serin_route_in_flight_requests"):
        """(whole value, value)"""
        request = messages().GetMetricsRequest(scaled_object_ref=self._object, metric_name=metric)
        [value] = self._ask("GetMetrics", request, messages().GetMetricsResponse).metric_values
        assert value.metric_name == metric
        return value.metric_value, value.metric_value_float

    @contextlib.contextmanager
    def stream(self):
        method = self._channel.unary_stream("/externalscaler.ExternalScaler/StreamIsActive", type(self._object).SerializeToString,
                                            messages().IsActiveResponse.FromString)
        activity = Activity(method(self._object))
        try:
            yield activity
        finally:
            activity.close()


class Scaler:
    """`tls`: of the listener. `credentials`: of the client."""

    def __init__(self, tls=None, credentials=None):
        port = free_port()
        self.yaml = {"listen": f"127.0.0.1:{port}", **({"tls": tls} if tls else {})}
        self._address = f"localhost:{port}" if credentials else f"127.0.0.1:{port}"
        self.channel = self.connect(credentials)

    def connect(self, credentials):
        return grpc.secure_channel(self._address, credentials) if credentials else grpc.insecure_channel(self._address)

    def trigger(self, channel=None, **metadata):
        return Trigger(channel or self.channel, {"scalerAddress": self._address, "service": "digits", "version": "1", "threshold": "8", **metadata})
