"""What dashboards and alerts of other servers' users read: the names, what counts as a failure, and numbers that are not cut to whole microseconds."""

import os
import uuid

import numpy
import pytest
import tritonclient.grpc
from conftest import MODELS, ON_FREE_PORTS, call, free_port, infer_body, serin, wait_until

PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
PIXELS = infer_body([[0.0] * 64])
BAD = [{"inputs": [{**PIXELS["inputs"][0], "shape": [1, 63]}]}, {"inputs": [{**PIXELS["inputs"][0], "name": "nope"}]}, "{broken",
       {"inputs": [{**PIXELS["inputs"][0], "shape": [0, 64], "data": []}]}]


@pytest.fixture
def digits(repository):
    return repository({"digits/1": MODELS / "digits/1/model.onnx"}) / "digits"


@pytest.fixture
def triton(start, digits):
    """triton(flag...): a ready tritonserver with one model, digits."""
    return lambda *flags: start("serve", "--as", "tritonserver", f"--model-repository={digits.parent}", *PORTS, *flags)


def statistics(server, model="digits", version="1"):
    return call(f"{server.url}/v2/models/{model}/versions/{version}/stats").json["model_stats"][0]


def test_a_bad_request_is_no_failure_of_the_model(triton):
    server = triton()
    for body in BAD:
        assert call(f"{server.url}/v2/models/digits/versions/1/infer", body).status >= 400
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
    wrong = tritonclient.grpc.InferInput("nope", [1, 64], "FP32")
    wrong.set_data_from_numpy(numpy.zeros((1, 64), "float32"))
    with pytest.raises(tritonclient.grpc.InferenceServerException):
        client.infer("digits", [wrong], "1")
    assert call(f"{server.url}/v2/models/digits/versions/1/infer", PIXELS).status == 200
    assert server.metric("nv_inference_request_failure") == 0 and server.metric("nv_inference_request_success", version="1") == 1
    assert server.metric("serin_bad_requests_total", model="digits", version="1") == len(BAD) + 1
    assert "count" not in statistics(server)["inference_stats"]["fail"] or statistics(server)["inference_stats"]["fail"]["count"] == 0


def test_names_that_tritons_dashboards_have(triton):
    server = triton()
    assert call(f"{server.url}/v2/models/digits/infer", PIXELS).status == 200
    page = server.metrics()
    for name in ("nv_inference_compute_output_duration_us", "nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes",
                 "nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes"):
        assert f"\n{name}" in page, name
    with open("/proc/meminfo") as memory:
        total = int(memory.readline().split()[1]) * 1024
    assert server.metric("nv_cpu_memory_total_bytes") == pytest.approx(total, rel=1e-6)
    assert 0 < server.metric("nv_cpu_memory_used_bytes") < total and 0 <= server.metric("nv_cpu_utilization") <= 1
    assert "summary" not in page


def test_summaries_where_they_are_asked_for(triton):
    server = triton("--metrics-config=summary_latencies=true", "--metrics-config=summary_quantiles=0.5:0.05,0.75:0.01")
    for _ in range(20):
        assert call(f"{server.url}/v2/models/digits/versions/1/infer", PIXELS).status == 200
    for name in ("request", "queue", "compute_input", "compute_infer", "compute_output"):
        name = f"nv_inference_{name}_summary_us"
        assert server.metric(f"{name}_count", version="1") == 20 and f'{name}{{model="digits",version="1",quantile="0.75"}} ' in server.metrics()
    assert server.metric("nv_inference_request_summary_us_sum", version="1") >= server.metric("nv_inference_compute_infer_summary_us_sum", version="1") > 0


def test_summaries_of_the_cache_are_those_of_models_that_have_it(triton, digits):
    (digits / "config.pbtxt").write_text("response_cache { enable: true }\n")
    server = triton("--metrics-config=summary_latencies=true", "--cache-config=local,size=1048576")
    for _ in range(5):
        assert call(f"{server.url}/v2/models/digits/versions/1/infer", PIXELS).status == 200
    for name, count in ("hit", 4), ("miss", 1):
        name = f"nv_cache_{name}_summary_per_model"
        assert server.metric(f"{name}_count", model="digits") == count and server.metric(f"{name}_sum", model="digits") > 0
        assert f'{name}{{model="digits",version="1",quantile="0.99"}} ' in server.metrics()
    (digits / "config.pbtxt").unlink()
    assert "nv_cache_" not in triton("--metrics-config=summary_latencies=true").metrics()


def test_time_is_counted_in_nanoseconds(triton):
    server = triton()
    for _ in range(8):
        assert call(f"{server.url}/v2/models/digits/versions/1/infer", PIXELS).status == 200
    held = statistics(server)
    whole, batch = held["inference_stats"], held["batch_stats"][0]
    for stage in ("compute_input", "compute_infer", "compute_output"):
        assert int(whole[stage]["ns"]) == int(batch[stage]["ns"]) > 0, "a request for each batch: they are the same time"
    assert any(int(whole[stage]["ns"]) % 1000 for stage in ("success", "queue", "compute_infer")), "nothing was cut"
    microseconds = server.metric("nv_inference_compute_infer_duration_us", version="1")
    assert microseconds == int(whole["compute_infer"]["ns"]) // 1000


def test_names_that_tensorflow_servings_dashboards_have(start, digits):
    server = start("serve", "--as", "tensorflow_model_server", "--model_name=digits", f"--model_base_path={digits}", f"--port={free_port()}",
                   f"--rest_api_port={free_port()}")
    predict = f"{server.url}/v1/models/digits:predict"
    assert call(predict, {"instances": [[0.0] * 64] * 2}).status == 200 and call(predict, {"instances": [[0.0] * 63]}).status == 400
    page = call(f"{server.url}/metrics").body.decode()
    assert page.count("\n") == call(f"{server.url}/monitoring/prometheus/metrics").body.decode().count("\n")
    for line in (':tensorflow:serving:request_count{model_name="digits",status="OK"} 1',
                 ':tensorflow:serving:request_count{model_name="digits",status="INVALID_ARGUMENT"} 1',
                 ':tensorflow:serving:request_latency_count{model_name="digits",API="predict",entrypoint="REST"} 1',
                 ':tensorflow:serving:request_latency_bucket{model_name="digits",API="predict",entrypoint="REST",le="10"} 0',
                 ':tensorflow:serving:runtime_latency_count{model_name="digits",API="Predict",runtime="SERIN"} 1'):
        assert f"\n{line}\n" in page, line


def test_other_dialects_do_not_have_them(triton):
    assert ":tensorflow:" not in triton().metrics()


# --- what is asked of the server itself -----------------------------------------------------------------------------------------------

def test_the_server_is_called_as_it_was_told(triton):
    server = triton('--id=srv "1"')
    assert call(f"{server.url}/v2").json["name"] == 'srv "1"'
    assert tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}").get_server_metadata().name == 'srv "1"'


def test_the_log_goes_to_the_file_that_is_named(triton, tmp_path):
    file = tmp_path / "triton.log"
    server = triton(f"--log-file={file}")
    wait_until(lambda: file.exists() and " info serving " in file.read_text(), what="the line that it serves")
    assert " info " not in server.log
    assert call(f"{server.url}/v2/logging").json["log_file"] == str(file)


def test_a_log_file_that_cannot_be_opened_is_the_end(tmp_path):
    done = serin("serve", "--as", "tritonserver", f"--model-repository={MODELS}", *PORTS, f"--log-file={tmp_path}")
    assert done.returncode == 2 and str(tmp_path) in done.stderr


@pytest.mark.parametrize("name, flag", [("tritonserver", "--model-repository"), ("tensorflow_model_server", "--model_base_path"), ("kserve", "--model_dir")])
@pytest.mark.parametrize("place", ["s3://bucket/x", "gs://bucket/x", "as://account/x"])
def test_object_stores_are_refused_with_what_to_do(name, flag, place):
    done = serin("serve", "--as", name, f"{flag}={place}")
    assert done.returncode == 2 and f"{place}: object stores are not read" in done.stderr and "storage initializer" in done.stderr


@pytest.mark.parametrize("name, flag", [("tensorflow_model_server", "--model_base_path"), ("ovms", "--model_path")])
def test_a_place_of_this_machine_may_be_written_as_an_address(digits, name, flag):
    done = serin("serve", "--as", name, "--model_name=digits", f"{flag}=file://{digits}", "--port=0", "--check")
    assert done.returncode == 0 and "model 'digits' version 1: ready" in done.stdout, done.stderr


# --- large bodies ---------------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    import onnx
    from onnx import TensorProto, helper

    folder = tmp_path_factory.mktemp("large") / "identity" / "1"
    folder.mkdir(parents=True)
    tensors = [[helper.make_tensor_value_info(name, TensorProto.INT8, ["n"])] for name in ("x", "y")]
    total = helper.make_node("Slice", ["x", "zero", "one"], ["y"])
    bounds = [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in (("zero", 0), ("one", 1))]
    graph = helper.make_graph([total], "identity", *tensors, initializer=bounds)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    return folder.parents[1]


def ask_large(server, count, module, key=None):
    """With `key`: zeros in shared memory of that name."""
    import tritonclient.http
    module = {"http": tritonclient.http, "grpc": tritonclient.grpc}[module]
    client = module.InferenceServerClient(f"127.0.0.1:{server.ports[module.__name__.rsplit('.')[-1]]}")
    sent = module.InferInput("x", [count], "INT8")
    if key:
        client.register_system_shared_memory("region", key, count)
        sent.set_shared_memory("region", count)
    else:
        sent.set_data_from_numpy(numpy.ones(count, numpy.int8))
    return client.infer("identity", [sent]).as_numpy("y").tolist()


@pytest.mark.parametrize("module", ["http", "grpc"])
def test_as_large_a_body_as_tritons_users_send(start, identity, module):
    server = start("serve", "--as", "tritonserver", f"--model-repository={identity}", *PORTS)
    assert ask_large(server, 70 << 20, module) == [1]


@pytest.mark.parametrize("module", ["http", "grpc"])
def test_what_a_large_body_holds_is_taken_too(start, identity, module):
    server = start("serve", "--as", "tritonserver", f"--model-repository={identity}", *PORTS, f"--max-body-bytes={320 << 20}")
    assert ask_large(server, 300 << 20, module) == [1]
    key = f"/serin-test-{uuid.uuid4().hex}"
    with open(f"/dev/shm{key}", "xb") as file:
        try:
            file.truncate(310 << 20)  # sparse: it takes no memory
            assert ask_large(server, 310 << 20, module, key) == [0]
        finally:
            os.unlink(f"/dev/shm{key}")
    with pytest.raises(tritonclient.grpc.InferenceServerException, match=f"{320 << 20}.*--max-body-bytes"):
        ask_large(server, 321 << 20, module)


@pytest.mark.parametrize("module", ["http", "grpc"])
def test_ours_is_bounded_as_ever_and_so_is_theirs_where_told_so(start, identity, module):
    with pytest.raises(tritonclient.grpc.InferenceServerException, match="67108864"):
        ask_large(start("serve", identity, *ON_FREE_PORTS), 70 << 20, module)
    if module == "http":
        told = start("serve", "--as", "tritonserver", f"--model-repository={identity}", *PORTS, "--http-max-input-size=1048576")
        with pytest.raises(tritonclient.grpc.InferenceServerException, match="1048576"):
            ask_large(told, 2 << 20, module)
