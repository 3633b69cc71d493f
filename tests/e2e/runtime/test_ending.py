"""SIGTERM at any time: while models are loaded, while clients only wait, while a model comes."""

import concurrent.futures
import signal
import socket
import subprocess
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc
from conftest import MODELS, ON_FREE_PORTS, SERIN, call, free_port, serin, wait_until
from slow_model import save_slow, save_slow_to_load, turns


def listens(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def loading(tmp_path):
    """loading(*arguments): (process, port, log) of a server that is busy loading."""
    processes = []

    def begin(*arguments):
        save_slow_to_load(tmp_path / "models")
        port, log = free_port(), tmp_path / "log"
        flags = [flag.format(models=tmp_path / "models", port=port) for flag in arguments]
        with open(log, "wb") as out:
            processes.append(subprocess.Popen([SERIN, "serve", *flags], stdout=out, stderr=out))
        wait_until(lambda: "compute threads" in log.read_text(), 20, "the start")
        return processes[-1], port, log

    yield begin
    for process in processes:
        process.kill()
        process.wait()


NATIVE = ["--models", "{models}", "--port", "{port}", "--grpc-port", "off", "--metrics-port", "off"]
AS_TRITON = ["--as", "tritonserver", "--model-repository={models}", "--http-port={port}", "--allow-grpc=0", "--allow-metrics=0"]


@pytest.mark.parametrize("arguments", [NATIVE, AS_TRITON], ids=["serin", "triton"])
def test_while_models_are_loaded(loading, arguments):
    process, _, log = loading(*arguments)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    assert "ending, before all models are loaded" in log.read_text()


def test_who_stands_in_for_another_server_listens_once_it_has_loaded(loading):
    """Its manifests rely on it: a readiness probe that only connects sends clients there. `serin serve` itself answers from the start on, for liveness."""
    _, port, log = loading(*NATIVE)
    wait_until(lambda: listens(port), 10, "the port")
    assert call(f"http://127.0.0.1:{port}/v2/health/live").status == 200 and call(f"http://127.0.0.1:{port}/v2/health/ready").status == 503
    assert "serving" not in log.read_text()


@pytest.mark.parametrize("arguments", [AS_TRITON, ["--as", "tensorflow_model_server", "--model_base_path={models}/slow", "--model_name=slow", "--port=0",
                                                   "--rest_api_port={port}"]], ids=["triton", "tensorflow"])  # fmt: skip
def test_no_port_before_that(loading, arguments):
    process, port, _ = loading(*arguments)
    for _ in range(10):
        assert process.poll() is None and not listens(port)
        time.sleep(0.1)


def test_clients_that_only_wait_do_not_hold_it_up(start):
    runtime = start("serve", "--models", MODELS, *ON_FREE_PORTS)
    address = f"127.0.0.1:{runtime.ports['grpc']}"
    with grpc.insecure_channel(address) as channel:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert next(watch) == b"\x08\x01"
        reflection = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")(iter(lambda: time.sleep(60), None))
        answers = []
        client = tritonclient.grpc.InferenceServerClient(address)
        client.start_stream(lambda result, error: answers.append(error))
        pixels = tritonclient.grpc.InferInput("pixels", [1, 64], "FP32")
        pixels.set_data_from_numpy(np.zeros((1, 64), np.float32))
        client.async_stream_infer("digits", [pixels], model_version="1")
        wait_until(lambda: answers == [None], 10, "an answer on the stream")
        began = time.monotonic()
        assert runtime.end() == 0
        assert time.monotonic() - began < 10
        with pytest.raises(grpc.RpcError) as ended:
            list(watch)
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        reflection.cancel()
        wait_until(lambda: len(answers) == 2, 10, "the end of the stream")
        assert "the server ends" in str(answers[1])


def test_what_a_stream_has_under_way_is_answered_first(start, tmp_path):
    save_slow(tmp_path / "models")
    runtime = start("serve", "--models", tmp_path / "models", *ON_FREE_PORTS)
    answers = []
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}")
    client.start_stream(lambda result, error: answers.append(error))
    count = tritonclient.grpc.InferInput("turns", [], "INT64")
    count.set_data_from_numpy(np.array(300_000))
    client.async_stream_infer("slow", [count])
    time.sleep(0.5)
    assert not answers and runtime.end() == 0
    wait_until(lambda: len(answers) == 2, 10, "the answer, and the end of the stream")
    assert answers[0] is None and "the server ends" in str(answers[1])


def test_a_model_that_is_on_its_way_does_not_hold_it_up(serve, repository, tmp_path):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    runtime = serve(models)
    save_slow_to_load(tmp_path / "later")
    (tmp_path / "later/slow").rename(models / "slow")
    wait_until(lambda: call(f"{runtime.url}/v2/models/slow/ready").status == 503, 10, "the load")
    began = time.monotonic()
    assert runtime.end() == 0
    assert time.monotonic() - began < 10 and "a model was still being loaded" in runtime.log


def test_the_lines_to_try_are_no_reason_to_stay(start, tmp_path):
    """Nor do clients wait for them: all trials together end in time."""
    for name in ("a", "b", "c"):
        save_slow(tmp_path / "models", name)
    process, began = start("serve", "--models", tmp_path / "models", *ON_FREE_PORTS), time.monotonic()
    assert process.end() == 0
    assert time.monotonic() - began < 5


def test_triton_readiness_need_not_be_strict(start, tmp_path):
    bad = tmp_path / "models/bad/1"
    bad.mkdir(parents=True)
    (bad / "model.onnx").write_bytes(b"no model")
    save_slow(tmp_path / "models")
    flags = ["serve", "--as", "tritonserver", f"--model-repository={tmp_path / 'models'}", "--http-port=0", "--grpc-port=0", "--metrics-port=0",
             "--exit-on-error=false"]  # fmt: skip
    assert call(start(*flags).url + "/v2/health/ready").status != 200
    lenient = start(*flags, "--strict-readiness=false")
    assert call(lenient.url + "/v2/health/ready").status == 200 and call(lenient.url + "/v2/models/slow/infer", turns(2)).status == 200


@pytest.mark.parametrize("settings, refused", [("dynamic_batching { }", 0), ("dynamic_batching { default_queue_policy { max_queue_size: 8 } }", 200)])
def test_a_queue_of_tritons_is_as_long_as_it_says_or_has_no_end(serve, tmp_path, settings, refused):
    save_slow(tmp_path / "models")
    (tmp_path / "models/slow/config.pbtxt").write_text(f'backend: "onnxruntime" instance_group {{ count: 1 }} {settings}\n')
    runtime = serve(tmp_path / "models")
    url = f"{runtime.url}/v2/models/slow/infer"
    with concurrent.futures.ThreadPoolExecutor(400) as pool:
        holder = pool.submit(call, url, turns(600_000))
        time.sleep(0.2)
        answers = [answer.result().status for answer in [pool.submit(call, url, turns(1)) for _ in range(399)]]
        assert holder.result().status == 200
    assert answers.count(200) + answers.count(429) == 399 and answers.count(429) >= refused and (refused or set(answers) == {200})


# --- the file that says that it is ready ------------------------------------------------------------------------------------------------


def test_an_old_ready_file_goes_at_the_start_and_ones_own_at_the_end(start, tmp_path):
    left, rubbish = tmp_path / "left", tmp_path / "x.onnx"
    left.write_text('{"pid":1,"http":1}\n')
    rubbish.write_text("rubbish")
    assert serin("serve", rubbish, *ON_FREE_PORTS, "--ready-file", left).returncode == 1
    assert not left.exists(), "it does not stand for one that did not start"
    left.write_text("something else")
    assert serin("serve", rubbish, *ON_FREE_PORTS, "--ready-file", left).returncode == 1 and left.exists()
    runtime = start("serve", MODELS / "digits/1/model.onnx", *ON_FREE_PORTS)
    assert runtime.ready_file.exists() and runtime.end() == 0 and not runtime.ready_file.exists()
    other = start("serve", MODELS / "digits/1/model.onnx", *ON_FREE_PORTS)
    other.ready_file.write_text('{"pid":1}\n')
    assert other.end() == 0 and other.ready_file.exists(), "a successor's"


def test_a_routers_ready_file_goes_with_it(pair):
    router, _, _ = pair
    assert router.ready_file.exists() and router.end() == 0 and not router.ready_file.exists()
