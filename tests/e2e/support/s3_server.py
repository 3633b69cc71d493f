"""A server of S3 that verifies signatures, over a folder, and a proxy before it that counts, waits and breaks.

It is nanio of the Python environment. It lacks conditional requests, which the proxy adds. Some tests also run with versitygw where PATH has it:
`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0` takes 160 s of CPU time, too long for every machine that tests.

    with S3Server(tmp_path) as s3:
        s3.folder / "models"                          # the bucket `models`, as plain files
        s3.settings()                                 # AWS's variables for it: endpoint, region, a key
        s3.asked                                      # (method, target, status, headers), in order
        s3.do("PUT", "index.json", answer(412))       # for requests of that method whose path ends so, until s3.do("PUT", "index.json", None)
"""

import hashlib
import http.client
import http.server
import os
import shutil
import subprocess
import sys
import threading
import urllib.parse

import pytest

from conftest import free_port, wait_until

KEY, SECRET, REGION = "AKIATESTTESTTESTTEST", "hunter2/+not=in-any-message", "eu-test-1"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


def error_page(code, more=""):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>in its words</Message>{more}</Error>'.encode()


def answer(status, body=b"", **headers):
    """A deed: this answer, and no request to the server."""
    return lambda handler, _: handler.send(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def cut(handler, request):
    """A deed: the first half of the answer, and the end of the connection."""
    status, headers, body = handler.forward(request)
    handler.send(status, headers, body[:len(body) // 2], len(body))
    handler.close_connection = True


def once(deed):
    """A deed for the next request only."""
    done = threading.Event()

    def do(handler, request):
        if done.is_set():
            return handler.pass_on(request)
        done.set()
        return deed(handler, request)

    return do


class S3Server:
    def __init__(self, tmp_path, program="nanio"):
        if program == "versitygw" and not shutil.which("versitygw"):
            pytest.skip("PATH has no versitygw; tests/e2e/support/s3_server.py says how it is made")
        self.program, self.folder, self.asked, self.deeds, self.changing = program, tmp_path / "s3", [], {}, threading.Lock()
        (self.folder / "models").mkdir(parents=True)
        self.port, self.log_file = free_port(), tmp_path / f"{program}.log"
        command, settings = {
            "nanio": ([sys.executable, "-m", "nanio", "serve", "--data-dir", self.folder, "--host", "127.0.0.1", "--port", str(self.port), "--region", REGION,
                       "--no-access-log"], {"NANIO_ACCESS_KEY": KEY, "NANIO_SECRET_KEY": SECRET}),
            "versitygw": (["versitygw", "--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet", "posix", self.folder],
                          {"ROOT_ACCESS_KEY_ID": KEY, "ROOT_SECRET_ACCESS_KEY": SECRET})}[program]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"s3": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def settings(self, **changed):
        """The variables; None removes one."""
        all_of_them = {"AWS_ENDPOINT_URL_S3": self.url, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, **changed}
        return {name: "" if value is None else str(value) for name, value in all_of_them.items()}

    def do(self, method, path, deed):
        self.deeds[method, path] = deed

    def requests(self, method, path=""):
        return [each for each in self.asked if each[0] == method and each[1].split("?")[0].endswith(path)]

    def curl(self, method, target, body=""):
        """Another client, which signs on its own."""
        done = subprocess.run(["curl", "-sS", "-f", "--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{KEY}:{SECRET}", "-X", method, self.url + target,
                               "-H", f"x-amz-content-sha256: {hashlib.sha256(body.encode()).hexdigest()}", *(["--data-binary", body] if body else [])],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def alive(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log_file.read_text(errors="replace"))
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            connection.request("GET", "/")
            return connection.getresponse().status > 0
        except OSError:
            return False

    def __enter__(self):
        self.thread.start()
        try:
            wait_until(self.alive, 20, "the S3 server")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        self.process.terminate()
        self.process.wait()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    s3: S3Server

    def log_message(self, *_):
        pass

    def forward(self, body):
        """As it came, also in Host, which is signed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.s3.port, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in HOP_BY_HOP:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        read = got.read()
        connection.close()
        return got.status, {name: value for name, value in got.getheaders() if name.lower() not in HOP_BY_HOP}, read

    def send(self, status, headers, body, length=None):
        self.s3.asked.append((self.command, self.path, status, dict(self.headers.items())))
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD" and status != 304:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)
        self.wfile.flush()

    def condition_fails(self):
        """Of a PUT, by the ETag of what is there; no other PUT comes between."""
        path = self.s3.folder / urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        tag = f'"{hashlib.md5(path.read_bytes()).hexdigest()}"' if path.is_file() else None
        return self.headers.get("If-Match", tag) != tag or (self.headers.get("If-None-Match") == "*" and tag is not None)

    def pass_on(self, body):
        if self.command != "PUT":
            status, headers, read = self.forward(body)
            unchanged = status == 200 and self.command == "GET" and self.headers.get("If-None-Match") in (headers.get("ETag"), headers.get("etag"), "*")
            return self.send(304, headers, b"") if unchanged and self.headers.get("If-None-Match") else self.send(status, headers, read)
        with self.s3.changing:
            return self.send(412, {}, error_page("PreconditionFailed")) if self.condition_fails() else self.send(*self.forward(body))

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        for (method, end), deed in list(self.s3.deeds.items()):
            if deed and method == self.command and path.endswith(end):
                return deed(self, body)
        return self.pass_on(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request
