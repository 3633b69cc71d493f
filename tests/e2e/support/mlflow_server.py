"""A tracking server of MLflow on loopback, and a proxy before it that asks for a login, counts and breaks.

    with MlflowServer(folder) as mlflow:
        mlflow.log(("onnx", "digits", path))          # by MLflow's own client: [number]
        mlflow.alias("digits", "production", 1)
        mlflow.settings()                             # {"MLFLOW_TRACKING_URI": ...}
"""

import base64
import contextlib
import http.server
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from conftest import HERE, ROOT, free_port, wait_until

PYTHON = ROOT / ".deps/mlflow/bin/python"
USER, PASSWORD, TOKEN = "serin", "hunter2-in-no-message", "a-token-in-no-message"
LOGINS = {"Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(), f"Bearer {TOKEN}"}
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "GIT_PYTHON_REFRESH": "quiet",
         "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # a dozen processes that no test needs


class MlflowServer:
    def __init__(self, folder, *flags, env=None):
        if not PYTHON.exists():
            pytest.skip("no .deps/mlflow; python3 -m venv .deps/mlflow && .deps/mlflow/bin/pip install -r deploy/requirements-mlflow.txt")
        self.folder, self.port, self.flags = folder, free_port(), flags or ("--artifacts-destination", str(folder / "artifacts"))
        self.env = {**os.environ, **QUIET, **(env or {})}
        self.url, self.log_file = f"http://127.0.0.1:{self.port}", folder / "mlflow.log"
        folder.mkdir(exist_ok=True)

    def __enter__(self):
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
                                             "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", *self.flags],
                                            stdout=log, stderr=log, env=self.env, cwd=self.folder, start_new_session=True)
        try:
            wait_until(self._alive, 90, "MLflow")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _alive(self):
        assert self.process.poll() is None, self.log_file.read_text(errors="replace")
        try:
            return urllib.request.urlopen(f"{self.url}/health", timeout=5).status == 200
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # its workers, if it has left any

    def settings(self, **more):
        return {"MLFLOW_TRACKING_URI": self.url, **more}

    def log(self, *models):
        wanted = json.dumps([[str(word) for word in model] for model in models])
        done = subprocess.run([PYTHON, HERE / "support/mlflow_models.py", self.url, wanted], capture_output=True, text=True, check=False, timeout=150,
                              env={**self.env, "MLFLOW_TRACKING_URI": self.url}, cwd=self.folder)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    def post(self, path, method="POST", **body):
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{path}", data=json.dumps(body).encode(), method=method, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())

    def alias(self, model, alias, version):
        self.post("registered-models/alias", name=model, alias=alias, version=str(version))


class Front:
    """Before the server: `asked` has (path, Authorization); `deeds[part of a path]` answers (status, body) instead, once for each entry."""

    def __init__(self, mlflow, login=True):
        self.mlflow, self.login, self.asked, self.deeds = mlflow, login, [], {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"front": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def settings(self, **more):
        return {"MLFLOW_TRACKING_URI": self.url, **more}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: Front

    def log_message(self, *_):
        pass

    def do_GET(self):
        given = self.headers.get("Authorization")
        self.front.asked.append((self.path, given))
        if self.front.login and given not in LOGINS:
            return self.answer(401, b"You are not authenticated.")
        for part, deeds in self.front.deeds.items():
            if part in self.path and deeds:
                return self.answer(*deeds.pop(0))
        try:
            with urllib.request.urlopen(self.front.mlflow.url + self.path, timeout=30) as found:
                self.answer(found.status, found.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.read())

    def answer(self, status, body, announced=None):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body) if announced is None else announced))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = announced is not None
