"""config.pbtxt as Triton's repositories have it, what becomes of it, and what clients are told of it."""

import lzma
import shutil
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from conftest import MODELS, ON_FREE_PORTS, call, infer_body, serin, wait_until
from google.protobuf import text_format
from google.protobuf.message import Message
from onnx import TensorProto, helper
from test_serve import EVALUATION, expected_scores
from test_tfserving import save_half_plus_two
from test_traces import ANY_PORTS
from tritonclient.grpc import model_config_pb2

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
            (models / "digits" / name).parent.mkdir(exist_ok=True)
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
    assert config["instance_group"] == [{"name": "digits", "kind": "KIND_CPU", "count": 2, "gpus": [], "secondary_devices": [], "profile": [],
                                         "passive": False, "host_policy": ""}]
    assert (config["platform"], config["backend"]) == ("onnxruntime_onnx", "onnxruntime"), "as Triton fills it in"
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 7
    assert config["version_policy"] == {"specific": {"versions": [1, 3]}}
    ignored = config["parameters"].pop("serin_ignored")["string_value"]
    assert config["parameters"] == {"colour": {"string_value": "blue"}} and config["optimization"]["priority"] == "PRIORITY_MAX"
    for name in ("model_operations", "optimization.cuda.busy_wait_events", "dynamic_batching.preferred_batch_size"):
        assert name in runtime.log and name in ignored
    assert runtime.log.count("model_operations") == 1, "said once"

    rows = infer(runtime, PIXELS).as_numpy("scores")
    np.testing.assert_allclose(rows, expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    classes = infer(runtime, PIXELS, triton.InferRequestedOutput("scores", class_count=1)).as_numpy("scores")
    best = rows.argmax(axis=1)
    assert [text.decode().split(":", 1)[1] for text in classes[:, 0]] == [f"{i}:digit-{i}" for i in best]
    refused = call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 9))
    assert refused.status == 400 and "batch-size must be <= 8" in refused.error


# What Triton's documentation and tests have beyond what Serin does, in their forms: a list of messages needs no colon.
BEYOND = {
    "instance_group.rate_limiter": """instance_group [ { count: 1 kind: KIND_CPU rate_limiter {
        resources [ { name: "R1" count: 4 }, { name: "R2" global: True count: 2 } ] priority: 2 } } ]""",
    "instance_group.secondary_devices": "instance_group [ { kind: KIND_CPU secondary_devices [ { kind: KIND_NVDLA device_id: 1 } ] } ]",
    "instance_group.host_policy": 'instance_group [ { kind: KIND_CPU profile: [ "1" ] host_policy: "numa0" } ]',
    "optimization.execution_accelerators": """optimization { execution_accelerators {
        gpu_execution_accelerator : [ { name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ]
        cpu_execution_accelerator [ { name : "openvino" parameters [ { key: "a" value: "b" } ] } ] } }""",
    "optimization.cuda.graph_spec": """optimization { cuda { graphs: true graph_spec [ { batch_size: 4 input [ { key: "pixels" value: { dim: [ 64 ] } } ]
        graph_lower_bound { batch_size: 2 } } ] } }""",
    "model_repository_agents": 'model_repository_agents { agents [ { name: "checksum" parameters [ { key: "MD5:config.pbtxt" value: "x" } ] } ] }',
    "model_metrics": """model_metrics { metric_control: [ { metric_identifier: { family: "nv_inference_first_response_histogram_ms" }
        histogram_options: { buckets: [ 0.5, 1, 2, inf ] } } ] }""",
    "sequence_batching.direct.minimum_slot_utilization": "sequence_batching { direct { minimum_slot_utilization: 0.5 } }",
    "dynamic_batching.preserve_ordering": "dynamic_batching { preserve_ordering: true }",
    "input.is_non_linear_format_io": 'input [ { name: "pixels" is_non_linear_format_io: true } ]',
    "dynamic_batching.max_queue_delay_microseconds": "dynamic_batching { max_queue_delay_microseconds: 12000000 }",
    "dynamic_batching.priority_levels": """dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 18446744073709551614
        priority_queue_policy { key: 18446744073709551614 value { max_queue_size: 3 } } priority_queue_policy [ { key: 1 value { max_queue_size: 5 } } ] }""",
    "runtime": 'runtime: "libtriton_onnxruntime.so"',
}


@pytest.fixture(scope="module")
def many(start_once, tmp_path_factory):
    """many(texts): a runtime that serves digits once for each config.pbtxt, as a model named for its place in the list."""
    def begin(texts):
        models = tmp_path_factory.mktemp("models")
        for number, text in enumerate(texts):
            (models / f"model-{number}/1").mkdir(parents=True)
            shutil.copy(GOOD, models / f"model-{number}/1/model.onnx")
            (models / f"model-{number}/config.pbtxt").write_text(text)
        return start_once("serve", "--models", models, *ON_FREE_PORTS)
    return begin


@pytest.fixture(scope="module")
def with_more(many):
    return many("max_batch_size: 8 " + text for text in BEYOND.values())


@pytest.mark.parametrize("path", BEYOND)
def test_what_changes_nothing_is_read_told_and_named(with_more, path):
    model = f"model-{list(BEYOND).index(path)}"
    assert call(f"{with_more.url}/v2/models/{model}/ready").status == 200, with_more.log
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{with_more.ports['grpc']}") as client:
        told = client.get_model_config(model).config
    assert path in told.parameters["serin_ignored"].string_value
    assert any(f"'{model}'" in line and path in line for line in with_more.log.splitlines())
    published = text_format.Parse(BEYOND[path], model_config_pb2.ModelConfig())
    for field, value in published.ListFields():
        assert includes(getattr(told, field.name), value), f"{field.name}: {told}"
    assert call(f"{with_more.url}/v2/models/{model}/config").json["max_batch_size"] == 8, "and as JSON"


def includes(told, said):
    """Whether a message has all that another one says."""
    if isinstance(said, Message):
        return all(includes(getattr(told, field.name), value) for field, value in said.ListFields())
    if isinstance(said, Mapping):
        return all(includes(told[key], value) for key, value in said.items())
    if isinstance(said, Sequence) and not isinstance(said, str):
        return len(told) == len(said) and all(map(includes, told, said))
    return told == said


def test_a_config_of_windows_begins_with_a_mark(configured):
    runtime = configured("\ufeffmax_batch_size: 8\r\n")
    assert call(f"{runtime.url}/v2/models/digits/config").json["max_batch_size"] == 8


@pytest.mark.parametrize("said, told", [("backend: 'onnxruntime'", ("onnxruntime_onnx", "onnxruntime")),
                                        ("platform: 'onnxruntime_onnx'", ("onnxruntime_onnx", "onnxruntime")),
                                        ("max_batch_size: 8", ("onnx_serin", "serin"))])
def test_platform_and_backend_are_said_as_whose_they_are(configured, said, told):
    runtime = configured(said)
    config = call(f"{runtime.url}/v2/models/digits/config").json
    assert (config["platform"], config["backend"]) == told and "serin_ignored" not in config["parameters"]
    assert call(f"{runtime.url}/v2/models/digits").json["platform"] == told[0]


def test_small_numbers_are_told_as_numbers(configured):
    runtime = configured("sequence_batching { direct { minimum_slot_utilization: 1e-7 } }")
    assert call(f"{runtime.url}/v2/models/digits/config").json["sequence_batching"]["direct"]["minimum_slot_utilization"] == 1e-7


def test_sizes_of_outputs_may_stay_open_for_clients(serve, repository, tmp_path):
    """What is inferred here and by no other engine, as a class token in front of patches, is no contradiction; what the file says of an input is."""
    h = onnx.helper
    x, y = (h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name, dims in (("x", ["n", 3, 4]), ("y", ["n", "tokens", 4])))
    nodes = [h.make_node("Shape", ["x"], ["s"], end=1), h.make_node("Concat", ["s", "k"], ["c"], axis=0),
             h.make_node("Expand", ["v", "c"], ["token"]), h.make_node("Concat", ["token", "x"], ["y"], axis=1)]
    stored = [h.make_tensor("k", onnx.TensorProto.INT64, [2], [1, 4]), h.make_tensor("v", onnx.TensorProto.FLOAT, [1, 1, 4], [1.0] * 4)]
    graph = h.make_graph(nodes, "g", [x], [y], stored)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    models = repository({"token/1": tmp_path / "model.onnx", "closed/1": tmp_path / "model.onnx"})
    (models / "token/config.pbtxt").write_text('max_batch_size: 8 input { name: "x" dims: [ 3, 4 ] } output { name: "y" dims: [ -1, 4 ] }')
    (models / "closed/config.pbtxt").write_text('max_batch_size: 8 input { name: "x" dims: [ -1, 4 ] } output { name: "y" dims: [ -1, 4 ] }')
    runtime = serve(models)
    assert call(f"{runtime.url}/v2/models/token").json["outputs"][0]["shape"] == [-1, -1, 4]
    assert call(f"{runtime.url}/v2/models/token/config").json["output"][0]["dims"] == [-1, 4]
    body = {"inputs": [{"name": "x", "shape": [2, 3, 4], "datatype": "FP32", "data": [0.0] * 24}]}
    (output,) = call(f"{runtime.url}/v2/models/token/infer", body).json["outputs"]
    assert output["shape"] == [2, 4, 4] and output["data"] == ([1.0] * 4 + [0.0] * 12) * 2
    assert "input 'x' has dims [-1,4]" in call(f"{runtime.url}/v2/models/closed/infer", body).error


def test_a_file_to_warm_up_with_may_be_longer(configured):
    warmup = """max_batch_size: 8 model_warmup [ { name: "long" batch_size: 4
                inputs { key: "pixels" value: { data_type: TYPE_FP32 dims: [ 64 ] input_data_file: "pixels" } } } ]"""
    runtime = configured(warmup, files={"warmup/pixels": "\0" * 1024})
    assert call(f"{runtime.url}/v2/models/digits/ready").status == 200
    assert "warmup/pixels: input 'pixels' takes the first 256 of its 1024 bytes" in runtime.log and runtime.log.count("takes the first") == 1


def test_metric_tags_are_labels(configured):
    runtime = configured('input { name: "pixels" format: FORMAT_NCHW } optimization { cuda { graphs: true } }'
                         'metric_tags { key: "team" value: "vision \\"a\\"" } metric_tags { key: "le" value: "1" } metric_tags { key: "a-b" value: "1" }')
    assert call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64])).status == 200
    page = runtime.metrics()
    assert 'nv_inference_count{model="digits",version="1",team="vision \\"a\\""} 1' in page
    assert "a-b" not in page
    for ignored in ("metric_tags: 'le'", "metric_tags: 'a-b'", "optimization.cuda.graphs", "'pixels': format"):
        assert ignored in runtime.log


@pytest.mark.parametrize("most, told", [(0, []), (8, [8])])
def test_no_batch_is_preferred_where_there_are_none(configured, most, told):
    runtime = configured(f"max_batch_size: {most} dynamic_batching {{ }}")
    assert call(f"{runtime.url}/v2/models/digits/config").json["dynamic_batching"]["preferred_batch_size"] == told


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


@pytest.mark.parametrize("listed", [["high"], ["high", "low"], ["low", "high"], ["low"]])
def test_outputs_are_those_that_it_lists(serve, repository, tmp_path, listed):
    """In its order: clients read the first, and what is left out does not travel."""
    path = tmp_path / "two.onnx"
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["low"]), helper.make_node("Abs", ["x"], ["high"])], "two",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("low", "high")])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    models = repository({"two/1": path})
    outputs = ",".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 2 ] }}' for name in listed)
    (models / "two/config.pbtxt").write_text(f"max_batch_size: 4\ninput [ {{ name: 'x' data_type: TYPE_FP32 dims: [ 2 ] }} ]\noutput [ {outputs} ]\n")
    url = serve(models).url + "/v2/models/two"
    assert [output["name"] for output in call(url).json["outputs"]] == listed
    assert [output["name"] for output in call(url + "/config").json["output"]] == listed
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    values = {"low": [-1, -2], "high": [1, 2]}
    assert [(output["name"], output["data"]) for output in call(url + "/infer", body).json["outputs"]] == [(name, values[name]) for name in listed]
    last = call(url + "/infer", {**body, "outputs": [{"name": listed[-1]}]}).json["outputs"]
    assert [output["data"] for output in last] == [values[listed[-1]]]
    if len(listed) == 1:
        left_out = "low" if listed == ["high"] else "high"
        refused = call(url + "/infer", {**body, "outputs": [{"name": left_out}]})
        assert refused.status == 400 and left_out in refused.error


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
    "input { name: 'pixel' dims: [ 64 ] }": "input 'pixel' is not in the model; did you mean 'pixels'?",
    "max_batch_size: 8 input { name: 'pixels' data_type: TYPE_INT8 dims: [ 64 ] }": "'pixels' is TYPE_INT8, in the model it is TYPE_FP32",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 63 ] }": "dims [63] behind the batch",
    "max_batch_size: 8 input { name: 'pixels' dims: [ -1, 64 ] }": "dims [-1,64] behind the batch",
    "input { name: 'pixels' dims: [ 64 ] }": "dims [64], in the model it is [-1,64]",
    "output { name: 'scores' label_filename: '../../etc/passwd' }": "must lie in the model's folder",
    "output { name: 'scores' label_filename: 'none.txt' }": "none.txt",
    "backend: 'python'": "python",
    "platform: 'tensorrt_plan'": "tensorrt_plan",
    "default_model_filename: '../x.onnx'": "default_model_filename",
    "version_policy { specific { versions: [ -1 ] } }": "no version -1",
    "instance_group { count: -1 }": "count is -1",
    "model_transaction_policy { decoupled: true }": "decoupled",
    "max_batch_size: many": "1:17",
    "max_batch_size: 8 output { name: 'scores' reshape { shape: [ 10 ] } }": "'scores' has a reshape, but no dims",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 8, 8 ] reshape { shape: [ 63 ] } }": "reshape from dims [8,8] to [63]",
    "max_batch_size: 8 input { name: 'pixels' dims: [ -1, 64 ] reshape { shape: [ 64, -1 ] } }": "between the same open sizes",
    "max_batch_size: 8 input { name: 'pixels' dims: [ 8, 8 ] reshape { shape: [ 32, 2 ] } }": "a reshape to [32,2] behind the batch",
    "input { name: 'pixels' dims: [ 9223372036854775807, 4 ] reshape { shape: [ 64 ] } }": "reshape from dims",
    "input { name: 'pixels' dims: [ 64 ] reshape { shape: [ %s 64 ] } }" % ("1, " * 20): "reshape from dims",
    "input { name: 'pixels' } input { name: 'none' optional: true }": "'none' is no input of the model",
    "platform: 'ensemble' input { name: 'a' optional: true } ensemble_scheduling { step { model_name: 'a' } }": "inputs of an ensemble",
    "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'size' data_type: TYPE_INT32 source_input: 'pixels' }": "batch_input",
    "parameters { key: 'intra_op_thread_count' value { string_value: 'many' } }": "intra_op_thread_count is 'many'",
    "input { name: 'pixels'": "config.pbtxt",
    "dynamic_batching { priority_levels: 2 }": "default_priority_level",
    "dynamic_batching { priority_levels: 2 default_priority_level: 3 }": "default_priority_level is 3; it is 1 to 2",
    "input { input { input {" * 500: "config.pbtxt",
}


@pytest.fixture(scope="module")
def contradicted(many):
    return many(["max_batch_size: 8", *CONTRADICTIONS])


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_a_contradiction_fails_the_model_and_says_which(contradicted, text):
    model = f"model-{1 + list(CONTRADICTIONS).index(text)}"
    (entry,) = (entry for entry in call(f"{contradicted.url}/v2/repository/index", "").json if entry["name"] == model)
    assert entry["state"] == "UNAVAILABLE" and CONTRADICTIONS[text] in entry["reason"], entry
    assert "/models" not in entry["reason"], "where on this machine the files are"
    assert call(f"{contradicted.url}/v2/models/model-0/ready").status == 200, "the others are served"


ELSEWHERE = {  # platform or backend: (a file of such a model, what to do)
    "platform: 'pytorch_libtorch'": ("model.pt", "a PyTorch model: torch.onnx.export("),
    "platform: 'tensorflow_graphdef'": ("model.graphdef", "python -m tf2onnx.convert --graphdef"),
    "platform: 'tensorrt_plan'": ("model.plan", "serve the ONNX model it was built from"),
    "backend: 'pytorch'": ("model.pt", "torch.onnx.export("),
    "backend: 'openvino'": ("model.xml", "export to ONNX what it was converted from"),
    "backend: 'python'": ("model.py", "export to ONNX the model that it calls"),
}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What --check says of a model of each platform, with its file and without it."""
    models = tmp_path_factory.mktemp("models")
    for number, (text, (name, _)) in enumerate(ELSEWHERE.items()):
        for there in (True, False):
            file = models / f"model-{number}-{there}/1" / name
            file.parent.mkdir(parents=True)
            (models / f"model-{number}-{there}/config.pbtxt").write_text(text)
            if there:
                file.write_bytes(b"\x08\x01 whatever")
    done = serin("serve", "--check", models)
    assert done.returncode == 1
    return done.stdout.splitlines()


@pytest.mark.parametrize("there", [True, False], ids=["file", "no-file"])
@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_model_of_another_platform_says_how_it_becomes_servable(elsewhere, text, there):
    """As it does where no config.pbtxt is, and from the platform's name alone where the file itself is still to come."""
    name, what_to_do = ELSEWHERE[text]
    (line,) = (line for line in elsewhere if f"'model-{list(ELSEWHERE).index(text)}-{there}'" in line)
    assert text.split("'")[1] in line and what_to_do in line and (f"'{name}' is " in line) == there, line


@pytest.mark.parametrize("text, file", [("platform: 'tensorflow_savedmodel'", "model.savedmodel"), ("backend: 'fil'", "xgboost.json")])
def test_a_platform_that_is_read_expects_the_file_that_triton_does(tmp_path, text, file):
    (tmp_path / "model/1").mkdir(parents=True)
    (tmp_path / "model/config.pbtxt").write_text(text)
    done = serin("serve", "--check", tmp_path)
    assert done.returncode == 1 and f"there is no '{file}'" in done.stdout, done.stdout


@pytest.mark.parametrize("text, told", [("", "lightgbm_serin"), ("backend: 'fil'", "fil")])
def test_a_models_platform_is_its_format_or_what_triton_calls_it(serve, tmp_path, text, told):
    (tmp_path / "trees/1").mkdir(parents=True)
    stored, name = ("xgb_absolute.json.xz", "xgboost.json") if text else ("lgb_binary.txt.xz", "model.txt")
    (tmp_path / "trees/1" / name).write_bytes(lzma.decompress((MODELS.parent / "tests/formats/trees/models" / stored).read_bytes()))
    if text:
        (tmp_path / "trees/config.pbtxt").write_text(text)
    runtime = serve(tmp_path)
    assert call(f"{runtime.url}/v2/models/trees").json["platform"] == told


def test_files_say_more_than_the_platforms_name(tmp_path):
    """Of several versions, and of a model that another backend would have run though it is ONNX."""
    for path in ("torch/2/net.torchscript", "onnx/1/model.onnx"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(b"whatever")
    (tmp_path / "torch/1").mkdir()
    (tmp_path / "torch/config.pbtxt").write_text("backend: 'my_own'")
    (tmp_path / "onnx/config.pbtxt").write_text("backend: 'openvino'")
    onnx_line, *torch_lines = serin("serve", "--check", tmp_path).stdout.splitlines()
    assert "'1/model.onnx' seems to be one: leave platform and backend out" in onnx_line
    assert torch_lines and all("'net.torchscript' is a TorchScript program: torch.onnx.export(" in line for line in torch_lines)


def test_one_configuration_of_several(start, repository):
    models = repository({"digits/1": GOOD, "plain/1": GOOD, "own/1": GOOD})
    for file, most in {"digits/config.pbtxt": 8, "digits/configs/h100.pbtxt": 4, "digits/configs/a10.pbtxt": 2, "plain/config.pbtxt": 16,
                       "own/configs/h100.pbtxt": 32}.items():  # fmt: skip
        (models / file).parent.mkdir(exist_ok=True)
        (models / file).write_text(f"max_batch_size: {most}")
    runtime = start("serve", "--as", "tritonserver", f"--model-repository={models}", "--model-config-name=h100", "--model-control-mode=poll",
                    "--repository-poll-secs=0.2", *ANY_PORTS)
    def most(model):
        return call(f"{runtime.url}/v2/models/{model}/config").json["max_batch_size"]
    assert (most("digits"), most("plain"), most("own")) == (4, 16, 32)
    (models / "digits/configs/h100.pbtxt").write_text("max_batch_size: 5")
    wait_until(lambda: most("digits") == 5, what="the change")
    (models / "digits/configs/h100.pbtxt").unlink()
    wait_until(lambda: most("digits") == 8, what="the file that is there in any case")
    (models / "own/configs/h100.pbtxt").write_text("max_batch_size: many")
    wait_until(lambda: "configs/h100.pbtxt" in runtime.log and "many" in runtime.log, what="the error")
    assert most("own") == 32


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
