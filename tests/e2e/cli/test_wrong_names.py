"""What is written wrong is met with what was meant: paths, bodies of another protocol, flags, commands, fields of config.pbtxt."""

import shutil

import pytest
from conftest import MODELS, call, infer_body, serin

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
    assert call(shared_runtime.url + "/metrics").headers["x-serin-metrics-port"] == str(shared_runtime.ports["metrics"])
    assert call(begin().url + "/metrics").error.endswith("; metrics are off")


def test_a_body_of_v1_is_sent_on(shared_runtime):
    answer = call(shared_runtime.url + "/v2/models/digits/infer", ROWS)
    assert answer.status == 400 and answer.error == "the request has no 'inputs'; with 'instances' it is V1's: POST /v1/models/digits:predict takes it"
    assert call(shared_runtime.url + "/v1/models/digits/versions/1:predict", ROWS).status == 200, "where it belongs"


def test_a_body_of_the_open_inference_protocol_is_sent_on(shared_runtime):
    answer = call(shared_runtime.url + "/v1/models/digits:predict", infer_body([[0.0] * 64]))
    assert answer.status == 400 and answer.error == "'inputs' has tensors of the Open Inference Protocol: POST /v2/models/MODEL/infer takes them"


def test_in_tritons_place_its_own_words_stand(begin):
    url = begin("--as", "tritonserver").url
    for path in ("/v2/models/digits/infr", "/v2/health", "/metrics", "/v2/repository/models/digits/lod"):
        answer = call(url + path, method="POST")
        assert (answer.status, answer.json) == (404, {"error": "Not Found"}), path
    assert call(url + "/v2/models/digits", b"{}").error == "this path takes GET only"


@pytest.mark.parametrize("arguments, meant", [
    (("serve", "--prt", "1"), "; did you mean '--port'?"), (("serve", "--grpc_port=1"), "; did you mean '--grpc-port'?"), (("srve",), "; did you mean 'serve'?"),
    (("rollout", "statsu"), "; did you mean 'status'?"), (("load", "http://127.0.0.1:1", "--modle", "m"), "; did you mean '--model'?"),
    (("serve", "--as", "tensorflow_model_server", "--rest_api_prt=8501"), "; did you mean '--rest_api_port'?"),
    (("serve", "--as", "tritonserver", "--modl-repository=x"), "; did you mean '--model-repository'?"),
])  # fmt: skip
def test_c5_a_flag_that_is_none_is_met_with_the_nearest(arguments, meant):
    done = serin(*arguments, timeout=20)
    assert done.returncode == 2 and meant in done.stderr and done.stderr.count("did you mean") == 1, done.stderr


@pytest.mark.parametrize("arguments", [("serve", "--qqqqqqqq"), ("serve", "--port", "x", "--prt"), ("nothing",)])
def test_c5_what_nothing_is_near_is_left_alone(arguments):
    done = serin(*arguments, timeout=20)
    assert done.returncode == 2 and "did you mean" not in done.stderr, done.stderr


@pytest.mark.parametrize("arguments, said", [
    (("nothing", "--port", "1"), "'nothing' is no command"), (("srve", "models/"), "'srve' is no command; did you mean 'serve'?"),
    (("rollout", "statsu", "digits"), "'statsu' is no command of serin rollout; did you mean 'status'?"),
])  # fmt: skip
def test_a_command_that_is_none_is_named(arguments, said):
    done = serin(*arguments, timeout=20)
    assert done.returncode == 2 and done.stderr.startswith(f"serin: {said}") and done.stderr.count("\n") == 1, done.stderr


def test_a_field_of_config_pbtxt_that_is_none_is_met_with_the_nearest(tmp_path):
    shutil.copytree(MODELS / "digits/1", tmp_path / "digits/1")
    (tmp_path / "digits/config.pbtxt").write_text("# a model\nmax_batch_sze: 8\ndynamic_batching { max_queue_delay_us: 5 prefered_batch_size: 4 }\nzzzz: 1\n")
    done = serin("serve", "--check", tmp_path)
    refuses = "; Triton refuses a file that has one"
    assert done.returncode == 0, done.stderr
    for words in (f"max_batch_sze (line 2): there is no such field (did you mean 'max_batch_size'?){refuses}",
                  f"prefered_batch_size (line 3): there is no such field (did you mean 'preferred_batch_size'?){refuses}",
                  f"zzzz (line 4): there is no such field{refuses}"):  # fmt: skip
        assert words in done.stderr + done.stdout, done.stderr
