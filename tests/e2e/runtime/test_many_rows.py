"""Requests of more rows than one run takes: they go through it in parts and are answered whole, whatever the door."""

import concurrent.futures
import json
import socket
import time

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
from onnx import TensorProto, helper

from conftest import MODELS, ON_FREE_PORTS, Process, call, infer_body, wait_until
from test_serve import EVALUATION

PIXELS = EVALUATION["pixels"].reshape(-1, 64)[:333]
PATH = "/v2/models/digits/infer"


def save(path, nodes, inputs, outputs, constants=()):
    path.parent.mkdir(parents=True)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*one) for one in inputs], [helper.make_tensor_value_info(*one) for one in outputs],
                              list(constants))  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "digits/1").mkdir(parents=True)
    (folder / "digits/1/model.onnx").write_bytes((MODELS / "digits/3/model.onnx").read_bytes())
    save(folder / "two/1/model.onnx",
         [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Cast", ["sum"], ["whole"], to=TensorProto.INT64)],
         [("a", TensorProto.FLOAT, ["n", 3]), ("b", TensorProto.FLOAT, ["n", 1])], [("sum", TensorProto.FLOAT, ["n", 3]), ("whole", TensorProto.INT64, ["n", 3])])  # fmt: skip
    (folder / "two/serin.yaml").write_text("max_batch: 4\n")
    (folder / "both").mkdir()
    (folder / "both/serin.yaml").write_text("""
ensemble:
  steps:
    - {model: two, inputs: {a: x, b: y}, outputs: {sum: between}}
    - {model: two, inputs: {a: between, b: y}, outputs: {sum: twice}}
  inputs: [x, y]
  outputs: [twice]
""")
    (folder / "kept/1").mkdir(parents=True)
    (folder / "kept/1/model.onnx").write_bytes((MODELS / "digits/3/model.onnx").read_bytes())
    (folder / "kept/serin.yaml").write_text("response_cache: true\n")
    return folder


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", models, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def ask(server, path, body):
    answer = call(server.url + path, body)
    assert answer.status == 200, answer.body
    return answer.json


def scores(server, pixels):
    return np.array(ask(server, PATH, infer_body(pixels.tolist()))["outputs"][0]["data"], np.float32).reshape(-1, 10)


def over_grpc(server, pixels):
    tensor = triton_grpc.InferInput("pixels", list(pixels.shape), "FP32")
    tensor.set_data_from_numpy(pixels)
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}") as client:
        return client.infer("digits", [tensor]).as_numpy("scores")


DOORS = {
    "rest": scores,
    "grpc": over_grpc,
    "tensorflow": lambda server, pixels: np.array(ask(server, "/v1/models/digits:predict", {"instances": pixels.tolist()})["predictions"], np.float32),
    "paddle": lambda server, pixels: np.array(
        json.loads(ask(server, "/digits/prediction", {"key": ["pixels"], "value": [str(pixels.tolist())]})["value"][0]), np.float32),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("rows", [33, 64, 333])
def test_they_are_answered_as_those_that_ask_in_parts(server, door, rows):
    parts = np.concatenate([scores(server, PIXELS[at:at + 32][: rows - at]) for at in range(0, rows, 32)])
    assert DOORS[door](server, PIXELS[:rows]).tobytes() == parts.tobytes()


def two(rows, names=("a", "b")):
    a, b = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3), np.arange(rows, dtype=np.float32).reshape(rows, 1)
    inputs = [{"name": name, "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()} for name, x in zip(names, (a, b), strict=True)]
    return a, b, {"inputs": inputs}


def test_several_inputs_and_outputs(server):
    a, b, body = two(27)
    outputs = {output["name"]: output for output in ask(server, "/v2/models/two/infer", body)["outputs"]}
    assert outputs["sum"]["data"] == (a + b).ravel().tolist() and outputs["whole"]["data"] == (a + b).astype(int).ravel().tolist()


def test_steps_of_an_ensemble(server):
    x, y, body = two(50, ("x", "y"))
    assert ask(server, "/v2/models/both/infer", body)["outputs"][0]["data"] == (x + 2 * y).ravel().tolist()


def test_one_request_is_counted_once_and_all_of_its_rows(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS) as server:
        ask(server, "/v2/models/two/infer", two(27)[2])
        [statistics] = call(server.url + "/v2/models/two/stats").json["model_stats"]
    assert (statistics["inference_count"], statistics["execution_count"], statistics["inference_stats"]["success"]["count"]) == (27, 7, 1)
    took = statistics["inference_stats"]
    assert took["compute_infer"]["ns"] + took["compute_input"]["ns"] + took["compute_output"]["ns"] + took["queue"]["ns"] <= took["success"]["ns"]


def test_kept_answers_are_kept_whole(server):
    body = infer_body(PIXELS[:100].tolist())
    first, second = (ask(server, "/v2/models/kept/infer", body)["outputs"] for _ in range(2))
    assert first == second and server.metric("nv_cache_num_hits_per_model", model="kept") == 1


def test_others_ride_between(server):
    """However much waits of one request, others get their turn."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        large = [pool.submit(scores, server, np.tile(PIXELS, (6, 1))) for _ in range(4)]
        small = [pool.submit(scores, server, PIXELS[i:i + 1]) for i in range(40)]
        for i, one in enumerate(small):
            np.testing.assert_allclose(one.result(), scores(server, PIXELS[i:i + 1]), atol=1e-5)
        assert all(one.result().shape == (6 * len(PIXELS), 10) for one in large)


def test_a_row_that_is_wrong_fails_its_request_alone(serve, tmp_path):
    table = helper.make_tensor("table", TensorProto.FLOAT, [10], range(10))
    save(tmp_path / "models/look/1/model.onnx", [helper.make_node("Gather", ["table", "at"], ["found"])], [("at", TensorProto.INT64, ["n", 1])],
         [("found", TensorProto.FLOAT, ["n", 1])], [table])  # fmt: skip
    runtime = serve(tmp_path / "models")

    def look(at):
        body = {"inputs": [{"name": "at", "datatype": "INT64", "shape": [len(at), 1], "data": at}]}
        return call(runtime.url + "/v2/models/look/infer", body)

    right = [i % 10 for i in range(300)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(look, [right, [*right[:-1], 99], right, [99, *right[1:]]] * 5))
    assert [answer.status for answer in answers] == [200, 400, 200, 400] * 5
    assert all(answer.json["outputs"][0]["data"] == right for answer in answers[0::2]) and all("99" in answer.error for answer in answers[1::2])
    wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 0, 10, "nothing waits")


@pytest.mark.parametrize("columns", [262_144, 768])
def test_results_that_no_memory_holds_are_refused(serve, tmp_path, columns):
    """A few bytes of each row stand for many: 120 KB ended the server."""
    rows = (8 << 30) // (4 * columns) + 1
    wide = helper.make_tensor("wide", TensorProto.FLOAT, [1, columns], [0.0] * columns)
    save(tmp_path / "models/wide/1/model.onnx", [helper.make_node("Add", ["x", "wide"], ["y"])], [("x", TensorProto.FLOAT, ["n", 1])],
         [("y", TensorProto.FLOAT, ["n", columns])], [wide])  # fmt: skip
    runtime = serve(tmp_path / "models", "--max-body-bytes", 100_000_000)
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        tensor = triton_grpc.InferInput("x", [rows, 1], "FP32")
        tensor.set_data_from_numpy(np.zeros((rows, 1), np.float32))
        with pytest.raises(triton_grpc.InferenceServerException, match="would take more than 8589934592 bytes"):
            client.infer("wide", [tensor])
        small = triton_grpc.InferInput("x", [1, 1], "FP32")
        small.set_data_from_numpy(np.zeros((1, 1), np.float32))
        assert client.infer("wide", [small]).as_numpy("y").shape == (1, columns)


def test_a_short_queue_lets_in_a_request_of_many_parts(serve, repository):
    models = repository({"digits/1": MODELS / "digits/3/model.onnx"})
    (models / "digits/serin.yaml").write_text("max_batch: 4\nqueue_limit: 1\ninstances: 2\n")
    runtime = serve(models, "--threads", 2)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: call(runtime.url + PATH, infer_body(PIXELS.tolist())).status, range(60)))
        alone = call(runtime.url + PATH, infer_body(PIXELS.tolist()))
    assert alone.status == 200 and answers.count(200) > 0 and set(answers) <= {200, 429}
    wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 0, 10, "nothing waits")


def test_a_limit_of_tritons_is_one_of_requests(serve, repository):
    models = repository({"digits/1": MODELS / "digits/3/model.onnx"})
    (models / "digits/config.pbtxt").write_text("max_batch_size: 8\n")
    answer = call(serve(models).url + PATH, infer_body(PIXELS[:9].tolist()))
    assert answer.status == 400 and "batch-size must be <= 8" in answer.error


def test_a_deadline_and_hanging_up_end_what_is_left_of_it(serve, repository):
    models = repository({"digits/1": MODELS / "digits/4/model.onnx"})
    (models / "digits/serin.yaml").write_text("max_batch: 1\ninstances: 1\n")
    runtime = serve(models, "--threads", 1)
    rows = 60 * len(PIXELS)
    shape = call(runtime.url + "/v2/models/digits").json["inputs"][0]["shape"]
    body = {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [rows, *shape[1:]], "data": np.tile(PIXELS, (60, 1)).ravel().tolist()}]}
    answer = call(runtime.url + PATH, body, {"x-serin-timeout-ms": "300"})
    assert answer.status == 504
    wait_until(lambda: runtime.metric("nv_inference_request_failure", reason="REJECTED") == 1, 10, "it is counted")
    ran = runtime.metric("nv_inference_exec_count")
    assert ran < rows
    time.sleep(0.3)
    assert runtime.metric("nv_inference_exec_count") <= ran + 2, "what is left of it still runs"
    request = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", runtime.ports["http"])) as client:
        client.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(request)) + request)
        wait_until(lambda: runtime.metric("nv_inference_exec_count") > ran + 10, 30, "it runs")
    wait_until(lambda: runtime.metric("nv_inference_request_failure", reason="CANCELED") == 1, 10, "it is counted")
    assert runtime.metric("nv_inference_exec_count") < rows
