"""What may go wrong with a device while models are served is made to happen: other models and clients must not notice, or be told; nothing may hang."""

import concurrent.futures
import contextlib
import ctypes
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import onnx
from onnx import TensorProto, helper

import serving
from results import FAILED, PASSED, SKIPPED, Case
from whole_models import DIGITS

WAIT_S = 20
CLIENTS, STORMS, ORDERS = 4, 8, 100
NEEDS = re.compile(r"needs (\d+) bytes \(weights (\d+), arena (\d+), staging (\d+) on the host\); .* has (\d+) free of (\d+)")
MOST_ELEMENTS = 1 << 34  # of a tensor
LEFT_BYTES = 1 << 30  # by a tenant: room for what libraries load later
ROW = np.load(DIGITS / "eval.npz")["pixels"][:1].tolist()
MODEL = DIGITS / "1/model.onnx"
ON_REQUEST = ("--admin-on-data-port", "--control", "explicit")
DEVICE_LOST = "0 700"  # cudaErrorIllegalAddress of device 0, in the emulator's words


def units(setting):
    return {f"faults/{run.__name__.replace('_', '-')}": lambda run=run: checked(run, setting) for run in (absent, limit, no_room, tenant, storm, lost)}


class Wrong(Exception):
    """What should not have been."""


class Skip(Exception):
    """Why it cannot be tried here."""


def checked(run, setting):
    name = run.__doc__.splitlines()[0]
    try:
        run(setting)
    except Skip as reason:
        return [Case("", name, SKIPPED, detail=str(reason))], {}
    except (Wrong, OSError, ValueError, RuntimeError, subprocess.TimeoutExpired) as wrong:
        return [Case("", name, FAILED, detail=f"{type(wrong).__name__}: {wrong}")], {}
    return [Case("", name, PASSED)], {}


def hold(condition, text):
    if not condition:
        raise Wrong(text)


# --- what is tried ------------------------------------------------------------------------------------------------------------------


def absent(setting):
    """A device that is not there is named, and `auto` is the CPU then."""
    command = [setting.serin, "serve", MODEL, "--port", "0", "--grpc-port", "0", "--metrics-port", "0", "--device", "cuda:99", *setting.device_flags[2:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    hold(done.returncode == 2 and "cuda:99" in done.stderr, f"exit code {done.returncode}: {done.stderr}")
    none = {"CUDA_VISIBLE_DEVICES": "-1", "SERIN_EMULATED_DEVICES": "0"}
    with serving.server(setting, repository(setting, "absent", digits=MODEL), device="auto", environment=none) as runtime:
        said = json.loads(serving.ask(f"{runtime.url}/v2/models/digits"))["parameters"]
        hold(said["device"] == "cpu" and said["device_why"], f"auto without a device: {said}")
        hold(infer(runtime, "digits")[0] == 200, "no answer by the CPU")


def limit(setting):
    """A model keeps to its limit, and what it was said to need is what it takes, to the byte."""
    folder = repository(setting, "limit", digits=MODEL, other=MODEL)
    (folder / "models/other/serin.yaml").write_text("gpu_mem_limit: 1\n")
    with serving.server(setting, folder) as runtime:
        status, said = infer(runtime, "other")
        needed = re.search(r"needs (\d+) bytes .* it may hold 1 of ", said if isinstance(said, str) else "")
        hold(status == 503 and needed, f"{status} {said}")
        metrics = serving.ask(f"{runtime.metrics}/metrics").decode()
        held = re.search(r'^serin_model_device_bytes\{.*model="digits".*\} (\S+)$', metrics, re.M)
        hold(held and int(float(held[1])) == int(needed[1]), f"it needs {needed[1]} bytes, the other copy holds {held and held[1]}")


def no_room(setting):
    """A model that no device holds is refused with the numbers before anything is taken, the others are served."""
    folder = repository(setting, "no_room", digits=MODEL)
    huge = folder / "models/huge/1/model.onnx"
    huge.parent.mkdir(parents=True)
    onnx.save(of_rows_of(MOST_ELEMENTS // 32), huge)  # of 32 rows: 192 GiB on their way
    with serving.server(setting, folder, environment={"SERIN_EMULATED_MEMORY": str(16 << 30)}) as runtime:
        numbers_of(infer(runtime, "huge", [[1.0]]))
        hold(infer(runtime, "digits")[0] == 200, "the other model is not served")


def tenant(setting):
    """Memory that another process holds is not there: the load is refused, what is loaded goes on, and there is room once that process ends."""
    with contextlib.ExitStack() as held:
        folder = repository(setting, "tenant", digits=MODEL)
        runtime = held.enter_context(serving.server(setting, folder, flags=ON_REQUEST))
        loaded(order(runtime, "digits", "load"))
        with tenancy() as left:
            wide = folder / "models/wide/1/model.onnx"
            wide.parent.mkdir(parents=True)
            onnx.save(of_rows_of(max(left, LEFT_BYTES) // 32), wide)  # of 32 rows, 4 bytes each
            needed, free = numbers_of(order(runtime, "wide", "load"))
            hold(free < needed and free <= 2 * max(left, LEFT_BYTES), f"{free} bytes are free, the tenant left {left}")
            hold(infer(runtime, "digits")[0] == 200, "the other model is not served")
        loaded(order(runtime, "wide", "load"))
        hold(infer(runtime, "wide", [[1.0]])[0] == 200, "the model is not served")


def storm(setting):
    """100 loads and unloads of one model at once, under traffic for another one."""
    with serving.server(setting, repository(setting, "storm", digits=MODEL, other=MODEL), flags=ON_REQUEST) as runtime:
        loaded(order(runtime, "digits", "load"))
        with Load(runtime) as load, concurrent.futures.ThreadPoolExecutor(STORMS) as pool:
            for answer in pool.map(lambda i: order(runtime, "other", "unload" if i % 2 else "load"), range(ORDERS)):
                loaded(answer)
        hold(set(load.statuses) == {200}, f"the other model's clients: {load.failures}")
        loaded(order(runtime, "other", "load"))
        hold(infer(runtime, "other")[1] == infer(runtime, "digits")[1], "two copies of a model answer differently")


def lost(setting):
    """A kernel that writes where nothing is: clients get 503, liveness ends, the process ends with 1, nothing hangs."""
    folder = repository(setting, "lost", digits=MODEL)
    trigger = folder / "fault"
    environment = {"LD_PRELOAD": str(setting.fault), "SERIN_FAULT_FILE": str(trigger), "SERIN_EMULATED_FAULT": str(trigger)}
    with serving.server(setting, folder, environment=environment) as runtime:
        with Load(runtime) as load:
            until(lambda: len(load.statuses) > 100, "traffic")
            staged = folder / "staged"
            staged.write_text(DEVICE_LOST)
            staged.rename(trigger)
            until(lambda: 503 in load.statuses, "the first 503")
            first, count = load.statuses.index(503), len(load.statuses)
            until(lambda: len(load.statuses) > count + 100, "further answers")
        late = load.statuses[first:].count(200)
        hold(set(load.statuses[:first]) == {200} and set(load.statuses[first:]) <= {200, 503}, f"answers: {load.failures}")
        hold(late <= CLIENTS, f"{late} answers of a device that was lost")
        hold(any("lost" in text for text in load.failures), f"nobody says that it is lost: {load.failures}")
        hold(status_of(f"{runtime.url}/v2/health/live") == 503, "it is still live")
        runtime.process.terminate()
        hold(runtime.process.wait(WAIT_S) == 1, f"exit code {runtime.process.returncode}")


# --- with what ----------------------------------------------------------------------------------------------------------------------


def repository(setting, unit, **models):
    return serving.repository(setting, f"faults/{unit}", models)


def of_rows_of(elements):
    """A model of [batch, 1] that needs thrice `elements` f32 for a row on its way, and answers [batch, 1]."""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1])  # noqa: E731
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], end=1), helper.make_node("Concat", ["shape", "elements"], ["wide"], axis=0),
        helper.make_node("Expand", ["x", "wide"], ["row"]), helper.make_node("CumSum", ["row", "axis"], ["sums"]),
        helper.make_node("CumSum", ["row", "axis"], ["from_behind"], reverse=1), helper.make_node("Add", ["sums", "from_behind"], ["total"]),
        helper.make_node("ReduceMax", ["total", "axes"], ["y"], keepdims=1),
    ]
    constants = [("elements", [elements]), ("axes", [1])]
    initializers = [helper.make_tensor(name, TensorProto.INT64, [1], values) for name, values in constants]
    initializers.append(helper.make_tensor("axis", TensorProto.INT64, [], [1]))
    graph = helper.make_graph(nodes, "wide", [value("x")], [value("y")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def infer(runtime, model, rows=None):
    """The status, and the answer's first output or what was said instead."""
    body = {"inputs": [{"name": "pixels" if rows is None else "x", "datatype": "FP32", "shape": [1, 64 if rows is None else 1],
                                 "data": ROW if rows is None else rows}]}
    try:
        return 200, json.loads(serving.ask(f"{runtime.url}/v2/models/{model}/infer", json.dumps(body)))["outputs"][0]["data"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def numbers_of(answer):
    """What a model needs and what is free; it must have been refused with both."""
    status, said = answer
    numbers = NEEDS.search(said)
    hold(status != 200 and numbers, f"{status} {said}")
    needed, weights, arena, _, free, capacity = map(int, numbers.groups())
    hold(needed == weights + arena and needed > free and free <= capacity, said)
    return needed, free


def order(runtime, model, what):
    """The status, and what was said."""
    try:
        return 200, serving.ask(f"{runtime.url}/v2/repository/models/{model}/{what}", "{}").decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def loaded(answer):
    hold(answer[0] == 200, f"a load or an unload: {answer}")


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=WAIT_S) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def until(condition, what):
    end = time.monotonic() + WAIT_S
    while not condition():
        hold(time.monotonic() < end, f"not within {WAIT_S} s: {what}")
        time.sleep(0.05)


class Load:
    """Clients of `digits` that ask without a pause until the end."""

    def __init__(self, runtime):
        self.statuses, self.failures, self.ended = [], [], threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(runtime,), daemon=True) for _ in range(CLIENTS)]

    def _ask(self, runtime):
        while not self.ended.is_set():
            try:
                status, said = infer(runtime, "digits")
            except OSError as error:
                status, said = 0, str(error)
            self.statuses.append(status)
            if status != 200 and len(self.failures) < 5:
                self.failures.append(said)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(WAIT_S)
        hold(not any(thread.is_alive() for thread in self.threads), "a request hangs")


@contextlib.contextmanager
def tenancy():
    """Takes all but LEFT_BYTES of the first device's memory, as another process would; yields how much is left."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Skip(f"no other process can take a device's memory here: {error}") from error

    def asked(name, *arguments):
        status = getattr(driver, name)(*arguments)
        hold(status == 0, f"the tenant's {name}: CUDA error {status}")

    device, context = ctypes.c_int(), ctypes.c_void_p()
    free, total, memory = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
    asked("cuInit", 0)
    asked("cuDeviceGet", ctypes.byref(device), 0)
    asked("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        asked("cuCtxSetCurrent", context)
        asked("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        asked("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(free.value - LEFT_BYTES))
        asked("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        yield free.value
    finally:
        if memory.value:
            driver.cuMemFree_v2(memory)
        driver.cuCtxSetCurrent(None)
        driver.cuDevicePrimaryCtxRelease_v2(device)
