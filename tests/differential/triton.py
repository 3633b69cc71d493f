"""A real Triton Inference Server on loopback (`deploy/install-deps --bench`), started on free ports and stopped by its own process id."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

import models

HOME = pathlib.Path(__file__).resolve().parents[2] / ".deps/triton/pytriton/tritonserver"


def free_ports(count):
    """Ports that nobody has now; another process may be quicker."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


class Triton:
    """Serves what models.py lists. `cores`: for taskset; `settings`: of `write`, which makes the repository."""

    def __init__(self, folder, *arguments, cores=None, write=models.write_triton_repository, **settings):
        self.repository, self.log = folder / "triton-models", folder / "triton.log"
        write(self.repository, **settings)
        self.http, self.grpc, metrics = free_ports(3)
        command = [HOME / "bin/tritonserver", f"--model-repository={self.repository}", f"--backend-directory={HOME / 'backends'}",
                   "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
                   f"--http-port={self.http}", f"--grpc-port={self.grpc}", f"--metrics-port={metrics}", *arguments]  # fmt: skip
        pinned = ["taskset", "-c", str(cores)] if cores is not None else []
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*pinned, *command], stdout=log, stderr=log, start_new_session=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        deadline = time.monotonic() + 90
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise RuntimeError(f"tritonserver did not get ready:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)

    def _ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/health/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ended(self):
        """Whether it has died, as it looks a moment after a connection broke."""
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its models' processes, which outlive a server that has crashed
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
