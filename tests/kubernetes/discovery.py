"""EndpointSlices on a real API server for processes of this machine, and a router that finds them.

The API server takes no slice with an address on loopback, so what serves listens on this machine's own address.
"""

import socket

import yaml
from conftest import ROOT

from routers import QUICK_HEALTH
from slices import endpoint, slice_of


def own_address():
    """The address that a packet to anywhere would come from; none is sent. None: there is only loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        try:
            asker.connect(("192.0.2.254", 9))
        except OSError:
            return None
        address = asker.getsockname()[0]
    return None if address.startswith(("127.", "169.254.")) else address


class RealPods:
    """Slices of the service serin-v1, written as an administrator. Each server has a port of its own, so each has a slice of its own."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.collection = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"

    def set(self, server, **conditions):
        """`server` has a host and a port."""
        name = f"serin-v1-{server.port}"
        made = slice_of(name, [endpoint(server.host, **conditions)], server.port, labels={"endpointslice.kubernetes.io/managed-by": "test.serin.dev"})
        answer = self.cluster.api(f"{self.collection}/{name}", made, "PATCH", content_type="application/merge-patch+json")
        if answer.status == 404:
            answer = self.cluster.api(self.collection, made, "POST")
        assert answer.status in (200, 201), answer.body

    def remove(self, server):
        assert self.cluster.api(f"{self.collection}/serin-v1-{server.port}", method="DELETE").status == 200


class PublishedSlices:
    """EndpointSlices of the pods of pod_harness.py, written as the controller of EndpointSlices writes them."""

    def __init__(self, pods):
        self.pods, self._told = pods, {}

    def publish(self, endpoints):
        now = {each.pod: each for each in endpoints}
        for name, each in now.items():
            if self._told.get(name) != each:
                self.pods.set(Server(each), ready=each.ready, serving=each.serving, terminating=each.terminating, node=each.node)
        for name in self._told.keys() - now.keys():
            self.pods.remove(Server(self._told[name]))
        self._told = now


class Server:
    """Of a pod, for RealPods."""

    def __init__(self, endpoint):
        self.host, self.port = endpoint.address, endpoint.ports["http"]


def discover(route, pods, folder, taints=(), **more):
    """A router that has the endpoints of its only version from these slices. Its account may do what deploy/kubernetes/crds/router-role.yaml says.
    `taints`: of nodes, which it may read then, too."""
    rules = yaml.safe_load((ROOT / "deploy/kubernetes/crds/router-role.yaml").read_text())["rules"]
    token = folder / "token"
    token.write_text(pods.cluster.service_account(pods.namespace, "serin-router", rules))
    if taints:
        pods.cluster.may_read_nodes(pods.namespace, "serin-router")
    version = {"name": "1", "endpoints": {"kubernetes": {"service": "serin-v1", "port": "http", **more}}, "health": QUICK_HEALTH}
    return route({"name": "digits", "initial_stable": "1", "versions": [version]},
                 kubernetes={**({"node_taints": list(taints)} if taints else {}), "server": pods.cluster.url, "namespace": pods.namespace, "token_file": str(token), "tls": {"ca": str(pods.cluster.ca)}})
