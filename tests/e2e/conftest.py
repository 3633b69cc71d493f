"""Real servers on loopback for the end-to-end tests: started on free ports, stopped by their own process ids."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir()]  # support/, and folders whose tests share functions
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build" / "serin"))
MODELS = ROOT / "models"
DATA = ROOT / "tests" / "data"
ON_FREE_PORTS = ["--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 0]  # and gone at once when told to end


def wait_until(condition, seconds=10, what="condition"):
    """Polls until condition() is true and returns its value; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds} s"
        time.sleep(0.02)


_claims = []  # kept until this process ends
_dice = random.SystemRandom()  # whatever a test seeds


def free_port():
    """A port that nobody else is given before a server binds it: none of those that the kernel gives to connections and to port 0, and claimed among all
    processes of tests on this machine by a name that goes with its process."""
    while True:
        port = _dice.randrange(20_000, 32_000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0serin-tests-port-{port}")
            for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
                with socket.socket(socket.AF_INET, kind) as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port


def resident_mb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


def call(url, body=None, headers=None, method=None, timeout=30, tls=None):
    """One HTTP request; an error status is an answer, too."""
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=tls) as response:
            return Answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


def run_client(script, *arguments):
    """What a script of support/ printed as JSON, which speaks with another server's own client (deploy/requirements-clients.txt)."""
    packages = os.pathsep.join(str(ROOT / ".deps" / name) for name in ("clients", "tensorflow"))
    command = [sys.executable, HERE / "support" / script, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, "PYTHONPATH": packages})
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


class Process:
    """A long-running serin command: its ports, its log, its end. `run_by`: a program that becomes it, and its flags."""

    def __init__(self, folder, command, *arguments, env=None, run_by=()):
        self.folder = pathlib.Path(folder)
        count = len(list(self.folder.glob(f"{command}-*.log")))
        self.ready_file = self.folder / f"{command}-{count}.ready"
        self.log_file = self.folder / f"{command}-{count}.log"
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([*run_by, SERIN, command, *map(str, arguments), "--ready-file", self.ready_file], stdout=log, stderr=log,
                                            env={**os.environ, **(env or {})})
        wait_until(lambda: self.ready_file.exists() or self.process.poll() is not None, 60, f"serin {command} ready")
        assert self.ready_file.exists(), f"serin {command} ended with {self.process.returncode}:\n{self.log}"
        self.ports = json.loads(self.ready_file.read_text())
        assert self.ports["pid"] == self.process.pid

    @property
    def log(self):
        return self.log_file.read_text(errors="replace")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['http']}"

    @property
    def admin(self):
        return f"http://127.0.0.1:{self.ports['admin']}"

    def metrics(self):
        return call(f"http://127.0.0.1:{self.ports.get('metrics', self.ports.get('admin'))}/metrics").body.decode()

    def metric(self, name, **labels):
        """Sum of the series of that name whose labels include these."""
        total = 0.0
        for line in self.metrics().splitlines():
            if line.startswith(name) and line[len(name)] in " {" and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def kill(self):
        """Part of a test; what a test is done with is ended by close()."""
        self.process.kill()
        self.process.wait()

    def end(self, timeout=40):
        """SIGTERM and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def close(self):
        """After the test: it still runs, and ends well. A sanitizer may have aborted it since its last answer, or find its leaks only now. What the test has
        killed or waited for, it has judged itself."""
        if self.process.returncode is not None:
            return
        died = self.process.poll() is not None
        self.process.send_signal(signal.SIGINT)  # beside end()'s: the second one cuts the drain time short
        try:
            code = self.end()
        finally:
            self.kill()
        assert not died and code == 0, f"{self.log_file.stem} {'had died with' if died else 'ended with'} {code}:\n{self.log[-5000:]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def start(tmp_path):
    """start("serve", "--models", ...): a ready Process, ended after the test."""
    with contextlib.ExitStack() as stack:
        def begin(command, *arguments, env=None):
            return stack.enter_context(Process(tmp_path, command, *arguments, env=env))
        yield begin


@pytest.fixture
def serve(start):
    """serve(folder): a runtime on free ports that polls its folder quickly."""
    def begin(models=MODELS, *arguments, env=None):
        return start("serve", "--models", models, *ON_FREE_PORTS, "--poll-seconds", 0.2, *arguments, env=env)
    return begin


@pytest.fixture(scope="module")
def start_once(tmp_path_factory):
    """start() of a Process that the tests of a file share: it is ended after the last of them."""
    with contextlib.ExitStack() as stack:
        def begin(command, *arguments, env=None):
            return stack.enter_context(Process(tmp_path_factory.mktemp(command), command, *arguments, env=env))
        yield begin


@pytest.fixture
def backend():
    """backend("2", error_rate=0.5): a fake runtime, gone after the test."""
    from backends import Backend

    with contextlib.ExitStack() as stack:
        yield lambda version="1", **options: stack.enter_context(Backend(version, **options))


@pytest.fixture
def grpc_backend():
    """grpc_backend("2", nan=True): the same of gRPC."""
    from grpc_backends import GrpcBackend

    with contextlib.ExitStack() as stack:
        yield lambda version="1", **options: stack.enter_context(GrpcBackend(version, **options))


@pytest.fixture
def channel():
    """channel(router): of gRPC, to its data port."""
    import grpc

    with contextlib.ExitStack() as stack:
        yield lambda router: stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{router.ports['http']}"))


@pytest.fixture
def route(tmp_path):
    """route(service(stable, canary)): a Router with that configuration, ended after the test."""
    from routers import Router, write_config

    with contextlib.ExitStack() as stack:
        def begin(*services, env=None, drain_seconds=0, **configuration):
            config = write_config(tmp_path, *services, **configuration)
            return stack.enter_context(Router(tmp_path, "route", "--drain-seconds", drain_seconds, "--config", config, env=env))
        yield begin


@pytest.fixture
def pair(route, backend):
    """(router, stable, canary): version 1 is stable, version 2 is well and gets nothing yet."""
    from routers import service

    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    return router, stable, canary


@pytest.fixture
def loop(tmp_path, tmp_path_factory, monkeypatch):
    """What `serin release` works with: a registry, a runtime for each slot, a router; version 1 of digits is in production."""
    from release_loop import Loop

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with contextlib.ExitStack() as stack:
        yield Loop(tmp_path, stack)


@pytest.fixture
def clients(loop):
    """Clients of the loop's router during a test: they must see no error."""
    from release_loop import Load

    with Load(loop.router.url) as load:
        yield load
        seen = load.end()
        assert seen["errors"] == 0 and seen["ok"] > 0, seen


@pytest.fixture
def receiver():
    """Somebody who is told by webhooks; gone after the test."""
    from receivers import Receiver

    with Receiver() as made:
        yield made


@pytest.fixture(scope="session")
def shared_runtime(tmp_path_factory):
    """One runtime with the repository of models/, for tests that only ask."""
    with Process(tmp_path_factory.mktemp("runtime"), "serve", "--models", MODELS, *ON_FREE_PORTS) as process:
        yield process


@pytest.fixture
def repository(tmp_path):
    """repository({"digits/1": path-of-a-model.onnx}): a fresh model repository."""
    def make(files):
        folder = tmp_path / "models"
        for name, source in files.items():
            (folder / name).mkdir(parents=True)
            shutil.copy(source, folder / name / "model.onnx")
        folder.mkdir(exist_ok=True)
        return folder
    return make


@pytest.fixture
def emulated(tmp_path):
    """The environment of so many devices, and fail(i, error): from now on everything on device i fails with that error
    (cudaError_t; 700: an illegal address)."""
    class Emulated:
        def __init__(self, devices=1, memory=None):
            self.file = tmp_path / "fault"
            self.env = {"SERIN_EMULATED_DEVICES": str(devices), "SERIN_EMULATED_FAULT": str(self.file)}
            if memory is not None:
                self.env["SERIN_EMULATED_MEMORY"] = str(memory)

        def fail(self, device, error=700):
            staged = self.file.with_suffix(".new")
            staged.write_text(f"{device} {error}\n")
            staged.rename(self.file)  # never seen half written
    return Emulated


def serin(*arguments, timeout=60, stdin=None, env=None, cwd=None):
    """Runs a command that ends by itself."""
    return subprocess.run([SERIN, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False, input=stdin,
                          env={**os.environ, **(env or {})}, cwd=cwd)


def infer_body(rows, name="pixels", **extra):
    """An inference request for a model like digits; rows is a list of lists."""
    data = [value for row in rows for value in row]
    return {"inputs": [{"name": name, "datatype": "FP32", "shape": [len(rows), len(rows[0])], "data": data}], **extra}
