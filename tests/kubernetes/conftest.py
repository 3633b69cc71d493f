"""A real control plane of Kubernetes for tests, and all that tests/e2e/conftest.py has for servers: free ports, `route`, `backend`, and so on."""

import importlib.util
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def _take_over(path):
    """Helpers of tests/e2e import what they need from a module `conftest`, which is this file here."""
    spec = importlib.util.spec_from_file_location("conftest_of_e2e", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    globals().update({name: value for name, value in vars(module).items() if not name.startswith("__") and name != "HERE"})


_take_over(HERE.parent / "e2e" / "conftest.py")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Cluster for tests that use namespaces of their own, with controllers, a scheduler and six fake nodes. A test that kills its API server starts it again."""
    from cluster import Cluster, why_not

    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cluster(tmp_path_factory.mktemp("cluster"), nodes=6) as made:
        yield made


@pytest.fixture
def namespace(cluster, request):
    """A new namespace that refuses pods below the standard `restricted`; its name. It goes, with all that is in it, after the test."""
    name = cluster.create_namespace()
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def address():
    """This machine's own, for servers that EndpointSlices name."""
    from discovery import own_address

    found = own_address()
    if found is None:
        pytest.skip("this machine has no address but loopback, which the API server refuses in an EndpointSlice")
    return found


sys.path.append(str(HERE))
