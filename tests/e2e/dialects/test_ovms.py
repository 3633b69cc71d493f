"""OpenVINO Model Server's config.json, read at the start and while it serves, what it answers beside its APIs, and its metrics."""

import concurrent.futures
import json
import shutil

import numpy
import pytest
import tritonclient.grpc
from conftest import MODELS, call, free_port, infer_body, serin, wait_until
from slow_model import save_slow, turns

PIXELS = infer_body([[0.0] * 64])
ROWS = {"instances": [[0.0] * 64]}


@pytest.fixture
def folder(tmp_path):
    for name, versions in (("first", "123"), ("second", "1")):
        for version in versions:
            shutil.copytree(MODELS / "digits/1", tmp_path / f"models/{name}/{version}")
    return tmp_path


@pytest.fixture
def ovms(start):
    """ovms(flag...): a ready Process."""
    return lambda *flags: start("serve", "--as", "ovms", f"--port={free_port()}", f"--rest_port={free_port()}", "--log-level", "info", *flags)


def write(folder, *models, **more):
    """config.json, whose places are said from its own folder on."""
    file = folder / "config.json"
    aside = folder / "config.json.new"
    aside.write_text(json.dumps({"model_config_list": [{"config": model} for model in models], **more}))
    aside.rename(file)
    return file


def model(name, **more):
    return {"name": name, "base_path": f"models/{name}", **more}


def check(*flags):
    return serin("serve", "--as", "ovms", "--port=0", "--rest_port=0", "--check", *flags)


def served(server):
    """The versions of each model that are ready."""
    return {name: {entry["version"] for entry in told["model_version_status"] if entry["state"] == "AVAILABLE"}
            for name, told in call(f"{server.url}/v1/config").json.items()}


POLICIES = [({"specific": {"versions": [1, 2]}}, {"1", "2"}), ({"latest": {"num_versions": 2}}, {"2", "3"}), ({"all": {}}, {"1", "2", "3"})]


@pytest.mark.parametrize("policy, versions", [*POLICIES, (None, {"3"})])
def test_a_policy_of_the_file_chooses_versions(folder, policy, versions):
    done = check("--config_path", write(folder, model("first", **({"model_version_policy": policy} if policy else {}))))
    assert done.returncode == 0, done.stderr
    assert {version for version in "123" if f"model 'first' version {version}: ready" in done.stdout} == versions


@pytest.mark.parametrize("policy, versions", POLICIES)
def test_a_policy_of_the_command_line_does(folder, policy, versions):
    done = check("--model_name=first", f"--model_path={folder}/models/first", "--model_version_policy", json.dumps(policy))
    assert {version for version in "123" if f"model 'first' version {version}: ready" in done.stdout} == versions, done.stderr


def test_what_changes_nothing_is_named_and_so_is_what_is_not_served(folder):
    listing = write(folder, model("first", nireq=4, plugin_config={"NUM_STREAMS": "2"}, layout="NCHW", mean="[0, 0]"), model("first"),
                    {"name": "graph", "base_path": "graphs", "graph_path": "graph.pbtxt"},
                    pipeline_config_list=[{"name": "both", "nodes": []}], mediapipe_config_list=[{"name": "media"}], custom_loader_config_list=[])
    done = check("--config_path", listing)
    assert done.returncode == 0 and done.stdout.count("ready") == 1
    for words in ("model 'first': nireq, plugin_config, layout, mean change nothing", "model 'first' is named twice", "'graph' is not served",
                  "pipeline_config_list: 'both' is not served", "mediapipe_config_list: 'media' is not served"):
        assert done.stderr.count(words) == 1, words
    assert "custom_loader" not in done.stderr


@pytest.mark.parametrize("more, words", [
    ({"model_version_polcy": {"all": {}}}, "unknown key 'model_version_polcy'"), ({"mean": "[123.7,116.3,103.5]"}, "mean [123.7,116.3,103.5] would change"),
    ({"scale": 255}, "scale 255 would change"), ({"layout": "NHWC:NCHW"}, "layout NHWC:NCHW would change"),
    ({"layout": {"x": "NHWC:NCHW"}}, "layout NHWC:NCHW would change"), ({"color_format": "BGR:RGB"}, "BGR:RGB would change"),
    ({"stateful": True}, "`sequences`"), ({"custom_loader_options": {"loader_name": "x"}}, "custom loaders"),
    ({"model_version_policy": {"specific": {"versions": []}}}, "names no versions"), ({"model_version_policy": {"specific": {"versions": [0]}}}, "from 1"),
    ({"model_version_policy": {}}, "one of all, latest and specific"), ({"model_version_policy": {"newest": {}}}, "unknown key 'newest'"),
])
def test_a_file_that_cannot_be_meant_is_refused(folder, more, words):
    listing = write(folder, model("first", **more))
    done = check("--config_path", listing)
    assert done.returncode == 2 and words in done.stderr and f"{listing}:1:" in done.stderr.replace("model_version_policy:1:", f"{listing}:1:"), done.stderr


@pytest.mark.parametrize("flag, words", [
    ("--mean=[1,2,3]", "would change"), ("--layout=NHWC:NCHW", "would change"), ('--layout={"x": "NHWC:NCHW"}', "would change"), ("--scale=255", "would change"),
    ("--color_format=BGR:RGB", "would change"), ("--stateful", "sequences"), ('--model_version_policy={"specific": {}}', "versions"),
    ("--model_version_policy=[]", "must be a map"), ("--metrics_enable", "--rest_port")])
def test_flags_that_cannot_be_meant_are_refused(folder, flag, words):
    done = check("--model_name=first", f"--model_path={folder}/models/first", flag)
    assert done.returncode == 2 and words in done.stderr, done.stderr


# --- while it serves ------------------------------------------------------------------------------------------------------------------

def test_the_file_is_watched(ovms, folder):
    server = ovms("--config_path", write(folder, model("first")), "--file_system_poll_wait_seconds", "0.2")
    assert served(server) == {"first": {"3"}}
    write(folder, model("first", model_version_policy={"specific": {"versions": [1, 3]}}), model("second"))
    wait_until(lambda: served(server) == {"first": {"1", "3"}, "second": {"1"}})
    assert call(f"{server.url}/v2/models/second/infer", PIXELS).status == 200
    loads = server.log.count(": ready")

    (folder / "config.json").write_text('{"model_config_list": [')
    wait_until(lambda: "what is loaded goes on serving" in server.log)
    write(folder, model("first", nonsense=1))
    wait_until(lambda: "unknown key 'nonsense'" in server.log)
    write(folder, model("second"), {"name": "later", "base_path": "models/later"})
    wait_until(lambda: served(server) == {"second": {"1"}})
    assert server.log.count("what is loaded goes on serving") == 2, "each mistake is said once"
    assert call(f"{server.url}/v2/models/first/infer", PIXELS).status == 404
    assert server.log.count(": ready") == loads, "what stays is not loaded anew"
    (folder / "models/first").rename(folder / "models/later")
    wait_until(lambda: served(server).get("later") == {"3"}, what="a model whose folder comes later than its name")


def test_the_file_is_read_when_somebody_asks(ovms, folder):
    listing = write(folder, model("first"))
    server = ovms("--config_path", listing, "--file_system_poll_wait_seconds=0")
    reload = f"{server.url}/v1/config/reload"
    unchanged = call(reload, method="POST")
    assert unchanged.status == 200 and unchanged.json["first"]["model_version_status"] == [
        {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    shutil.copytree(folder / "models/first/3", folder / "models/first/4")
    assert call(reload, method="POST").status == 201 and served(server) == {"first": {"4"}}
    write(folder, model("first"), model("second"))
    assert call(reload, method="POST").status == 201 and served(server) == {"first": {"4"}, "second": {"1"}}

    (folder / "models/second/2").mkdir()
    (folder / "models/second/2/model.onnx").write_bytes(b"<html>")
    failed = call(reload, method="POST")
    assert failed.status == 500 and failed.error.startswith("Reloading models versions failed.") and "HTML" in failed.error
    shutil.rmtree(folder / "models/second/2")
    listing.write_text("{")
    failed = call(reload, method="POST")
    assert failed.status == 412 and failed.error == "Reloading config file failed. Check server logs for more info."
    listing.unlink()
    failed = call(reload, method="POST")
    assert failed.status == 500 and failed.error == "Config file not found or cannot open."
    assert call(f"{server.url}/v2/models/second/infer", PIXELS).status == 200
    assert call(reload).status == 405 and call(f"{server.url}/v1/config", {}).status == 405


def test_no_other_order_is_taken_from_clients(ovms, start, folder):
    server = ovms("--model_name=first", f"--model_path={folder}/models/first")
    assert call(f"{server.url}/v1/config/reload", method="POST").status == 200, "without a file versions are looked for"
    assert call(f"{server.url}/v1/config/reload", method="POST", headers={"Origin": "http://x"}).status == 403
    assert call(f"{server.url}/v2/logging", {"log_verbose_level": 1}).status == 403
    other = start("serve", folder / "models", "--port", 0, "--grpc-port", 0, "--metrics-port", 0)
    assert call(f"{other.url}/v1/config/reload", method="POST").status == 403 and call(f"{other.url}/v1/config").status == 404


# --- metrics --------------------------------------------------------------------------------------------------------------------------

def ask_grpc(server, name):
    pixels = tritonclient.grpc.InferInput("pixels", [1, 64], "FP32")
    pixels.set_data_from_numpy(numpy.zeros((1, 64), "float32"))
    return tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}").infer(name, [pixels])


def test_names_that_its_dashboards_have(ovms, folder):
    server = ovms("--config_path", write(folder, model("first"), monitoring={"metrics": {"enable": True}}))
    page = lambda: call(f"{server.url}/metrics").body.decode()  # noqa: E731
    of = 'name="first",version="3"'
    assert call(f"{server.url}/v2/models/first/infer", PIXELS).status == 200 and ask_grpc(server, "first") is not None
    assert call(f"{server.url}/v1/models/first:predict", ROWS).status == 200
    assert call(f"{server.url}/v2/models/first/infer", infer_body([[0.0] * 63])).status == 400
    assert call(f"{server.url}/v1/models/first:predict", "{").status == 400
    lines = page().splitlines()
    for line in (f'ovms_requests_success{{{of},api="KServe",interface="REST",method="ModelInfer"}} 1',
                 f'ovms_requests_success{{{of},api="KServe",interface="gRPC",method="ModelInfer"}} 1',
                 f'ovms_requests_success{{{of},api="TensorFlowServing",interface="REST",method="Predict"}} 1',
                 f'ovms_requests_success{{{of},api="TensorFlowServing",interface="gRPC",method="Predict"}} 0',
                 f'ovms_requests_fail{{{of},api="KServe",interface="REST",method="ModelInfer"}} 1',
                 f'ovms_requests_fail{{{of},api="TensorFlowServing",interface="REST",method="Predict"}} 1',
                 f'ovms_request_time_us_count{{{of},interface="REST"}} 2', f'ovms_request_time_us_count{{{of},interface="gRPC"}} 1',
                 f'ovms_request_time_us_bucket{{{of},interface="gRPC",le="18"}} 0', f"ovms_inference_time_us_count{{{of}}} 3",
                 f"ovms_wait_for_infer_req_time_us_count{{{of}}} 3", f"ovms_current_requests{{{of}}} 0"):
        assert line in lines, f"{line}: {[other for other in lines if other.startswith(line[:18])]}"
    streams = next(float(line.split()[-1]) for line in lines if line.startswith("ovms_streams{"))
    assert streams == int(call(f"{server.url}/v2/models/first/config").json["instance_group"][0]["count"])
    assert "ovms_infer_req" not in page()


def test_metrics_that_are_asked_for_are_the_only_ones(ovms, folder):
    one = ["--model_name=first", f"--model_path={folder}/models/first", "--metrics_enable"]
    server = ovms(*one, "--metrics_list=ovms_infer_req_queue_size, ovms_infer_req_active")
    assert call(f"{server.url}/v2/models/first/infer", PIXELS).status == 200
    lines = [line for line in call(f"{server.url}/metrics").body.decode().splitlines() if line.startswith("ovms_")]
    assert [line.split("{")[0] for line in lines] == ["ovms_infer_req_active", "ovms_infer_req_queue_size"]
    assert lines[0].endswith(" 0") and float(lines[1].split()[-1]) >= 1
    done = serin("serve", "--as", "ovms", "--rest_port=1", *one, "--metrics_list=ovms_nothing")
    assert done.returncode == 2 and "ovms_nothing is no metric" in done.stderr


def test_gauges_of_what_is_at_work(ovms, tmp_path):
    save_slow(tmp_path)
    (tmp_path / "slow/serin.yaml").write_text("instances: 1\n")
    server = ovms("--model_name=slow", f"--model_path={tmp_path}/slow", "--metrics_enable", "--metrics_list=ovms_current_requests,ovms_infer_req_active")

    def gauges():
        lines = call(f"{server.url}/metrics").body.decode().splitlines()
        return {line.split("{")[0]: float(line.split()[-1]) for line in lines if line.startswith("ovms_")}

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(call, f"{server.url}/v2/models/slow/infer", turns(200_000)) for _ in range(2)]
        wait_until(lambda: gauges() == {"ovms_current_requests": 2, "ovms_infer_req_active": 1}, what="one runs, one waits for it")
        assert [answer.result().status for answer in asked] == [200, 200]
    assert gauges() == {"ovms_current_requests": 0, "ovms_infer_req_active": 0}


def test_others_do_not_have_them(ovms, folder):
    server = ovms("--model_name=first", f"--model_path={folder}/models/first")
    assert call(f"{server.url}/metrics").status == 404
