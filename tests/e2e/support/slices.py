"""EndpointSlices of pods that are fake runtimes, in an API server in memory (kube_api.py).

    pods = Pods(objects)                       # of the service serin-v1
    pods.set(backend)                          # a slice with its port, ready
    pods.set(backend, ready=False, terminating=True)
    pods.remove(backend)
"""

from kube_api import Refused

SLICES = ("discovery.k8s.io", "models", "endpointslices")


NODES = ("", None, "nodes")


def endpoint(address="127.0.0.1", ready=True, serving=None, terminating=False, zones=(), node=None):
    """`serving` is as `ready` where it is not given, and true of one that terminates."""
    serving = (ready or terminating) if serving is None else serving
    made = {"addresses": [address], "conditions": {"ready": ready, "serving": serving, "terminating": terminating}}
    hints = {"hints": {"forZones": [{"name": zone} for zone in zones]}} if zones else {}
    return {**made, **hints, **({"nodeName": node} if node else {})}


def slice_of(name, endpoints, port, service="serin-v1", labels=None, **more_ports):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": endpoints,
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service, **(labels or {})}},
            "ports": [{"name": each, "port": number, "protocol": "TCP"} for each, number in {"http": port, **more_ports}.items()]}


class Pods:
    """Each backend has a port of its own, so each has a slice of its own."""

    def __init__(self, objects, service="serin-v1", **labels):
        self.objects, self.service, self.labels = objects, service, labels

    def _name(self, backend):
        return f"{self.service}-{backend.port}"

    def set(self, backend, **conditions):
        made = slice_of(self._name(backend), [endpoint(**conditions)], backend.port, self.service, self.labels)
        try:
            self.objects.replace(SLICES, made["metadata"]["name"], made)
        except Refused:
            self.objects.create(SLICES, made)

    def remove(self, backend):
        self.objects.delete(SLICES, self._name(backend))
