"""The runtime as its clients and its operators meet it."""

import concurrent.futures
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from onnx import TensorProto, helper

from conftest import DATA, MODELS, ON_FREE_PORTS, SERIN, call, infer_body, serin, wait_until

DIGITS = {f"digits/{v}": MODELS / f"digits/{v}/model.onnx" for v in (1, 2)}
EVALUATION = np.load(MODELS / "digits/eval.npz")
ZEROS = infer_body([[0.0] * 64])


def expected_scores(version, pixels):
    session = onnxruntime.InferenceSession(str(MODELS / f"digits/{version}/model.onnx"), providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"pixels": pixels})[0]


def scores_of(answer):
    output = answer.json["outputs"][0]
    return np.array(output["data"], np.float32).reshape(output["shape"])


# --- what clients see ---------------------------------------------------------------------------------------------------------------


def test_health_and_server_metadata(shared_runtime):
    assert call(shared_runtime.url + "/v2/health/live").json == {"live": True}
    assert call(shared_runtime.url + "/v2/health/ready").json == {"ready": True}
    about = call(shared_runtime.url + "/v2/").json
    assert about["name"] == "serin" and {"classification", "binary_tensor_data", "model_repository", "statistics"} <= set(about["extensions"])


def test_model_metadata(shared_runtime):
    metadata = call(shared_runtime.url + "/v2/models/digits").json
    assert metadata["name"] == "digits" and sorted(metadata["versions"]) == ["1", "2", "3", "4", "5"]
    for version, shape in ((1, [-1, 64]), (5, [-1, 1, 8, 8])):
        inputs = call(f"{shared_runtime.url}/v2/models/digits/versions/{version}").json["inputs"]
        assert inputs == [{"name": "pixels", "datatype": "FP32", "shape": shape}]
    assert call(shared_runtime.url + "/v2/models/digits/versions/3/ready").json == {"name": "digits", "ready": True}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_answers_are_onnx_runtimes(shared_runtime, version):
    pixels = EVALUATION["pixels"][: 3 if version == 4 else 32]
    answer = call(f"{shared_runtime.url}/v2/models/digits/versions/{version}/infer", infer_body(pixels.tolist(), id="a-1"))
    assert answer.status == 200, answer.body
    assert answer.json["model_name"] == "digits" and answer.json["model_version"] == str(version) and answer.json["id"] == "a-1"
    assert answer.headers["x-serin-version"] == str(version)
    np.testing.assert_allclose(scores_of(answer), expected_scores(version, pixels), rtol=1e-4, atol=1e-5)


def endless_loop(path):
    """A model that counts to its input, one turn of a Loop each."""
    scalar = lambda name, kind: helper.make_tensor_value_info(name, kind, [])
    body = helper.make_graph(
        [helper.make_node("Add", ["count", "one"], ["next"]), helper.make_node("Identity", ["go"], ["on"])], "body",
        [scalar("turn", TensorProto.INT64), scalar("go", TensorProto.BOOL), scalar("count", TensorProto.INT64)],
        [scalar("on", TensorProto.BOOL), scalar("next", TensorProto.INT64)],
        [helper.make_tensor("one", TensorProto.INT64, [], [1])])  # fmt: skip
    nodes = [helper.make_node("Loop", ["trips", "", "zero"], ["counted"], body=body)]
    graph = helper.make_graph(nodes, "count", [scalar("trips", TensorProto.INT64)], [scalar("counted", TensorProto.INT64)],
                              [helper.make_tensor("zero", TensorProto.INT64, [], [0])])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_a_loop_ends_with_the_interest_in_it(serve, repository, tmp_path):
    endless_loop(tmp_path / "model.onnx")
    models = repository({"count/1": tmp_path / "model.onnx"})
    (models / "count/serin.yaml").write_text("instances: 1\n")
    runtime = serve(models)
    url = runtime.url + "/v2/models/count/infer"
    turns = lambda n: {"inputs": [{"name": "trips", "datatype": "INT64", "shape": [], "data": [n]}]}
    assert call(url, turns(3)).json["outputs"][0]["data"] == [3]
    late = call(url, turns(900_000_000), headers={"x-serin-timeout-ms": "300"})
    assert late.status == 504 and late.headers["x-serin-code"] == "deadline_exceeded"
    assert call(url, turns(4)).json["outputs"][0]["data"] == [4]  # the only instance is free again: 900 million turns take minutes
    body = json.dumps(turns(900_000_000)).encode()
    running, waiting = (socket.create_connection(("127.0.0.1", runtime.ports["http"])) for _ in range(2))
    with running, waiting:
        for client in running, waiting:
            client.sendall(b"POST /v2/models/count/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: runtime.metric("nv_inference_pending_request_count", model="count") == 1, 10, "one runs and one waits")
    assert call(url, turns(5)).json["outputs"][0]["data"] == [5]


def test_without_a_version_the_highest_answers(serve, repository):
    runtime = serve(repository(DIGITS))
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).json["model_version"] == "2"


@pytest.mark.parametrize("samples", [True, False])
def test_precision_auto_says_what_it_decided(serve, repository, samples):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text("precision: auto\n" + ("samples: calibration\n" if samples else ""))
    if samples:
        shutil.copytree(DATA / "digits_1", models / "digits/calibration")
    runtime = serve(models)
    parameters = call(runtime.url + "/v2/models/digits").json["parameters"]
    assert parameters["precision"] in ("fp32", "bf16", "int8") and parameters["precision_why"].startswith(parameters["precision"] + ": ")
    assert ("int8 differs by" in parameters["precision_why"]) == samples  # whose ranges are seen on samples alone
    measured = re.search(r"bf16 differs by (\S+) and takes \S+ ms; .*fp32 takes \S+ ms \(.* of \d+ (.*)\)", parameters["precision_why"])
    assert measured or "bf16" in parameters["precision_why"] or "bf16" not in Path("/proc/cpuinfo").read_text()
    if measured:
        assert float(measured[1]) < 0.01 or parameters["precision"] != "bf16"
        assert ("calibration" in measured[2]) == samples
    assert "precision: " + parameters["precision_why"] in runtime.log
    pixels = EVALUATION["pixels"][:8]
    answer = call(runtime.url + "/v2/models/digits/infer", infer_body(pixels.tolist()))
    np.testing.assert_allclose(scores_of(answer), expected_scores(1, pixels), rtol=0, atol=0.05)


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_int8_says_how_far_it_is_from_fp32(serve, repository, version, samples):
    models = repository({"digits/1": MODELS / f"digits/{version}/model.onnx"})
    (models / "digits/serin.yaml").write_text("precision: int8\n" + ("samples: calibration\n" if samples else ""))
    if samples:
        shutil.copytree(DATA / f"digits_{version}", models / "digits/calibration")
    runtime = serve(models)
    parameters = call(runtime.url + "/v2/models/digits").json["parameters"]
    assert parameters["precision"] == "int8"
    said = r"int8: .* on bytes; differs from fp32 by (\S+) \(relative L2, the worst of \d+ (.*)\)"
    measured = re.fullmatch(said, parameters["precision_why"])
    assert 0 < float(measured[1]) < 0.05 and ("calibration" in measured[2]) == samples
    assert "precision: " + parameters["precision_why"] in runtime.log
    unseen = version == 2 and not samples  # a convolution's ranges; products of rows find theirs when they run
    assert ("convolutions compute in fp32: the ranges of what they read are seen on samples" in runtime.log) == unseen
    pixels = EVALUATION["pixels"][:32]
    answer = scores_of(call(runtime.url + "/v2/models/digits/infer", infer_body(pixels.tolist())))
    assert np.mean(answer.argmax(axis=1) == expected_scores(version, pixels).argmax(axis=1)) > 0.95
    for i in range(8):  # ranges are not shared among the rows of a batch
        alone = scores_of(call(runtime.url + "/v2/models/digits/infer", infer_body([pixels[i].tolist()])))
        np.testing.assert_array_equal(alone[0], answer[i])


def test_precision_of_the_command_line_is_for_models_that_do_not_say(serve, repository):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx", "exact/1": MODELS / "digits/1/model.onnx"})
    (models / "exact/serin.yaml").write_text("precision: fp32\n")
    runtime = serve(models, "--precision", "auto")
    assert call(runtime.url + "/v2/models/exact").json["parameters"] == {"precision": "fp32", "device": "cpu"}
    assert "precision_why" in call(runtime.url + "/v2/models/digits").json["parameters"]


@pytest.mark.parametrize("precision", ["auto", "int8"])
def test_samples_that_are_not_there_fail_the_version(serve, repository, precision):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text(f"precision: {precision}\nsamples: nowhere\n")
    ready = call(serve(models).url + "/v2/models/digits/ready")
    assert ready.status == 503 and ("nowhere" in ready.headers["x-serin-reason"] or "bf16" in ready.headers["x-serin-reason"])


def test_tritonclient_works_unchanged(shared_runtime):
    client = triton.InferenceServerClient(f"127.0.0.1:{shared_runtime.ports['http']}")
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits", "1")
    assert client.get_model_metadata("digits")["inputs"][0]["name"] == "pixels"
    pixels = EVALUATION["pixels"][:5]
    tensor = triton.InferInput("pixels", list(pixels.shape), "FP32")
    for binary_in in (True, False):
        tensor.set_data_from_numpy(pixels, binary_data=binary_in)
        for outputs in (None, *([triton.InferRequestedOutput("scores", binary_data=binary_out)] for binary_out in (True, False))):
            result = client.infer("digits", [tensor], model_version="1", outputs=outputs)
            np.testing.assert_allclose(result.as_numpy("scores"), expected_scores(1, pixels), rtol=1e-4, atol=1e-5)
    best = client.infer("digits", [tensor], model_version="1", outputs=[triton.InferRequestedOutput("scores", class_count=2)])
    assert [[int(text.split(b":")[1]) for text in row] for row in best.as_numpy("scores")] == [
        list(np.argsort(-row, kind="stable")[:2]) for row in expected_scores(1, pixels)]
    with pytest.raises(triton.InferenceServerException, match="nope"):
        client.get_model_metadata("nope")


def test_index_and_statistics(shared_runtime):
    client = triton.InferenceServerClient(f"127.0.0.1:{shared_runtime.ports['http']}")
    assert client.get_model_repository_index() == [{"name": "digits", "version": str(v), "state": "READY"} for v in range(1, 6)]
    call(shared_runtime.url + "/v2/models/digits/versions/4/infer", ZEROS)
    stats = client.get_inference_statistics("digits", "4")["model_stats"]
    assert [(model["name"], model["version"]) for model in stats] == [("digits", "4")]
    success = stats[0]["inference_stats"]["success"]
    assert success["count"] >= 1 and success["ns"] > 0 and stats[0]["execution_count"] >= 1
    assert len(client.get_inference_statistics()["model_stats"]) == len(client.get_inference_statistics("digits")["model_stats"]) == 5
    for path, body, status in (("/v2/models/nope/stats", None, 404), ("/v2/models/digits/versions/9/stats", None, 404),
                               ("/v2/repository/index", "[]", 400), ("/v2/repository/index", '{"ready": 1}', 400)):  # fmt: skip
        assert call(shared_runtime.url + path, body).status == status, path
    assert call(shared_runtime.url + "/v2/repository/index").status == 405


def test_a_body_without_json_is_the_input(shared_runtime):
    row = EVALUATION["pixels"][0].astype("<f4")
    headers = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}
    answer = call(shared_runtime.url + "/v2/models/digits/versions/1/infer", row.tobytes(), headers)
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/octet-stream"
    header = json.loads(answer.body[: int(answer.headers["Inference-Header-Content-Length"])])
    assert header["outputs"][0]["parameters"] == {"binary_data_size": 40}
    np.testing.assert_allclose(np.frombuffer(answer.body[-40:], "<f4"), expected_scores(1, row[None])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "length, field",
    [("-1", "Inference-Header-Content-Length"), ("x", "Inference-Header-Content-Length"), ("99999", "Inference-Header-Content-Length"),
     ("", "Inference-Header-Content-Length"), ("10", "")],
)  # fmt: skip
def test_p11_lengths_of_the_json_that_are_wrong(shared_runtime, length, field):
    answer = call(shared_runtime.url + "/v2/models/digits/infer", ZEROS, {"Inference-Header-Content-Length": length})
    assert answer.status == 400 and answer.headers.get("x-serin-field", "") == field, answer


def test_half_precision_models_are_served(serve, repository, tmp_path):
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    for name, kind in (("half", TensorProto.FLOAT16), ("brain", TensorProto.BFLOAT16)):
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, ["n", 2])], [helper.make_tensor_value_info("y", kind, ["n", 2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / f"{name}.onnx")
    runtime = serve(repository({f"{name}/1": tmp_path / f"{name}.onnx" for name in ("half", "brain")}))
    for name, datatype in (("half", "FP16"), ("brain", "BF16")):
        body = {"inputs": [{"name": "x", "datatype": datatype, "shape": [1, 2], "data": [1.5, -0.25]}]}
        output = call(f"{runtime.url}/v2/models/{name}/infer", json.dumps(body)).json["outputs"][0]
        assert (output["datatype"], output["data"]) == (datatype, [3, -0.5])
    client = triton.InferenceServerClient(f"127.0.0.1:{runtime.ports['http']}")
    tensor = triton.InferInput("x", [2, 2], "FP16")
    values = np.array([[1, 2], [3, 65504]], np.float16)
    tensor.set_data_from_numpy(values)
    np.testing.assert_array_equal(client.infer("half", [tensor]).as_numpy("y"), np.float16([[2, 4], [6, np.inf]]))


def test_every_answer_names_its_batch(shared_runtime):
    pattern = re.compile(r"^[0-9a-f]{16}-\d+/\d+/\d+$")
    answers = [call(shared_runtime.url + "/v2/models/digits/versions/1/infer", ZEROS),
               call(shared_runtime.url + "/v2/models/digits/infer", "{"),
               call(shared_runtime.url + "/v2/models/nope/infer", ZEROS), call(shared_runtime.url + "/nowhere"),
               call(shared_runtime.url + "/v2/../etc"), call(shared_runtime.url + "/v2/models/digits/infer", ZEROS, {"Content-Encoding": "br"})]
    tags = [answer.headers["x-serin-batch"] for answer in answers]
    assert all(pattern.match(tag) for tag in tags), tags
    assert len(set(tags)) == len(tags)
    assert all(tag.endswith("/0/1") for tag in tags)


def test_requests_that_wait_ride_together(serve, repository):
    runtime = serve(repository({"digits/4": MODELS / "digits/4/model.onnx"}), "--threads", 1)  # slow: what comes meanwhile queues up
    url = runtime.url + "/v2/models/digits/infer"
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: call(url, ZEROS), range(24)))
    assert {answer.status for answer in answers} == {200}
    tags = {answer.headers["x-serin-batch"] for answer in answers}
    assert len(tags) == 24  # every answer has a place of its own
    batches = {}
    for tag in tags:
        batch, i, n = tag.split("/")
        batches.setdefault((batch, int(n)), set()).add(int(i))
    for (_, n), places in batches.items():
        assert places == set(range(n))


def test_overload_is_429_with_retry_after(serve, repository):
    models = repository({"digits/4": MODELS / "digits/4/model.onnx"})
    (models / "digits/serin.yaml").write_text("max_batch: 1\nqueue_limit: 2\ninstances: 1\n")
    runtime = serve(models, "--threads", 1)
    url = runtime.url + "/v2/models/digits/infer"
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: call(url, ZEROS), range(16)))
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and {answer.status for answer in answers} == {200, 429}
    assert int(refused[0].headers["Retry-After"]) >= 1
    assert "exceeds maximum queue size" in refused[0].error and "x-serin-batch" in refused[0].headers
    assert runtime.metric("nv_inference_request_failure", reason="REJECTED", version="4") == len(refused)


@pytest.mark.parametrize("headers, parameters", [
    ({"x-serin-timeout-ms": "1"}, {}), ({}, {"timeout": 1000}), ({"x-serin-timeout-ms": "60000"}, {"timeout": 1000}),
])
def test_a_deadline_that_passes_is_504(shared_runtime, headers, parameters):
    rejected = shared_runtime.metric("nv_inference_request_failure", reason="REJECTED", version="4")
    answer = call(shared_runtime.url + "/v2/models/digits/versions/4/infer", infer_body([[0.0] * 64] * 8, parameters=parameters), headers)
    assert answer.status == 504 and "deadline" in answer.error and answer.headers["x-serin-code"] == "deadline_exceeded"
    assert shared_runtime.metric("nv_inference_request_failure", reason="REJECTED", version="4") == rejected + 1


def test_a_deadline_that_is_far_changes_nothing(shared_runtime):
    assert call(shared_runtime.url + "/v2/models/digits/versions/1/infer", ZEROS, {"x-serin-timeout-ms": "60000"}).status == 200
    assert call(shared_runtime.url + "/v2/models/digits/versions/1/infer", ZEROS, {"x-serin-timeout-ms": "soon"}).status == 400


def test_metrics_have_the_names_that_dashboards_know(serve, repository):
    runtime = serve(repository(DIGITS))
    for _ in range(3):
        assert call(runtime.url + "/v2/models/digits/versions/1/infer", infer_body([[0.0] * 64] * 2)).status == 200
    assert call(runtime.url + "/v2/models/digits/versions/1/infer", ZEROS, {"x-serin-shadow": "1"}).status == 200
    assert runtime.metric("nv_inference_request_success", model="digits", version="1") == 3  # shadow traffic is not counted
    assert runtime.metric("nv_inference_count", version="1") == 6
    assert runtime.metric("nv_inference_exec_count", version="1") == 3
    assert runtime.metric("nv_inference_pending_request_count", version="1") == 0
    assert runtime.metric("nv_inference_request_duration_histogram_us_count", version="1") == 3


# --- what operators do --------------------------------------------------------------------------------------------------------------


def test_versions_come_and_go_while_requests_are_served(serve, repository):
    models = repository({"digits/1": DIGITS["digits/1"]})
    runtime = serve(models)
    url = runtime.url + "/v2/models/digits"
    failures, stop = [], threading.Event()

    def client():
        while not stop.is_set():
            answer = call(url + "/infer", ZEROS)
            if answer.status != 200:
                failures.append(answer.body)

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    staging = models.parent / "incoming"
    staging.mkdir()
    shutil.copy(DIGITS["digits/2"], staging / "model.onnx")
    staging.rename(models / "digits/2")
    wait_until(lambda: call(url + "/versions/2/ready").status == 200, 10, "version 2 ready")
    wait_until(lambda: call(url + "/infer", ZEROS).json["model_version"] == "2", 5, "version 2 answers")
    shutil.rmtree(models / "digits/2")
    wait_until(lambda: call(url + "/versions/2").status == 404, 10, "version 2 gone")
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_going_back_by_taking_the_newest_version_away_costs_no_request(serve, repository):
    models = repository({"digits/1": DIGITS["digits/1"], "digits/2": DIGITS["digits/2"]})
    (models / "digits/serin.yaml").write_text("versions: {latest: 1}\n")
    runtime = serve(models)
    versions, stop = [], threading.Event()

    def client():
        while not stop.is_set():
            answer = call(runtime.url + "/v2/models/digits/infer", ZEROS)
            versions.append(answer.json["model_version"] if answer.status == 200 else answer.body)

    thread = threading.Thread(target=client)
    thread.start()
    wait_until(lambda: versions, 5, "an answer")
    shutil.rmtree(models / "digits/2")
    wait_until(lambda: versions[-1] == "1", 10, "version 1 answers")
    stop.set()
    thread.join()
    assert set(versions) == {"1", "2"}, versions
    assert call(runtime.url + "/v2/models/digits/versions/2").status == 404


def test_a_server_that_could_load_nothing_is_not_ready(start, repository):
    models = repository({"other/1": DATA / "bad/unknown_ops.onnx"})
    runtime = start("serve", models, *ON_FREE_PORTS, "--poll-seconds", 0.2)
    answer = call(runtime.url + "/v2/health/ready")
    assert answer.status == 503 and answer.json == {"ready": False} and "model 'other' version 1" in answer.headers["x-serin-reason"]
    assert call(runtime.url + "/v2/health/live").status == 200
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        assert not client.is_server_ready()
        shutil.copy(DIGITS["digits/1"], models / "other/1/new")
        (models / "other/1/new").rename(models / "other/1/model.onnx")
        wait_until(client.is_server_ready, 10, "ready once it is mended")
    shutil.copy(DATA / "bad/unknown_ops.onnx", models / "other/1/new")
    (models / "other/1/new").rename(models / "other/1/model.onnx")
    wait_until(lambda: "what was loaded before goes on serving" in runtime.log, 10, "the bad file is seen")
    assert call(runtime.url + "/v2/health/ready").status == 200


def test_a_server_in_tritons_place_is_not_ready_while_any_model_failed(start, repository):
    models = repository({**DIGITS, "other/1": DATA / "bad/unknown_ops.onnx"})
    runtime = start("serve", "--as", "tritonserver", "--model-repository", models, "--exit-on-error=false", "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
    assert call(runtime.url + "/v2/health/ready").status != 200
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200


def test_a_broken_version_disturbs_nobody(serve, repository):
    models = repository({**DIGITS, "digits/7": DATA / "bad/truncated_50pct.onnx", "other/1": DATA / "bad/unknown_ops.onnx"})
    runtime = serve(models)
    assert call(runtime.url + "/v2/health/ready").status == 200
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).json["model_version"] == "2"
    broken = call(runtime.url + "/v2/models/digits/versions/7/infer", ZEROS)
    assert broken.status == 503 and "model 'digits' version 7" in broken.error
    assert call(runtime.url + "/v2/models/other/ready").json == {"name": "other", "ready": False}
    assert "model 'digits' version 7" in runtime.log and "model 'other' version 1" in runtime.log


def test_a_file_overwritten_in_place_does_not_harm_the_live_model(serve, repository):
    models = repository({"digits/1": DIGITS["digits/1"]})
    runtime = serve(models)
    url = runtime.url + "/v2/models/digits/versions/1/infer"
    before = scores_of(call(url, ZEROS))
    target = models / "digits/1/model.onnx"
    with open(target, "r+b") as file:  # the same inode, rubbish inside
        file.write(b"\xff" * target.stat().st_size)
    wait_until(lambda: "goes on serving" in runtime.log, 10, "the broken file noticed")
    np.testing.assert_array_equal(scores_of(call(url, ZEROS)), before)
    with open(target, "r+b") as file:  # now another good model
        file.truncate()
        file.write((MODELS / "digits/3/model.onnx").read_bytes())
    wait_until(lambda: not np.array_equal(scores_of(call(url, ZEROS)), before), 10, "the new file served")
    np.testing.assert_allclose(scores_of(call(url, ZEROS)), expected_scores(3, np.zeros((1, 64), np.float32)), rtol=1e-4, atol=1e-5)


def test_sigterm_serves_on_while_not_ready_then_ends_with_0(start, repository):
    runtime = start("serve", "--models", repository(DIGITS), "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 1.5)
    runtime.process.send_signal(signal.SIGTERM)
    wait_until(lambda: call(runtime.url + "/v2/health/ready").status == 503, 2, "not ready")
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200
    assert call(runtime.url + "/v2/health/live").status == 200
    assert runtime.process.wait(20) == 0


def test_requests_under_way_are_answered_when_the_server_ends(serve, repository):
    runtime = serve(repository({"digits/4": MODELS / "digits/4/model.onnx"}), "--threads", 1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(call, runtime.url + "/v2/models/digits/infer", infer_body([[0.0] * 64] * 8)) for _ in range(4)]
        wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 3, 10, "one runs and three wait")
        assert runtime.end() == 0
        assert [future.result().status for future in futures] == [200] * 4


def test_a_client_that_hangs_up_costs_nobody_an_answer(serve, repository):
    runtime = serve(repository({"digits/4": MODELS / "digits/4/model.onnx"}), "--threads", 1)
    body = json.dumps(infer_body([[0.0] * 64] * 8)).encode()
    head = f"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", runtime.ports["http"])) as connection:
            connection.sendall(head + body)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # H18: close sends a reset
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200
    wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 0, 10, "nothing pending")


def test_logs_as_json(serve, repository):
    runtime = serve(repository(DIGITS), "--log-format", "json")
    lines = [json.loads(line) for line in runtime.log.splitlines()]
    assert lines and all({"time", "level", "message"} <= line.keys() for line in lines)


# --- bad input ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../digits", "a/b", "%2e%2e", ".git", "CON", "x" * 10_000, "digits%00", "digits%2f1", "%20"])
def test_p16_strange_model_names_are_not_found(shared_runtime, name):
    answer = call(f"{shared_runtime.url}/v2/models/{name}/infer", ZEROS)
    assert answer.status in (400, 404, 414), answer.body
    assert "error" in answer.json


@pytest.mark.parametrize("version", ["0", "-1", "01", "999999999999999999999", "latest", "1/../2", "1.0", ""])
def test_p17_strange_versions_are_not_found(shared_runtime, version):
    answer = call(f"{shared_runtime.url}/v2/models/digits/versions/{version}/infer", ZEROS)
    assert answer.status in (400, 404) and "error" in answer.json


def test_p21_a_bad_request_in_a_batch_fails_alone(serve, repository):
    """`gather_out_of_range` takes an index from the client: only the request whose index is wrong may fail."""
    runtime = serve(repository({"gather/1": DATA / "bad/gather_out_of_range.onnx"}), "--threads", 1)
    spec = call(runtime.url + "/v2/models/gather").json["inputs"]

    def request(index):
        inputs = []
        for tensor in spec:
            shape = [1 if d == -1 else d for d in tensor["shape"]]
            count = int(np.prod(shape))
            data = [index] * count if tensor["datatype"].startswith("INT") else [0.5] * count
            inputs.append({"name": tensor["name"], "datatype": tensor["datatype"], "shape": shape, "data": data})
        return call(runtime.url + "/v2/models/gather/infer", {"inputs": inputs})

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(request, [0, 999] * 20))
    assert [answer.status for answer in answers[0::2]] == [200] * 20
    assert all(answer.status == 400 and "999" in answer.error for answer in answers[1::2]), answers[1].body


def test_errors_name_model_tensor_and_field(shared_runtime):
    answer = call(shared_runtime.url + "/v2/models/digits/versions/5/infer", ZEROS)
    assert answer.status == 400
    assert (answer.headers["x-serin-code"], answer.headers["x-serin-field"]) == ("invalid_argument", "/inputs/0/shape")
    assert answer.error == "model 'digits' version 5: input 'pixels' expects [-1,1,8,8] FP32, the request has [1,64]"
    assert call(shared_runtime.url + "/v2/models/digits/versions/9").error == "Request for unknown model: 'digits' version 9 is not found; ready are: 1, 2, 3, 4, 5"
    unversioned = call(shared_runtime.url + "/v2/models/digits/infer", ZEROS)
    assert unversioned.status == 400 and unversioned.headers["x-serin-version"] == "5", "who refused it, where the server chose"


def test_h22_wrong_verbs_and_paths(shared_runtime):
    wrong = call(shared_runtime.url + "/v2/models/digits/infer")
    assert wrong.status == 405 and wrong.headers["Allow"] == "POST" and "error" in wrong.json
    assert call(shared_runtime.url + "/v2/health/live", "{}", method="POST").headers["Allow"] == "GET"
    assert call(shared_runtime.url + "/v3").status == 404
    head = call(shared_runtime.url + "/v2/health/live", method="HEAD")
    assert head.status == 200 and head.body == b""


@pytest.mark.parametrize("arguments, named", [
    ([], "--models"), (["--models", "/nowhere"], "/nowhere"), (["--port", "65536"], "--port"), (["--port", "x"], "--port"),
    (["--threads", "-1"], "--threads"), (["--address", "nonsense"], "nonsense"), (["--isa", "mmx"], "--isa"), (["--nope"], "--nope"),
    (["--log-level", "loud"], "--log-level"), (["--drain-seconds", "nan"], "--drain-seconds"),
], ids=lambda value: "-".join(value) if isinstance(value, list) else value)
def test_c5_usage_mistakes_are_one_line_and_exit_code_2(arguments, named):
    models = [] if "--models" in named or "/nowhere" in arguments else ["--models", MODELS]
    done = serin("serve", *models, *arguments, timeout=20)
    assert done.returncode == 2 and named in done.stderr.splitlines()[-1]


def test_c2_a_port_in_use_is_named(shared_runtime):
    done = serin("serve", "--models", MODELS, "--port", shared_runtime.ports["http"], "--grpc-port", 0, "--metrics-port", 0, timeout=30)
    assert done.returncode == 2 and str(shared_runtime.ports["http"]) in done.stderr


def test_a_bad_settings_file_fails_its_model_alone(serve, repository):
    models = repository({**DIGITS, "other/1": DIGITS["digits/1"]})
    (models / "other/serin.yaml").write_text("max_batch: 8\nmax_bach: 9\n")
    runtime = serve(models)
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200
    assert "serin.yaml:2:1: unknown key 'max_bach'" in call(runtime.url + "/v2/models/other/versions/1/infer", ZEROS).error


def test_openmp_does_not_spin_while_idle(serve, repository):
    """Idle costs nothing: the process's CPU time hardly moves while nobody asks."""
    runtime = serve(repository(DIGITS))
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200

    def cpu_ticks():
        fields = open(f"/proc/{runtime.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = cpu_ticks()
    assert subprocess.run(["sleep", "2"], check=True) and SERIN
    assert cpu_ticks() - before < 20  # of 200 ticks for one busy core
