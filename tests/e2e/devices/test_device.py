"""`serin serve` on devices: emulated ones (tests/gpu/emulator), which can be as many, as small and as broken as a test wants."""

import concurrent.futures
import json
import pathlib
import re
import shutil
import threading

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from conftest import MODELS, ON_FREE_PORTS, SERIN, call, infer_body, serin, wait_until

PLUGIN = SERIN.parent / "tests" / "libserin_cuda_emulated.so"
FAKE_NVML = SERIN.parent / "tests" / "fake_nvml"
DIGITS = MODELS / "digits/1/model.onnx"
ON_CUDA = ["--device", "cuda", "--cuda-plugin", PLUGIN]
ILLEGAL_ADDRESS, UNCORRECTABLE, HANGS, REFUSES = 700, 214, -1, -2  # cudaError_t; the emulator's own
ZEROS = infer_body([[0.0] * 64])
ROWS = np.load(MODELS / "digits/eval.npz")["pixels"][:24]


def digits(repository, settings="max_batch: 4\n", versions=(1,)):
    models = repository({f"digits/{number}": DIGITS for number in versions})
    (models / "digits/serin.yaml").write_text(settings)
    return models


def ask(runtime, rows, model="digits"):
    return call(f"{runtime.url}/v2/models/{model}/infer", infer_body(np.asarray(rows).tolist()))


def scores(answer):
    output = answer.json["outputs"][0]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def parameters(runtime, model="digits"):
    return call(f"{runtime.url}/v2/models/{model}").json["parameters"]


class Load:
    """Clients that ask without a pause until the end; every answer's status, in the order in which they came."""

    def __init__(self, runtime, clients=4):
        self.statuses, self.errors, self.stop = [], [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(runtime,)) for _ in range(clients)]

    def run(self, runtime):
        while not self.stop.is_set():
            answer = ask(runtime, ROWS[:1])
            self.statuses.append(answer.status)
            if answer.status != 200:
                self.errors.append(answer.error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: len(self.statuses) > 20, 20, "traffic")
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a request hangs"

    def wait_for(self, more):
        count = len(self.statuses)
        wait_until(lambda: len(self.statuses) >= count + more, 30, f"{more} more answers")


# --- which device -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_the_same_repository_on_a_device(serve, repository, emulated, device):
    models = digits(repository)
    there = serve(models, "--device", device, "--cuda-plugin", PLUGIN, env=emulated().env)
    here = serve(models)
    for rows in (1, 2, 3, 4):
        np.testing.assert_allclose(scores(ask(there, ROWS[:rows])), scores(ask(here, ROWS[:rows])), rtol=1e-4, atol=1e-6)
    assert parameters(there)["device"] == "cuda" and "emulated (GPU-" in parameters(there)["device_why"]
    assert parameters(here)["device"] == "cpu"
    assert f"device {device}: emulated" in there.log


def test_auto_without_a_device_is_the_cpu_and_says_why(serve, repository):
    runtime = serve(digits(repository), "--device", "auto", "--cuda-plugin", "/nowhere/libserin_cuda.so")
    assert parameters(runtime)["device"] == "cpu"
    assert "/nowhere/libserin_cuda.so" in parameters(runtime)["device_why"]
    assert "auto: no cuda: /nowhere/libserin_cuda.so" in runtime.log
    assert ask(runtime, ROWS[:1]).status == 200


def test_an_old_driver_is_named_with_both_versions(serve, repository, emulated):
    env = emulated().env | {"SERIN_EMULATED_DRIVER": "12040"}
    said = "the NVIDIA driver is too old: it runs CUDA 12.4 at most, and this build needs CUDA 13.0; install driver 580 or newer"
    runtime = serve(digits(repository), "--device", "auto", "--cuda-plugin", PLUGIN, env=env)
    assert parameters(runtime)["device"] == "cpu" and said in parameters(runtime)["device_why"]
    assert said in runtime.log and ask(runtime, ROWS[:1]).status == 200
    refused = serin("serve", "--models", MODELS, *ON_FREE_PORTS, *ON_CUDA, env=env)
    assert refused.returncode == 2 and said in refused.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments, named", [
    (["--device", "cuda", "--cuda-plugin", "/nowhere/x.so"], "/nowhere/x.so"), (["--device", "cuda:7", "--cuda-plugin", PLUGIN], "cuda:7"),
    (["--device", "gpu"], "cuda"), (["--device", "cuda:-1"], "cuda:-1"),
])
def test_c6_a_device_that_is_not_there_is_named(arguments, named):
    done = serin("serve", "--models", MODELS, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, *arguments)
    assert done.returncode == 2 and named in done.stderr.splitlines()[-1]


def test_c6_a_model_whose_device_is_not_there_fails_alone(serve, repository, emulated):
    models = repository({"digits/1": DIGITS, "other/1": DIGITS, "third/1": DIGITS})
    (models / "other/serin.yaml").write_text("device: cuda:2\n")
    (models / "third/serin.yaml").write_text("device: cuda:1\n")
    runtime = serve(models, "--cuda-plugin", PLUGIN, env=emulated(devices=2).env)
    broken = ask(runtime, ROWS[:1], "other")
    assert broken.status == 503 and "device cuda:2: the driver shows 2" in broken.error
    assert ask(runtime, ROWS[:1], "digits").status == 200 and parameters(runtime, "digits")["device"] == "cpu"
    assert ask(runtime, ROWS[:1], "third").status == 200 and parameters(runtime, "third")["device_why"].endswith("000001)")


def test_only_devices_that_a_model_may_run_on_are_opened(serve, repository, emulated, tmp_path):
    """On a real one a context and the libraries' handles take hundreds of megabytes."""
    contexts = tmp_path / "contexts"
    machine = emulated(devices=3)
    runtime = serve(digits(repository, "device: cuda:1\n"), "--cuda-plugin", PLUGIN,
                    env={**machine.env, "SERIN_EMULATED_CONTEXTS": str(contexts), "LD_LIBRARY_PATH": str(FAKE_NVML)})
    assert ask(runtime, ROWS[:4]).status == 200
    models = pathlib.Path(repository_of(runtime))
    shutil.copytree(models / "digits", models / "other")
    wait_until(lambda: ask(runtime, ROWS[:1], "other").status == 200, 20, "the second model")
    for name in ("other", "digits"):
        shutil.rmtree(models / name)
        wait_until(lambda name=name: ask(runtime, ROWS[:1], name).status == 404, 20, "its end")
    assert runtime.metrics().count("\nserin_device_lost{") == 3 and runtime.metrics().count("\nnv_gpu_memory_used_bytes{") == 2
    assert contexts.read_text() == "1\n"
    assert runtime.end() == 0
    assert contexts.read_text() == "1\n", "what is given back is given to the device that had it"


def test_no_driver_is_loaded_for_models_of_the_cpu(serve, repository, emulated):
    runtime = serve(digits(repository), "--cuda-plugin", PLUGIN, env=emulated().env)
    with open(f"/proc/{runtime.process.pid}/maps", encoding="utf-8") as maps:
        assert PLUGIN.name not in maps.read()


def test_a_model_that_no_device_runs_any_of_is_served_by_the_cpu(serve, repository, emulated, tmp_path):
    """How often the loop turns is data, so the whole is interpreted."""
    x, n = onnx.helper.make_tensor_value_info("x", 1, [2]), onnx.helper.make_tensor_value_info("n", 7, [])
    body = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["c"], ["d"]), onnx.helper.make_node("Add", ["v", "v"], ["w"])], "body",
                                  [onnx.helper.make_tensor_value_info("i", 7, []), onnx.helper.make_tensor_value_info("c", 9, []),
                                   onnx.helper.make_tensor_value_info("v", 1, [2])],
                                  [onnx.helper.make_tensor_value_info("d", 9, []), onnx.helper.make_tensor_value_info("w", 1, [2])])
    loop = onnx.helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    graph = onnx.helper.make_graph([loop], "g", [n, x], [onnx.helper.make_tensor_value_info("y", 1, [2])])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "loop.onnx")
    runtime = serve(repository({"loop/1": tmp_path / "loop.onnx"}), *ON_CUDA, env=emulated().env)
    assert parameters(runtime, "loop")["device"] == "cpu" and parameters(runtime, "loop")["device_why"]
    answer = call(runtime.url + "/v2/models/loop/infer", {"inputs": [{"name": "n", "datatype": "INT64", "shape": [], "data": [3]},
                                                                     {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
    assert answer.json["outputs"][0]["data"] == [8, 16]


# --- batches ------------------------------------------------------------------------------------------------------------------------


def test_what_waits_rides_together_from_the_first_request_on(serve, repository, emulated):
    """Every batch size is recorded and measured before a client comes: the queue that forms behind one instance is taken at once."""
    runtime = serve(digits(repository, "max_batch: 8\ninstances: 1\n"), *ON_CUDA, env=emulated().env)
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda row: ask(runtime, [row]), ROWS))
    assert {answer.status for answer in answers} == {200}
    together = np.concatenate([scores(answer) for answer in answers])
    np.testing.assert_allclose(together, scores_on_cpu(serve, repository_of(runtime)), rtol=1e-4, atol=1e-6)
    assert runtime.metric("nv_inference_count") == 24
    assert runtime.metric("nv_inference_exec_count") < 24


def repository_of(runtime):
    return runtime.process.args[runtime.process.args.index("--models") + 1]


def scores_on_cpu(serve, models):
    runtime = serve(models)
    return np.concatenate([scores(ask(runtime, ROWS[i:i + 4])) for i in range(0, len(ROWS), 4)])


@pytest.fixture
def encoder(tmp_path):
    """One head of BERT, as exporters write it: what the mask hides gets the lowest float added to its score."""
    def tensor(name, array):
        return onnx.numpy_helper.from_array(np.asarray(array), name)
    random = np.random.default_rng(1)
    weights = [tensor(name, random.standard_normal(shape).astype(np.float32)) for name, shape in
               {"words": (30, 8), "wq": (8, 8), "wk": (8, 8), "wv": (8, 8)}.items()]
    constants = [tensor("one", np.float32(1)), tensor("low", np.finfo(np.float32).min), tensor("axis1", np.array([1]))]
    make = onnx.helper.make_node
    nodes = [make("Unsqueeze", ["mask", "axis1"], ["wide"]), make("Cast", ["wide"], ["seen"], to=1), make("Sub", ["one", "seen"], ["hidden"]),
             make("Mul", ["hidden", "low"], ["bias"]), make("Gather", ["words", "ids"], ["h"]), make("MatMul", ["h", "wq"], ["q"]),
             make("MatMul", ["h", "wk"], ["k"]), make("MatMul", ["h", "wv"], ["v"]), make("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
             make("MatMul", ["q", "kt"], ["products"]), make("Add", ["products", "bias"], ["scores"]), make("Softmax", ["scores"], ["p"], axis=-1),
             make("MatMul", ["p", "v"], ["y"])]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [value("ids", 7, ["batch", "seq"]), value("mask", 7, ["batch", "seq"])],
                                   [value("y", 1, ["batch", "seq", 8])], weights + constants)
    path = tmp_path / "encoder.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("where", [ON_CUDA, []], ids=["cuda", "cpu"])
def test_lengths_between_buckets_run_as_the_next_one_and_answer_the_same(serve, repository, emulated, encoder, where):
    models = repository({"encoder/1": encoder})
    exact = serve(models)
    (models / "encoder/serin.yaml").write_text("max_batch: 4\nbuckets: {seq: [4, 8]}\ninstances: 1\n")
    runtime = serve(models, *where, env=emulated().env)
    assert "sizes of 'seq' are rounded up" in runtime.log

    def request(ids, mask):
        return {"inputs": [{"name": name, "datatype": "INT64", "shape": list(np.shape(data)), "data": np.ravel(data).tolist()}
                           for name, data in (("ids", ids), ("mask", mask))]}

    random = np.random.default_rng(2)
    requests = []
    for length in (1, 3, 4, 5, 8, 11):  # the last one is longer than all: a plan of its own
        for rows in (1, 2):
            mask = (random.random((rows, length)) < 0.7).astype(int)
            mask[:, 0] = 1
            requests.append(request(random.integers(0, 30, (rows, length)), mask))
    requests.append(request([[3, 4, 5]], [[0, 0, 0]]))  # where nothing counts, padding would count as much: it runs alone
    with concurrent.futures.ThreadPoolExecutor(13) as pool:
        answers = list(pool.map(lambda body: call(runtime.url + "/v2/models/encoder/infer", body), requests))
    for body, answer in zip(requests, answers):
        assert answer.status == 200, answer.body
        np.testing.assert_allclose(scores(answer), scores(call(exact.url + "/v2/models/encoder/infer", body)), rtol=1e-4, atol=1e-6)


# --- memory -------------------------------------------------------------------------------------------------------------------------


NEEDS = re.compile(r"needs (\d+) bytes \(weights (\d+), arena (\d+), staging (\d+) on the host\); emulated has (\d+) free of (\d+)")


def test_m13_what_does_not_fit_is_refused_with_the_numbers_and_disturbs_nobody(serve, repository, emulated):
    probe = serve(digits(repository), *ON_CUDA, env=emulated().env)
    needed = int(probe.metric("serin_model_device_bytes"))
    models = probe.log_file.parent / "models"
    shutil.copytree(models / "digits", models / "second")
    memory = needed + needed // 2
    runtime = serve(models, *ON_CUDA, env=emulated(memory=memory).env)
    assert ask(runtime, ROWS[:1], "digits").status == 200
    refused = ask(runtime, ROWS[:1], "second")
    assert refused.status == 503
    total, weights, arena, staging, free, capacity = map(int, NEEDS.search(refused.error).groups())
    assert total == weights + arena == needed and staging > 0
    assert (free, capacity) == (memory - needed, memory), "planned is allocated, to the byte"
    assert "model 'second' version 1" in runtime.log

    exact = serve(models, *ON_CUDA, env=emulated(memory=2 * needed).env)
    assert ask(exact, ROWS[:1], "digits").status == ask(exact, ROWS[:1], "second").status == 200


def test_m16_loads_that_come_and_go_while_memory_is_short(serve, repository, emulated):
    probe = serve(digits(repository), *ON_CUDA, env=emulated().env)
    needed = int(probe.metric("serin_model_device_bytes"))
    models = probe.log_file.parent / "models"
    runtime = serve(models, *ON_CUDA, env=emulated(memory=2 * needed).env)
    others = ("a", "b", "c")

    def states():
        answers = [call(f"{runtime.url}/v2/models/{name}/ready") for name in others]
        return ["ready" if answer.status == 200 else "refused" if "needs" in answer.headers.get("x-serin-reason", "") else "" for answer in answers]

    with Load(runtime, clients=2) as load:
        for _ in range(4):
            for name in others:  # there is room for one of them
                shutil.copytree(models / "digits", models / name)
            wait_until(lambda: all(states()), 20, "all tried")
            assert sorted(states()) == ["ready", "refused", "refused"]
            for name in others:
                shutil.rmtree(models / name)
            wait_until(lambda: not any(states()), 20, "all gone")
    assert set(load.statuses) == {200}, load.errors[:3]


def test_a_model_keeps_to_its_limit(serve, repository, emulated):
    runtime = serve(digits(repository, "max_batch: 4\ngpu_mem_limit: 12000\n"), *ON_CUDA, env=emulated().env)
    refused = ask(runtime, ROWS[:1])
    assert refused.status == 503 and re.search(r"needs \d+ bytes \(.*\); it may hold 12000 of emulated and holds 0", refused.error)


# --- faults -------------------------------------------------------------------------------------------------------------------------


def test_f8_a_refusal_fails_no_request_of_a_batch_and_loses_no_device(serve, repository, emulated):
    """The driver had no memory for a launch, say: each request of that batch is run alone. A request that is alone gets an error that says so."""
    machine = emulated()
    runtime = serve(digits(repository, "max_batch: 4\ninstances: 1\nmax_queue_delay: 9s\n"), *ON_CUDA, env=machine.env)
    machine.fail(0, f"{REFUSES} 1")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # the batch begins once it is full
        answers = list(pool.map(lambda row: ask(runtime, [row]), ROWS[:4]))
    assert [answer.status for answer in answers] == [200] * 4, answers[0].error
    assert runtime.metric("nv_inference_exec_count") >= 4, "nothing was refused"
    machine.fail(0, f"{REFUSES} 2")
    alone = ask(runtime, ROWS[:4])
    assert alone.status == 500 and "the device refused the run: cudaErrorMemoryAllocation" in alone.error
    assert "lost" not in alone.error
    assert ask(runtime, ROWS[:4]).status == 200 and call(runtime.url + "/v2/health/live").status == 200
    assert runtime.metric("serin_device_lost") == 0


@pytest.mark.parametrize("error", [ILLEGAL_ADDRESS, UNCORRECTABLE])
def test_f8_a_lost_device_answers_503_and_ends_liveness(serve, repository, emulated, error):
    machine = emulated()
    models = digits(repository)
    shutil.copytree(models / "digits", models / "other")
    (models / "other/serin.yaml").write_text("device: cpu\n")
    runtime = serve(models, *ON_CUDA, env=machine.env)
    assert call(runtime.url + "/v2/health/live").json == {"live": True}
    with Load(runtime) as load:
        machine.fail(0, error)
        wait_until(lambda: 503 in load.statuses, 20, "the first 503")
        first = load.statuses.index(503)
        load.wait_for(40)
    assert set(load.statuses[:first]) == {200}
    assert set(load.statuses[first:]) <= {200, 503}
    assert load.statuses[first:].count(200) <= len(load.threads), "but for answers that were on their way"
    assert all("lost" in text and "cudaError" in text for text in load.errors)

    live = call(runtime.url + "/v2/health/live")
    assert live.status == 503 and live.json == {"live": False}
    assert "model 'digits' version 1" in live.headers["x-serin-reason"] and "lost" in live.headers["x-serin-reason"]
    assert call(runtime.url + "/v2/health/ready").status == 503
    assert call(runtime.url + "/v2/models/digits/ready").status == 503
    assert call(runtime.url + "/v2/models/other/ready").status == 200
    assert ask(runtime, ROWS[:1], "other").status == 200, "what needs no device goes on until the supervisor comes"
    assert runtime.metric("serin_device_lost") == 1
    assert runtime.end() == 1  # M16: not 0


def test_f8_in_flight_requests_of_a_lost_device_are_not_tried_elsewhere_and_the_others_go_on(serve, repository, emulated):
    machine = emulated(devices=2)
    runtime = serve(digits(repository), *ON_CUDA, env=machine.env)
    with Load(runtime) as load:
        machine.fail(1)
        wait_until(lambda: 503 in load.statuses, 20, "the first 503")
        load.wait_for(100)
    lost = load.statuses.count(503)
    assert 1 <= lost <= len(load.threads), "what the two instances there were at: no client asks twice at a time"
    assert set(load.statuses[-50:]) == {200}
    assert call(runtime.url + "/v2/health/live").status == call(runtime.url + "/v2/health/ready").status == 200
    assert runtime.metric("serin_device_lost") == 1
    machine.fail(0)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "the other one lost")
    assert call(runtime.url + "/v2/health/live").status == 503
    assert runtime.end() == 1


def test_f8_a_model_that_has_lost_its_only_device_is_loaded_on_another_once(serve, repository, emulated):
    machine = emulated(devices=2)
    runtime = serve(digits(repository, "max_batch: 2\ninstances: 1\n"), *ON_CUDA, env=machine.env)
    machine.fail(0)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "the device lost")
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 200, 20, "the model on the other device")
    assert parameters(runtime)["device_why"].endswith("000001)") and call(runtime.url + "/v2/health/live").status == 200
    machine.fail(1)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "that one lost, too")
    assert call(runtime.url + "/v2/health/live").status == 503
    assert runtime.end() == 1


def test_f8_a_device_that_is_lost_before_the_start_is_named(repository, emulated):
    machine = emulated()
    machine.fail(0)
    done = serin("serve", "--models", digits(repository), "--port", 0, "--grpc-port", 0, "--metrics-port", 0, *ON_CUDA, env=machine.env)
    assert done.returncode == 2 and "cudaErrorIllegalAddress" in done.stderr


def test_f8_a_model_that_moves_costs_no_liveness(start, repository, emulated):
    """A restart would take along what runs well, and the devices that are left."""
    machine = emulated(devices=2)
    models = digits(repository, "max_batch: 2\ninstances: 1\n")
    shutil.copytree(models / "digits", models / "other")
    (models / "other/serin.yaml").write_text("device: cpu\n")
    runtime = start("serve", "--models", models, *ON_FREE_PORTS, "--poll-seconds", 3, *ON_CUDA, env=machine.env)
    machine.fail(0)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "the device lost")
    assert call(runtime.url + "/v2/models/digits/ready").status == 503
    assert call(runtime.url + "/v2/health/live").status == call(runtime.url + "/v2/health/ready").status == 200
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 200, 20, "the model on the other device")
    machine.fail(1)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "that one lost, too")
    assert call(runtime.url + "/v2/health/live").status == 503
    assert runtime.end() == 1


def test_m16_a_server_that_nobody_restarts_ends_by_itself(serve, repository, emulated):
    machine = emulated()
    runtime = serve(digits(repository), *ON_CUDA, "--exit-when-lost", 1, env=machine.env)
    machine.fail(0)
    wait_until(lambda: ask(runtime, ROWS[:1]).status == 503, 20, "the device lost")
    assert runtime.process.wait(40) == 1
    assert "that is the end (--exit-when-lost)" in runtime.log and "ended" in runtime.log.splitlines()[-1]


@pytest.mark.parametrize("by_itself", [True, False])
def test_f8_a_device_that_does_not_answer_is_lost_and_the_process_ends(serve, repository, emulated, by_itself):
    machine = emulated()
    flags = ["--exit-when-lost", 1 if by_itself else 0, "--device-timeout", 1]
    runtime = serve(digits(repository), *ON_CUDA, *flags, env=machine.env)
    machine.fail(0, HANGS)

    def hangs():
        with pytest.raises(OSError):  # nobody can answer it; it ends with the process
            ask(runtime, ROWS[:1])

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(hangs) for _ in range(2)]
        wait_until(lambda: "is lost: what it was given to do has not ended for 1000 ms" in runtime.log, 20, "the device lost")
        live = call(runtime.url + "/v2/health/live")
        assert live.status == 503 and "has not ended" in live.headers["x-serin-reason"]
        assert ask(runtime, ROWS[:1]).status == 503
        assert (runtime.process.wait(40) if by_itself else runtime.end()) == 1
        for each in asked:
            each.result(10)


def test_f8_models_leave_a_device_that_does_not_answer(serve, repository, emulated):
    """What they hold there is not given back, for that would wait, too."""
    machine = emulated(devices=2)
    runtime = serve(digits(repository, "max_batch: 2\ninstances: 1\n"), *ON_CUDA, "--device-timeout", 1, env=machine.env)
    machine.fail(0, HANGS)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: pytest.raises(OSError, ask, runtime, ROWS[:1]))
        wait_until(lambda: "has not ended for 1000 ms" in runtime.log, 20, "the device lost")
        wait_until(lambda: ask(runtime, ROWS[:1]).status == 200, 20, "the model on the other device")
        assert call(runtime.url + "/v2/health/live").status == 200
        assert runtime.end() == 0


# --- metrics ------------------------------------------------------------------------------------------------------------------------


def test_what_the_driver_says_of_devices_has_the_names_that_dashboards_know(serve, repository, emulated):
    runtime = serve(digits(repository), *ON_CUDA, env={**emulated(devices=2).env, "LD_LIBRARY_PATH": str(FAKE_NVML)})
    first, second = (f"GPU-00000000-0000-0000-0000-00000000000{i}" for i in (0, 1))
    expected = {"nv_gpu_utilization": (0.37, 0), "nv_gpu_memory_total_bytes": (150754820096,) * 2, "nv_gpu_memory_used_bytes": (1000, 1001),
                "nv_gpu_temperature_celsius": (41, 42), "nv_gpu_power_usage": (123.456, None), "nv_gpu_power_limit": (700, None)}
    for name, values in expected.items():
        for uuid, value in zip((first, second), values):
            assert (f'{name}{{gpu_uuid="{uuid}"}}' in runtime.metrics()) == (value is not None), name
            if value is not None:
                assert runtime.metric(name, gpu_uuid=uuid) == pytest.approx(value), name


def test_energy_is_counted_in_joules_from_the_start(serve, repository, emulated):
    runtime = serve(digits(repository), *ON_CUDA, env={**emulated(devices=2).env, "LD_LIBRARY_PATH": str(FAKE_NVML)})
    assert "# TYPE nv_energy_consumption counter\n" in runtime.metrics()
    begin = runtime.metric("nv_energy_consumption")
    wait_until(lambda: runtime.metric("nv_energy_consumption") >= begin + 5, 20, "energy")  # 2.5 more whenever it is read, which is once a second
    assert runtime.metric("nv_energy_consumption") < 1000, "millijoules, or those since the driver was loaded"
    assert runtime.metrics().count("\nnv_energy_consumption{") == 1, "the second device does not tell"


def test_of_a_slice_of_a_device_there_is_nothing_that_belongs_to_the_whole_one(serve, repository, emulated, tmp_path):
    code = PLUGIN.read_bytes()
    assert b"\0emulated\0" in code
    sliced = tmp_path / PLUGIN.name  # its devices are MIG slices, for so their name says
    sliced.write_bytes(code.replace(b"\0emulated\0", b"\0X MIG 1g\0"))
    runtime = serve(digits(repository), "--device", "cuda", "--cuda-plugin", sliced, env={**emulated(devices=3).env, "LD_LIBRARY_PATH": str(FAKE_NVML)})
    found = dict(re.findall(r"^(nv_(?:gpu|energy)_.*) (\S+)$", runtime.metrics(), re.MULTILINE))
    first, second, unknown = (f"MIG-00000000-0000-0000-0000-00000000000{i}" for i in (0, 1, 2))
    assert {name: float(value) for name, value in found.items()} == {
        f'nv_gpu_memory_total_bytes{{gpu_uuid="{first}"}}': 18253611008, f'nv_gpu_memory_total_bytes{{gpu_uuid="{second}"}}': 18253611008,
        f'nv_gpu_memory_used_bytes{{gpu_uuid="{first}"}}': 500, f'nv_gpu_memory_used_bytes{{gpu_uuid="{second}"}}': 501}
    assert runtime.log.count(f"no nv_gpu_* metrics of {unknown}: NVML knows no such device") == 1


def test_without_the_drivers_library_there_are_no_such_metrics_and_one_line_says_so(serve, repository, emulated):
    runtime = serve(digits(repository), *ON_CUDA, env=emulated().env)
    assert "nv_gpu_" not in runtime.metrics()
    assert runtime.log.count("no nv_gpu_* metrics: libnvidia-ml.so.1") == 1


def test_inspect_says_what_runs_on_the_host_and_what_is_copied(emulated):
    done = serin("inspect", DIGITS, *ON_CUDA, env=emulated().env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"on the device: \d+ of \d+ steps, \d+ bytes", done.stdout)
    report = json.loads(serin("inspect", DIGITS, "--json", *ON_CUDA, env=emulated().env).stdout)["device"]
    assert report["steps_there"] == report["steps"] and report["on_host"] == []
    assert [(copy["tensor"], copy["to"], copy["bytes"]) for copy in report["copies"]] == [("pixels", "device", 256), ("scores", "host", 40)]
