"""KServe's own SDK (kserve_client.py): its clients of REST, version 1 and 2, and of gRPC, against a server that is started as KServe starts its own, and against one that is not."""

import shutil

import numpy as np
import pytest
from conftest import MODELS, ON_FREE_PORTS, Process, run_client

STARTED = {"serin": ON_FREE_PORTS, "kserve": ["--as", "kserve", "--http_port=0", "--grpc_port=0"]}


@pytest.fixture(scope="module", params=STARTED)
def dialect(request):
    return request.param


@pytest.fixture(scope="module")
def results(dialect, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(MODELS / "digits/1", folder / "digits/1")
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *STARTED[dialect])
    yield run_client("kserve_client.py", str(process.ports["http"]), str(process.ports["grpc"]))
    assert process.end() == 0


def test_every_client_gets_the_same_numbers(results):
    rows = results["v1"]["infer"]["predictions"]
    assert len(rows) == 2 and all(abs(sum(row) - 1) < 1e-5 for row in rows)
    answers = [results["v2"][call] for call in ("infer", "binary", "binary_out")] + [results["grpc"][call] for call in ("infer", "binary")]
    assert all(answer == {**answers[0], "model": "digits", "id": "7"} for answer in answers)
    assert results["v2"]["data_model"][0] == 200 and np.allclose(results["v2"]["data_model"][1], np.ravel(answers[0]["scores"]), atol=1e-6)
    assert all(abs(a - b) < 1e-6 for mine, its in zip(answers[0]["scores"], rows, strict=True) for a, b in zip(mine, its, strict=True))


def test_probes_are_answered(results, dialect):
    assert all(results[client][call] is True for client in ("v2", "grpc") for call in ("live", "ready", "model_ready"))
    assert results["v2"]["no_model_ready"] is False
    no_model = results["grpc"]["no_model_ready"]
    assert no_model[0] == "NOT_FOUND" if dialect == "kserve" else no_model is False, "as KServe's server, and as Triton"
    if dialect == "kserve":  # version 1 asks at paths that are TensorFlow Serving's otherwise
        assert results["v1"]["live"] is True and results["v1"]["model_ready"] is True


def test_errors_reach_whoever_asked(results, dialect):
    shape = "input 'pixels' expects [-1,64] FP32, the request has [2,3]"
    assert results["v2"]["no_model"][0] == 404 and results["v1"]["no_model"][0] == 404 and results["grpc"]["no_model"][0] == "NOT_FOUND"
    assert results["v2"]["bad_shape"][0] == 400 and shape in results["v2"]["bad_shape"][1]
    assert results["grpc"]["bad_shape"][0] == "INVALID_ARGUMENT" and shape in results["grpc"]["bad_shape"][1]
    assert results["v1"]["bad_shape"][0] == 400 and "the request has [1,1]" in results["v1"]["bad_shape"][1]
    assert results["v1"]["explain"][0] == (501 if dialect == "kserve" else 400)
