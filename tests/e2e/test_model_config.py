"""config.pbtxt as Triton's repositories have it, what becomes of it, and what clients are told of it."""

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from conftest import MODELS, call, infer_body
from test_serve import EVALUATION, expected_scores
from test_tfserving import save_half_plus_two

GOOD = MODELS / "digits" / "1" / "model.onnx"
PIXELS = EVALUATION["pixels"][:3]


def infer(runtime, rows, output=None, version=""):
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("pixels", list(rows.shape), "FP32")
        tensor.set_data_from_numpy(rows)
        return client.infer("digits", [tensor], outputs=output and [output], model_version=version)


@pytest.fixture
def configured(serve, repository):
    """configured(text, versions): a runtime with digits and that config.pbtxt."""
    def begin(text, versions=("1",), files=None):
        models = repository({f"digits/{version}": GOOD for version in versions})
        (models / "digits/config.pbtxt").write_text(text)
        for name, content in (files or {}).items():
            (models / "digits" / name).write_text(content)
        return serve(models)
    return begin


WHOLE = """
name: "digits"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "pixels", data_type: TYPE_FP32, dims: [ 64 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100
                   default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 5000000 timeout_action: DELAY } }
version_policy { specific { versions: [ 1, 3 ] } }
optimization { cuda { graphs: true busy_wait_events: true } priority: PRIORITY_MAX }
parameters { key: "colour" value { string_value: "blue" } }
model_operations { op_library_filename: "libmine.so" }
"""
LABELS = "\n".join(f"digit-{i}" for i in range(10))


def test_what_config_pbtxt_says_holds(configured):
    runtime = configured(WHOLE, ("1", "2", "3"), {"labels.txt": LABELS})
    assert call(f"{runtime.url}/v2/models/digits").json["versions"] == ["1", "3"], "version_policy"
    config = call(f"{runtime.url}/v2/models/digits/config").json
    assert config["max_batch_size"] == 8 and config["input"][0]["dims"] == [64] and config["input"][0]["data_type"] == "TYPE_FP32"
    assert config["instance_group"] == [{"name": "digits", "kind": "KIND_CPU", "count": 2, "gpus": [], "passive": False}]
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 7
    assert config["version_policy"] == {"specific": {"versions": [1, 3]}}
    assert config["parameters"] == {"colour": {"string_value": "blue"}} and config["optimization"]["priority"] == "PRIORITY_MAX"
    assert "model_operations" in runtime.log and "busy_wait_events" in runtime.log and "preferred_batch_size" in runtime.log
    assert runtime.log.count("model_operations") == 1, "said once"

    rows = infer(runtime, PIXELS).as_numpy("scores")
    np.testing.assert_allclose(rows, expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    classes = infer(runtime, PIXELS, triton.InferRequestedOutput("scores", class_count=1)).as_numpy("scores")
    best = rows.argmax(axis=1)
    assert [text.decode().split(":", 1)[1] for text in classes[:, 0]] == [f"{i}:digit-{i}" for i in best]
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 9))
    assert refused.status == 400 and "batch-size must be <= 8" in refused.error


def test_metric_tags_are_labels(configured):
    runtime = configured('input { name: "pixels" format: FORMAT_NCHW } optimization { cuda { graphs: true } }'
                         'metric_tags { key: "team" value: "vision \\"a\\"" } metric_tags { key: "le" value: "1" } metric_tags { key: "a-b" value: "1" }')
    assert call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64])).status == 200
    page = runtime.metrics()
    assert 'nv_inference_count{model="digits",version="1",team="vision \\"a\\""} 1' in page
    assert "a-b" not in page
    for ignored in ("metric_tags: 'le'", "metric_tags: 'a-b'", "optimization.cuda.graphs", "'pixels': format"):
        assert ignored in runtime.log


def test_without_a_batch_dims_are_whole(configured):
    runtime = configured("input { name: 'pixels' data_type: TYPE_FP32 dims: [ -1, 64 ] }")
    config = call(f"{runtime.url}/v2/models/digits/config").json
    assert config["max_batch_size"] == 0 and config["input"][0]["dims"] == [-1, 64] and config["output"][0]["dims"] == [-1, 10]
    rows = np.tile(EVALUATION["pixels"][:50], (2, 1))  # more than any batch here: no limit was set
    np.testing.assert_allclose(infer(runtime, rows).as_numpy("scores"), expected_scores(1, rows), rtol=1e-4, atol=1e-5)


def test_a_batch_of_one_says_how_to_open_it(serve, repository, tmp_path):
    model = onnx.load(GOOD)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, tmp_path / "model.onnx")
    runtime = serve(repository({"digits/1": tmp_path / "model.onnx"}))
    how = "it was exported with a batch of 1; torch.onnx.export(..., dynamic_shapes={'pixels': {0: 'batch'}}) leaves the batch open"
    assert call(f"{runtime.url}/v2/models/digits").json["parameters"]["batching_why"] == how and how in runtime.log
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 3))
    assert refused.status == 400 and refused.error.endswith("the request has [3,64]: " + how)
    shorter = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 63]))
    assert shorter.status == 400 and "batch of 1" not in shorter.error


def test_dims_may_narrow_what_the_model_leaves_open(configured):
    runtime = configured("input { name: 'pixels' dims: [ 2, 64 ] }")
    assert call(f"{runtime.url}/v2/models/digits").json["inputs"][0]["shape"] == [2, 64]
    assert infer(runtime, PIXELS[:2]).as_numpy("scores").shape == (2, 10)
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 3))
    assert refused.status == 400 and "[2,64]" in refused.error


def test_clients_may_have_tensors_in_another_shape(configured):
    runtime = configured("""max_batch_size: 8 input { name: "pixels" data_type: TYPE_FP32 dims: [ 8, 8 ] reshape { shape: [ 64 ] } }
                            output { name: "scores" data_type: TYPE_FP32 dims: [ 2, 5 ] reshape { shape: [ 10 ] } }
                            model_warmup { name: "one" batch_size: 2 inputs { key: "pixels" value { data_type: TYPE_FP32 dims: [ 8, 8 ] zero_data: true } } }""")
    about = call(f"{runtime.url}/v2/models/digits").json
    assert about["inputs"][0]["shape"] == [-1, 8, 8] and about["outputs"][0]["shape"] == [-1, 2, 5]
    config = call(f"{runtime.url}/v2/models/digits/config").json
    assert config["input"][0]["dims"] == [8, 8] and config["input"][0]["reshape"] == {"shape": [64]}
    rows = infer(runtime, PIXELS.reshape(-1, 8, 8)).as_numpy("scores")
    assert rows.shape == (3, 2, 5)
    np.testing.assert_allclose(rows.reshape(3, 10), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body(PIXELS.tolist()))
    assert refused.status == 400 and "expects [-1,8,8] FP32, the request has [3,64]" in refused.error


def test_a_tensor_without_axes_has_one_for_clients(serve, repository, tmp_path):
    save_half_plus_two(tmp_path / "model.onnx")
    models = repository({"half/1": tmp_path / "model.onnx"})
    (models / "half/config.pbtxt").write_text('max_batch_size: 4 input { name: "x" dims: [ 1 ] reshape { } } output { name: "y" dims: [ 1, 1 ] reshape { shape: [ ] } }')
    runtime = serve(models)
    body = {"inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}]}
    (output,) = call(f"{runtime.url}/v2/models/half/infer", body).json["outputs"]
    assert output["shape"] == [2, 1, 1] and output["data"] == [2.5, 3.0]


def test_rows_that_clients_do_not_see(configured):
    """max_batch_size 0: dims are all that clients have, and the model's rows are among what is reshaped."""
    runtime = configured('input { name: "pixels" dims: [ 64 ] reshape { shape: [ 1, 64 ] } }')
    for row in PIXELS:
        scores = call(f"{runtime.url}/v2/models/digits/infer", {"inputs": [{"name": "pixels", "shape": [64], "datatype": "FP32", "data": row.tolist()}]}).json["outputs"][0]
        np.testing.assert_allclose(np.reshape(scores["data"], (1, 10)), expected_scores(1, row[None]), rtol=1e-4, atol=1e-5)
        assert scores["shape"] == [1, 10]


def test_rows_that_only_clients_see(serve, repository, tmp_path):
    save_half_plus_two(tmp_path / "model.onnx")
    models = repository({"half/1": tmp_path / "model.onnx"})
    (models / "half/config.pbtxt").write_text('input { name: "x" dims: [ 1, 4 ] reshape { shape: [ 4 ] } } response_cache { enable: true }')
    runtime = serve(models)
    for _ in range(2):
        body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
        (output,) = call(f"{runtime.url}/v2/models/half/infer", body).json["outputs"]
        assert output["shape"] == [4] and output["data"] == [2.5, 3.0, 3.5, 4.0]
    statistics = call(f"{runtime.url}/v2/models/half/stats").json["model_stats"][0]["inference_stats"]
    assert (statistics["cache_hit"]["count"], statistics["cache_miss"]["count"]) == (1, 1)


def test_threads_and_sizes_that_differ(configured):
    runtime = configured("""max_batch_size: 4 parameters { key: "intra_op_thread_count" value { string_value: "2" } }
                            input { name: "pixels" dims: [ 64 ] allow_ragged_batch: true } optimization { graph { level: 1 } }""")
    assert infer(runtime, PIXELS).as_numpy("scores").shape == (3, 10)
    assert "'pixels': allow_ragged_batch" in runtime.log and "optimization.graph.level" in runtime.log
    config = call(f"{runtime.url}/v2/models/digits/config").json
    assert config["parameters"]["intra_op_thread_count"] == {"string_value": "2"}


def test_the_latest_version_is_served_where_nothing_is_said(configured):
    runtime = configured("max_batch_size: 4", ("1", "2", "10"))
    assert call(f"{runtime.url}/v2/models/digits").json["versions"] == ["10"]
    assert call(f"{runtime.url}/v2/models/digits/config").json["version_policy"] == {"latest": {"num_versions": 1}}


CONTRADICTIONS = {
    "max_batch_size: -1": "max_batch_size",
    "input { name: 'pixel' dims: [ 64 ] }": "input 'pixel' is not in the model, which has 'pixels'",
    "max_batch_size: 8 input { name: 'pixels' data_type: TYPE_INT8 dims: [ 64 ] }": "'pixels' is TYPE_INT8, in the model it is TYPE_FP32",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 63 ] }": "dims [63] behind the batch",
    "max_batch_size: 8 input { name: 'pixels' dims: [ -1, 64 ] }": "dims [-1,64] behind the batch",
    "input { name: 'pixels' dims: [ 64 ] }": "dims [64], in the model it is [-1,64]",
    "output { name: 'scores' label_filename: '../../etc/passwd' }": "must lie in the model's folder",
    "output { name: 'scores' label_filename: 'none.txt' }": "none.txt",
    "backend: 'python'": "python",
    "platform: 'tensorrt_plan'": "tensorrt_plan",
    "default_model_filename: '../x.onnx'": "default_model_filename",
    "version_policy { specific { versions: [ 0 ] } }": "no version 0",
    "instance_group { count: 1000 }": "count is 1000",
    "model_transaction_policy { decoupled: true }": "decoupled",
    "max_batch_size: many": "1:17",
    "max_batch_size: 8 output { name: 'scores' reshape { shape: [ 10 ] } }": "'scores' has a reshape, but no dims",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 8, 8 ] reshape { shape: [ 63 ] } }": "reshape from dims [8,8] to [63]",
    "max_batch_size: 8 input { name: 'pixels' dims: [ -1, 64 ] reshape { shape: [ 64, -1 ] } }": "between the same open sizes",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 8, 8 ] reshape { shape: [ 32, 2 ] } }": "a reshape to [32,2] behind the batch",
    "input { name: 'pixels' dims: [ 9223372036854775807, 4 ] reshape { shape: [ 64 ] } }": "reshape from dims",
    "input { name: 'pixels' dims: [ 64 ] reshape { shape: [ %s 64 ] } }" % ("1, " * 20): "reshape from dims",
    "input { name: 'pixels' optional: true }": "input 'pixels': optional",
    "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'size' data_type: TYPE_INT32 source_input: 'pixels' }": "batch_input",
    "parameters { key: 'intra_op_thread_count' value { string_value: 'many' } }": "intra_op_thread_count is 'many'",
    "input { name: 'pixels'": "config.pbtxt",
    "dynamic_batching { priority_levels: 2 }": "default_priority_level",
    "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }": "max_queue_delay_microseconds",
    "input { input { input {" * 500: "config.pbtxt",
}


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_a_contradiction_fails_the_model_and_says_which(configured, text):
    runtime = configured(text)
    (entry,) = call(f"{runtime.url}/v2/repository/index", "").json
    assert entry["state"] == "UNAVAILABLE" and CONTRADICTIONS[text] in entry["reason"], entry
    assert str(runtime.folder) not in entry["reason"]


def test_serin_yaml_goes_before_it(configured):
    runtime = configured("max_batch_size: 4", files={"serin.yaml": "max_batch: 2\nversions: all\n"})
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 3))
    assert refused.status == 400 and "batch-size must be <= 2" in refused.error
    assert "what serin.yaml says holds" in runtime.log


def test_a_model_without_one_has_a_config_all_the_same(shared_runtime):
    config = call(f"{shared_runtime.url}/v2/models/digits/versions/1/config").json
    assert config["name"] == "digits" and config["max_batch_size"] == 32 and config["default_model_filename"] == "model.onnx"
    assert config["input"][0]["dims"] == [64] and config["output"][0]["data_type"] == "TYPE_FP32"
    assert config["version_policy"] == {"all": {}}
    with triton.InferenceServerClient(shared_runtime.url.removeprefix("http://")) as client:
        assert client.get_model_config("digits", "1") == config
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{shared_runtime.ports['grpc']}") as client:
        told = client.get_model_config("digits", "1").config
        assert told.max_batch_size == 32 and told.input[0].name == "pixels" and list(told.input[0].dims) == [64]
        assert client.get_model_config("digits", "1", as_json=True)["config"]["name"] == "digits"
    assert call(f"{shared_runtime.url}/v2/models/nope/config").status == 404
    assert call(f"{shared_runtime.url}/v2/models/digits/versions/77/config").status == 404
    assert call(f"{shared_runtime.url}/v2/models/digits/config", "{}").status == 405
