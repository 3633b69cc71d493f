"""`serin serve` called as other servers are: by KServe with fixed arguments, by images with environment variables, by people with a flag too many."""

import contextlib
import json
import shutil

import numpy
import pytest
import tritonclient.grpc
from conftest import DATA, MODELS, ON_FREE_PORTS, SERIN, Process, call, free_port, infer_body, serin, wait_until
from tritonclient.utils import InferenceServerException

PIXELS = infer_body([[0.0] * 64])


@pytest.fixture
def digits(tmp_path):
    """A folder with versions 1 and 2 of one model, as KServe mounts it."""
    folder = tmp_path / "mnt" / "digits"
    for version in ("1", "2"):
        (folder / version).mkdir(parents=True)
        shutil.copy(MODELS / "digits" / version / "model.onnx", folder / version)
    return folder


@pytest.fixture
def called_as(tmp_path, monkeypatch):
    """called_as("tritonserver", ...): a ready Process that runs by a link of that name."""
    def begin(name, *arguments, env=None):
        link = tmp_path / name
        link.symlink_to(SERIN)
        monkeypatch.setattr("conftest.SERIN", link)
        return stack.enter_context(Process(tmp_path, "--log-level", "info", *arguments, env=env))

    with contextlib.ExitStack() as stack:
        yield begin


def test_the_arguments_that_kserve_starts_triton_with(called_as, digits):
    http, grpc = free_port(), free_port()
    process = called_as("tritonserver", f"--model-store={digits.parent}", f"--grpc-port={grpc}", f"--http-port={http}", "--allow-grpc=true", "--allow-http=true",
                        "--metrics-port", "0")
    assert call(f"http://127.0.0.1:{http}/v2/models/digits/versions/2/infer", PIXELS).status == 200
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{grpc}")
    assert client.is_model_ready("digits", "2") and process.ports["metrics"]


def test_the_arguments_that_kserve_starts_tensorflow_serving_with(called_as, digits):
    rest = free_port()
    process = called_as("tensorflow_model_server", "--model_name=digits", f"--port={free_port()}", f"--rest_api_port={rest}", f"--model_base_path={digits}",
                        "--rest_api_timeout_in_ms=60000")
    answer = call(f"http://127.0.0.1:{rest}/v1/models/digits:predict", {"instances": [[0.0] * 64]})
    assert len(answer.json["predictions"][0]) == 10
    assert call(f"http://127.0.0.1:{rest}/v1/models/digits").json["model_version_status"][0]["state"] == "AVAILABLE"
    assert "nv_inference_count" in call(f"http://127.0.0.1:{rest}/monitoring/prometheus/metrics").body.decode()
    assert "metrics" not in process.ports and "changes nothing" not in process.log


@pytest.mark.parametrize("long, status", [("60000", 200), ("1", 504)])
def test_a_longest_time_for_requests_over_rest(called_as, digits, long, status):
    rest = free_port()
    called_as("tensorflow_model_server", "--model_name=digits", "--port=0", f"--rest_api_port={rest}", f"--model_base_path={digits}",
              f"--rest_api_timeout_in_ms={long}")  # fmt: skip
    assert call(f"http://127.0.0.1:{rest}/v1/models/digits:predict", {"instances": [[0.0] * 64] * 5000}).status == status


def test_the_environment_of_tensorflow_servings_image(called_as, digits):
    rest, grpc = free_port(), free_port()
    called_as("tensorflow_model_server", f"--rest_api_port={rest}", f"--port={grpc}", env={"MODEL_NAME": "digits", "MODEL_BASE_PATH": str(digits.parent)})
    assert len(call(f"http://127.0.0.1:{rest}/v1/models/digits/versions/2:predict", {"instances": [[0.0] * 64]}).json["predictions"]) == 1
    assert call(f"http://127.0.0.1:{rest}/v1/models/digits/versions/1").status == 404, "the latest alone, as there"


def test_the_name_alone_is_under_the_place_that_the_image_sets(called_as):
    """MODEL_BASE_PATH=/models, which nobody has here: it is waited for, as there."""
    rest = free_port()
    process = called_as("tensorflow_model_server", f"--rest_api_port={rest}", "--port=0", env={"MODEL_NAME": "half_plus_two"})
    assert "model 'half_plus_two' is not served yet: /models/half_plus_two: no such folder or file" in process.log
    assert call(f"http://127.0.0.1:{rest}/v1/models/half_plus_two").status == 404 and call(f"http://127.0.0.1:{rest}/v2/health/ready").status == 503


@pytest.mark.parametrize("list_poll", [[], ["--model_config_file_poll_wait_seconds=0.2"]], ids=["places", "list"])
def test_places_that_are_not_there_yet_are_waited_for(called_as, digits, tmp_path, list_poll):
    rest, later = free_port(), tmp_path / "later"
    config = tmp_path / "models.config"
    config.write_text(f"""model_config_list {{ config {{ name: "now" base_path: "{digits}" }} config {{ name: "later" base_path: "{later}" }} }}""")
    place = [f"--model_config_file={config}", *list_poll] if list_poll else ["--model_name=later", f"--model_base_path={later}"]
    called_as("tensorflow_model_server", *place, f"--rest_api_port={rest}", "--port=0", "--file_system_poll_wait_seconds=0.2")
    assert call(f"http://127.0.0.1:{rest}/v1/models/now").status == (200 if list_poll else 404)
    assert call(f"http://127.0.0.1:{rest}/v1/models/later").status == 404
    shutil.copytree(digits, later)
    wait_until(lambda: call(f"http://127.0.0.1:{rest}/v1/models/later:predict", {"instances": [[0.0] * 64]}).status == 200)
    assert call(f"http://127.0.0.1:{rest}/v2/health/ready").status == 200


def test_a_list_of_places_that_come_is_followed_without_being_read_again(called_as, digits, tmp_path):
    rest, later = free_port(), tmp_path / "later"
    config = tmp_path / "models.config"
    config.write_text(f"""model_config_list {{ config {{ name: "now" base_path: "{digits}" }} config {{ name: "later" base_path: "{later}" }} }}""")
    called_as("tensorflow_model_server", f"--model_config_file={config}", f"--rest_api_port={rest}", "--port=0", "--file_system_poll_wait_seconds=0.2")
    shutil.copytree(digits, later)
    wait_until(lambda: call(f"http://127.0.0.1:{rest}/v1/models/later").status == 200)
    assert call(f"http://127.0.0.1:{rest}/v1/models/now").status == 200


def test_tensorflow_servings_list_of_models(called_as, digits, tmp_path):
    rest = free_port()
    config = tmp_path / "models.config"
    config.write_text(f"""model_config_list {{
      config {{ name: "all" base_path: "{digits}" model_platform: "tensorflow" model_version_policy {{ all {{}} }}
                version_labels {{ key: "stable" value: 1 }} version_labels {{ key: "canary" value: 2 }} }}
      config {{ name: "first" base_path: "{digits}" model_version_policy {{ specific {{ versions: 1 }} }} logging_config {{}} }}
      config {{ name: "last" base_path: "{digits}" }} }}""")
    # The image of TensorFlow Serving always names a base path, too: the list goes before it.
    called_as("tensorflow_model_server", f"--model_config_file={config}", "--model_base_path=/nowhere", f"--rest_api_port={rest}", "--port=0")
    versions = {name: {entry["version"] for entry in call(f"http://127.0.0.1:{rest}/v1/models/{name}").json["model_version_status"]}
                for name in ("all", "first", "last")}
    assert versions == {"all": {"1", "2"}, "first": {"1"}, "last": {"2"}}
    assert call(f"http://127.0.0.1:{rest}/v1/models/all/labels/stable:predict", {"instances": [[0.0] * 64]}).headers["x-serin-version"] == "1"
    config.write_text("model_config_list { config { name: 5 } }")
    done = serin("serve", "--as", "tensorflow_model_server", "--model_config_file", config)
    assert done.returncode == 2 and f"{config}: 1:36: " in done.stderr


def test_the_arguments_that_kserve_starts_openvino_with(called_as, digits):
    rest = free_port()
    called_as("ovms", "--model_name=digits", f"--model_path={digits}", f"--port={free_port()}", f"--rest_port={rest}", "--file_system_poll_wait_seconds=0")
    assert call(f"http://127.0.0.1:{rest}/v2/models/digits/infer", PIXELS).status == 200


def test_openvinos_list_of_models(called_as, digits, tmp_path):
    rest = free_port()
    listing = tmp_path / "config.json"
    listing.write_text(json.dumps({"model_config_list": [{"config": {"name": name, "base_path": str(digits)}} for name in ("a", "b")]}))
    called_as("ovms", f"--config_path={listing}", f"--rest_port={rest}", "--port=0", "--metrics_enable")
    assert call(f"http://127.0.0.1:{rest}/v2/models").json == {"models": ["a", "b"]}
    assert call(f"http://127.0.0.1:{rest}/metrics").status == 200


@pytest.mark.parametrize("name", ["paddle", "kserve"])
def test_the_arguments_that_kserve_starts_its_own_servers_with(called_as, digits, name):
    http = free_port()
    process = called_as(name, "--model_name=digits", f"--model_dir={digits}", f"--http_port={http}", "--grpc_port=0", "--workers=1")
    assert call(f"http://127.0.0.1:{http}/v2/models/digits/infer", PIXELS).status == 200
    assert call(f"http://127.0.0.1:{http}/metrics").status == 200
    if name == "kserve":
        assert call(f"http://127.0.0.1:{http}/v1/models").json == {"models": ["digits"]}
    assert "--workers changes nothing" in process.log


def test_control_is_explicit_where_triton_was_told_so(start, digits):
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    process = start("serve", "--as", "tritonserver", f"--model-repository={digits.parent}", "--model-control-mode=explicit", *ports)
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{process.ports['grpc']}")
    assert client.is_server_ready() and not client.is_model_ready("digits")
    client.load_model("digits")
    assert client.is_model_ready("digits")
    client.unload_model("digits")
    assert call(f"{process.url}/v2/models/digits/infer", PIXELS).status == 404


def test_triton_says_what_its_users_expect_of_it(start, digits):
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    url = start("serve", "--as", "tritonserver", f"--model-repository={digits.parent}", *ports).url
    infer = f"{url}/v2/models/digits/infer"
    assert call(infer, "nonsense").status == 500
    assert call(infer, {"inputs": [{**PIXELS["inputs"][0], "datatype": "INT32"}]}).status == 400
    assert call(infer, b"x", {"Content-Encoding": "br"}).status == 501
    assert call(infer, {**PIXELS, "parameters": {"sequence_id": "x" * 129}}).status == 501
    assert call(infer, {**PIXELS, "parameters": {"sequence_id": []}}).status == 500
    assert call(f"{url}/v2/repository/models/digits/load", {}).status == 503, "the control is not explicit"
    assert call(f"{url}/v2/models/nope").status == 404


def test_what_fails_in_a_run_is_the_servers_fault_to_triton(start, repository):
    models = repository({"gather/1": DATA / "bad/gather_out_of_range.onnx"})
    (models / "both").mkdir()
    step = "{model: gather, inputs: {table: table, indices: indices}, outputs: {y: y}}"
    (models / "both" / "serin.yaml").write_text(f"ensemble: {{steps: [{step}]}}")
    process = start("serve", "--as", "tritonserver", f"--model-repository={models}", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
    table = {"name": "table", "datatype": "FP32", "shape": [8, 4], "data": [0.5] * 32}

    def ask(model, index, **more):
        indices = {"name": "indices", "datatype": "INT64", "shape": [1], "data": [index]}
        return call(f"{process.url}/v2/models/{model}/infer", {"inputs": [table, indices], **more})

    for model in ("gather", "both"):
        assert ask(model, 7).status == 200
        refused = ask(model, 999)
        assert refused.status == 500 and "999" in refused.error
        assert ask(model, 7, outputs=[{"name": "z"}]).status == 400
    assert process.metric("nv_inference_request_failure", model="gather", reason="BACKEND") == 2
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{process.ports['grpc']}")
    inputs = [tritonclient.grpc.InferInput("table", [8, 4], "FP32"), tritonclient.grpc.InferInput("indices", [1], "INT64")]
    inputs[0].set_data_from_numpy(numpy.zeros((8, 4), numpy.float32))
    inputs[1].set_data_from_numpy(numpy.array([999]))
    with pytest.raises(InferenceServerException) as failed:
        client.infer("gather", inputs)
    assert failed.value.status() == "StatusCode.INTERNAL"
    client.close()


def test_triton_ends_where_a_model_does_not_load(digits):
    (digits / "2" / "model.onnx").write_bytes(b"nonsense")
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    done = serin("serve", "--as", "tritonserver", "--model-repository", digits.parent, *ports)
    assert done.returncode == 1 and "model 'digits' version 2: FAILED" in done.stdout


@pytest.mark.parametrize("name, arguments, words", [
    ("tritonserver", ["--http-restricted-api=health:key"], "'health:key' is no groups:header=value"),
    ("tritonserver", ["--http-restricted-api=health,all:key=value"], "'all' is none of: health, metadata, "),
    ("tritonserver", ["--grpc-restricted-protocol=health:a=b", "--grpc-restricted-protocol=logging,health:c=d"], "health is named twice"),
    ("tensorflow_model_server", ["--use_alts_credentials"], "--ssl_config_file"),
    ("tensorflow_model_server", ["--grpc_socket_path=/tmp/x"], "a UNIX socket is not served"),
    ("tensorflow_model_server", ["--monitoring_config_file=/nowhere"], "/nowhere"),
    ("ovms", ["--pull", "--source_model=x"], "--model_path"),
    ("tritonserver", ["--nonsense"], "--nonsense"), ("tritonserver", ["--grpc-use-ssl=true"], "--grpc-server-cert"),
    ("tritonserver", ["--grpc-use-ssl-mutual", "--grpc-server-cert=a", "--grpc-server-key=b"], "--grpc-root-cert"),
    ("tritonserver", ["--model-control-mode=sometimes"], "explicit"),
    ("tritonserver", ["--allow-http=perhaps"], "--allow-http"),
    ("tritonserver", ["--log-verbose=perhaps"], "--log-verbose"),
    ("tritonserver", ["--cache-config=local,size=much"], "much is no whole number"),
    ("ovms", ["--config_path=/nowhere.json"], "/nowhere.json"),
    ("ovms", ["--rest_port=70000"], "--rest_port"),
    ("tensorflow_model_server", [], "nothing to serve"),
])
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(name, arguments, words):
    done = serin("serve", f"--as={name}", *arguments, timeout=20)
    assert done.returncode == 2 and words in done.stderr.splitlines()[-1]


def test_a_dialect_that_nobody_speaks_is_refused():
    done = serin("serve", "--as", "torchserve", "x")
    assert done.returncode == 2 and "torchserve" in done.stderr and "tritonserver" in done.stderr


def test_a_file_that_does_not_load_is_the_end(tmp_path):
    model = tmp_path / "broken.onnx"
    model.write_bytes(b"version https://git-lfs.github.com/spec/v1")
    done = serin("serve", model, *ON_FREE_PORTS)
    assert done.returncode == 1 and "Git LFS pointer" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments, words", [
    (["--name", "x"], "nothing to serve"), (["--name", "a/b", MODELS / "digits"], "'a/b' is no name"), (["--name", "x", MODELS, MODELS], "2 places"),
    (["nowhere.onnx"], "serin serve: nowhere.onnx: no such folder or file"), (["--as", "tritonserver"], "is named: --model-repository"),
    (["--as=tensorflow_model_server"], "is named: --model_base_path or"),
])
def test_what_is_to_be_served_must_be_said(arguments, words):
    done = serin("serve", *arguments, *(ON_FREE_PORTS if not arguments[0].startswith("--as") else []))
    assert done.returncode == 2 and words in done.stderr.splitlines()[-1]


def test_one_models_folder_has_the_name_that_it_is_given(start, digits):
    process = start("serve", "--name", "numbers", digits, *ON_FREE_PORTS)
    assert call(f"{process.url}/v2/models").json == {"models": ["numbers"]}


def test_check_says_what_became_of_each_model(tmp_path, digits):
    good = serin("serve", "--check", digits.parent)
    assert (good.returncode, good.stdout.splitlines()) == (0, [f"model 'digits' version {number}: ready" for number in (1, 2)])
    (digits / "2" / "model.onnx").write_bytes(b"<!DOCTYPE html><html>")
    bad = serin("serve", "--check", "--models", digits.parent)
    assert bad.returncode == 1
    assert "model 'digits' version 1: ready" in bad.stdout and "model 'digits' version 2: FAILED: " in bad.stdout
    (digits.parent / "none").mkdir()
    explicit = serin("serve", "--check", digits.parent, "--control", "explicit")
    assert explicit.returncode == 1 and "model 'none': FAILED: it has no version" in explicit.stdout
    assert serin("serve", "--check", digits.parent, "--control", "explicit", "--load", "nosuch").returncode == 1
    (tmp_path / "empty").mkdir()
    assert serin("serve", "--check", tmp_path / "empty").returncode == 1
    assert serin("serve", "--check", tmp_path / "nowhere").returncode == 2
