"""What is written wrong is met with what was meant: paths, and bodies of another protocol."""

import pytest
from conftest import MODELS, call

ROWS = {"instances": [[0.0] * 64]}


@pytest.mark.parametrize("method, path, status, meant", [
    ("POST", "/v2/models/digits/infr", 404, "; did you mean /v2/models/digits/infer?"),
    ("POST", "/v2/models/digits/predict", 404, "; did you mean /v2/models/digits/infer?"),
    ("POST", "/v2/model/digits/infer", 404, "; did you mean /v2/models/digits/infer?"),
    ("POST", "/v2/models/digits/version/1/infer", 404, "; did you mean /v2/models/digits/versions/1/infer?"),
    ("POST", "/v2/models/digits/1/infer", 404, "; did you mean /v2/models/digits/versions/1/infer?"),
    ("POST", "/v2/digits/infer", 404, "; did you mean /v2/models/digits/infer?"),
    ("POST", "/models/digits/infer", 404, "; did you mean /v2/models/digits/infer?"),
    ("GET", "/v2/models/digits/infr", 404, "; did you mean POST /v2/models/digits/infer?"),
    ("GET", "/v2/models/digits/metadata", 404, "; did you mean /v2/models/digits?"),
    ("GET", "/v2/models/digits/versions", 404, "; did you mean /v2/models/digits/versions/<version>?"),
    ("GET", "/v2/health", 404, "; did you mean /v2/health/live or /v2/health/ready?"),
    ("GET", "/V2/Health/Ready", 404, "; did you mean /v2/health/ready?"),
    ("GET", "/v2//health/live", 404, "; did you mean /v2/health/live?"),
    ("POST", "/v2/models/digits:predict", 405, "; did you mean /v2/models/digits/infer or /v1/models/digits:predict?"),
    ("POST", "/v2/models/digits", 405, "; did you mean /v2/models/digits/infer or /v2/models/digits/generate?"),
    ("POST", "/v1/model/digits:predict", 404, "; did you mean /v1/models/digits:predict?"),
    ("POST", "/v1/models/digits/predict", 400, "; did you mean /v1/models/digits:predict?"),
    ("POST", "/v1/models/digits:infer", 400, "; did you mean /v1/models/digits:predict?"),
    ("GET", "/v1/models/digits:predict", 400, "; did you mean POST /v1/models/digits:predict?"),
    ("POST", "/v1/models/digits/version/1:predict", 400, "; did you mean /v1/models/digits/versions/1:predict?"),
    ("GET", "/nothing/like/it", 404, "Not Found"),
    ("GET", "/v2/models/digits/" + "a/" * 200, 404, "Not Found"),
    ("GET", "/" + "a" * 600, 404, "Not Found"),
])  # fmt: skip
def test_a_path_that_is_none_is_met_with_the_nearest(shared_runtime, method, path, status, meant):
    body = ROWS if method == "POST" else None
    answer = call(shared_runtime.url + path, body, method=method)
    assert answer.status == status and answer.error.endswith(meant), answer.error


@pytest.fixture
def begin(start, repository):
    """begin(arguments...): a server of digits, with no port for metrics."""
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    return lambda *arguments: start("serve", *arguments, "--models", models, "--port", 0, "--grpc-port", 0, "--metrics-port", "off", "--drain-seconds", 0)


def test_so_is_one_of_orders(begin):
    url = begin("--admin-on-data-port").url
    for method, path, meant in (("POST", "/v2/repository/models/digits/lod", "/v2/repository/models/digits/load"), ("POST", "/v2/repository", "/v2/repository/index"),
                                ("GET", "/v2/systemsharedmemory/stats", "/v2/systemsharedmemory/status")):  # fmt: skip
        answer = call(url + path, method=method)
        assert answer.status == 404 and answer.error.endswith(f"; did you mean {meant}?"), answer.error


def test_metrics_are_pointed_to(shared_runtime, begin):
    where = f"; metrics are at port {shared_runtime.ports['metrics']}"
    for path in ("/metrics", "/v2/metrics", "/monitoring/prometheus/metrics"):
        answer = call(shared_runtime.url + path)
        assert answer.status == 404 and answer.error.endswith(where), answer.error
    assert call(begin().url + "/metrics").error.endswith("; metrics are off")


def test_a_body_of_v1_is_sent_on(shared_runtime):
    answer = call(shared_runtime.url + "/v2/models/digits/infer", ROWS)
    assert answer.status == 400 and answer.error == "the request has no 'inputs'; with 'instances' it is V1's: POST /v1/models/digits:predict takes it"
    assert call(shared_runtime.url + "/v1/models/digits/versions/1:predict", ROWS).status == 200, "where it belongs"


def test_in_tritons_place_its_own_words_stand(begin):
    url = begin("--as", "tritonserver").url
    for path in ("/v2/models/digits/infr", "/v2/health", "/metrics", "/v2/repository/models/digits/lod"):
        answer = call(url + path, method="POST")
        assert (answer.status, answer.json) == (404, {"error": "Not Found"}), path
    assert call(url + "/v2/models/digits", b"{}").error == "this path takes GET only"
