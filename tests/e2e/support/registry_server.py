"""Distribution, the container registry that others are made of, over a folder, with a login; and a server of tokens before it.

    with RegistryServer(tmp_path) as containers:
        containers.host                                          # 127.0.0.1:PORT, plain HTTP
        containers.copy(folder, "digits:production", "models")   # by skopeo, to HOST/models/digits:production
        containers.settings()                                    # DOCKER_CONFIG with the login
"""

import base64
import hashlib
import http.server
import json
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from conftest import ROOT, free_port, wait_until

PROGRAM = ROOT / ".deps/docker-registry/usr/bin/docker-registry"
USER, PASSWORD = "ci", "hunter2-in-no-message"
HASH = "$2b$04$cTdM1.2lfr7X6hCMbsYkOuaCI6hgs6b.UV7N7PgoIaQaR.Q4Rjg/q"  # bcrypt of the password
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def login_of(folder, host, basic=BASIC, **more):
    """A folder for DOCKER_CONFIG."""
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({"auths": {host: {"auth": basic}} if basic else {}, **more}))
    path.chmod(0o600)
    return folder


class RegistryServer:
    def __init__(self, tmp_path):
        if not PROGRAM.exists():
            pytest.skip("no .deps/docker-registry; deploy/install-deps --tests unpacks it")
        self.folder, port = tmp_path / "containers", free_port()
        self.folder.mkdir()
        self.host, self.log_file = f"127.0.0.1:{port}", tmp_path / "containers.log"
        (self.folder / "htpasswd").write_text(f"{USER}:{HASH}\n")
        config = self.folder / "config.yml"
        config.write_text(json.dumps({"version": 0.1, "log": {"level": "warn"}, "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}},
                                      "http": {"addr": self.host}, "auth": {"htpasswd": {"realm": "tests", "path": str(self.folder / "htpasswd")}}}))
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", config], stdout=log, stderr=log)

    def settings(self):
        return {"DOCKER_CONFIG": str(login_of(self.folder / "login", self.host))}

    def copy(self, folder, version, path):
        model, tag = version.split(":")
        done = subprocess.run(["skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", "--dest-creds", f"{USER}:{PASSWORD}", f"oci:{folder / model}:{tag}",
                               f"docker://{self.host}/{path}/{version}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def call(self, method, path, body=None, kind="application/octet-stream"):
        url = path if path.startswith("http") else f"http://{self.host}/v2/{path}"
        request = urllib.request.Request(url, data=body, method=method, headers={"Authorization": f"Basic {BASIC}", "Content-Type": kind})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.headers, answer.read()

    def put_blob(self, repository, data):
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        headers, _ = self.call("POST", f"{repository}/blobs/uploads/", b"")
        self.call("PUT", f"{headers['Location']}&digest={urllib.parse.quote(digest)}", data)
        return digest

    def put_artifact(self, repository, tag, files, annotations=None, **layer_annotations):
        """As `oras push` makes one: an empty config, and layers with titles."""
        config = self.put_blob(repository, b"{}")
        layers = [{"mediaType": "application/octet-stream", "digest": self.put_blob(repository, data), "size": len(data),
                   "annotations": {"org.opencontainers.image.title": name, **layer_annotations}} for name, data in files.items()]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/vnd.example.model", "layers": layers, "annotations": annotations or {},
                    "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2}}
        self.put_manifest(repository, tag, manifest)

    def put_manifest(self, repository, tag, manifest, kind=MANIFEST):
        self.call("PUT", f"{repository}/manifests/{tag}", json.dumps(manifest).encode(), kind)

    def alive(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log_file.read_text(errors="replace"))
        try:
            return self.call("GET", "")[1] is not None
        except (OSError, urllib.error.URLError):
            return False

    def __enter__(self):
        try:
            wait_until(self.alive, 20, "the container registry")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class TokenFront:
    """Before a registry: answers only requests with a token of its own, which it gives to those that log in. `asked`: (path, Authorization), in order."""

    def __init__(self, containers, realm=None):
        self.containers, self.asked, self.deeds, self.number = containers, [], {}, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Front", (Front,), {"front": self}))
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.realm = realm or f"http://{self.host}/token"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: TokenFront

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        front, path, authorization = self.front, urllib.parse.urlsplit(self.path), self.headers.get("Authorization")
        front.asked.append((self.path, authorization))
        for end, deed in front.deeds.items():
            if path.path.endswith(end) and deed:
                return self.answer(*deed)
        if path.path == "/token":
            if authorization != f"Basic {BASIC}":
                return self.answer(401)
            front.number += 1
            return self.answer(200, json.dumps({"token": f"token-{front.number}"}).encode())
        if authorization != f"Bearer token-{front.number}":
            scope = f'realm="{front.realm}",service="tests",scope="repository:{path.path.split("/")[2]}:pull"'
            return self.answer(401, b'{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}', [("WWW-Authenticate", f"Bearer {scope}")])
        request = urllib.request.Request(f"http://{front.containers.host}{self.path}")
        for name, value in self.headers.items():
            if name.lower() not in ("host", "authorization", "connection"):
                request.add_header(name, value)
        request.add_header("Authorization", f"Basic {BASIC}")
        try:
            with urllib.request.urlopen(request, timeout=20) as got:
                status, headers, body = got.status, got.headers, got.read()
        except urllib.error.HTTPError as refused:
            status, headers, body = refused.code, refused.headers, refused.read()
        return self.answer(status, body if status != 304 else b"", [(name, value) for name, value in headers.items() if name.lower() not in ("content-length", "connection")])
