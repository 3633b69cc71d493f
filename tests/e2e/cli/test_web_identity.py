"""Keys of a bucket for the token of a pod: `serin registry` and `serin serve` with AWS_WEB_IDENTITY_TOKEN_FILE. The server of keys stands for AWS's STS."""

import http.server
import threading
import time
import urllib.parse

import pytest

from conftest import MODELS, ON_FREE_PORTS, Process, call, serin, wait_until
from s3_server import KEY, SECRET, S3Server, error_page

ROLE = "arn:aws:iam::111122223333:role/models"


class KeyServer:
    """Gives the key of the S3 server for the token "good", valid for `seconds`. `asked`: forms, in order."""

    def __init__(self, seconds=3600):
        keys = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                keys.asked.append((self.path, form, self.headers.get("Authorization")))
                status, body = keys.answer or (200, keys.page() if form["WebIdentityToken"] == "good" else None)
                if body is None:
                    status, body = 400, error_page("InvalidIdentityToken")
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.asked, self.answer, self.seconds = [], None, seconds
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def page(self):
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.seconds))
        return (f"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><SessionToken>session/+=</SessionToken>"
                f"<SecretAccessKey>{SECRET}</SecretAccessKey><Expiration>{end}</Expiration><AccessKeyId>{KEY}</AccessKeyId></Credentials>"
                "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>").encode()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def s3(tmp_path):
    registry = tmp_path / "registry"
    assert serin("registry", "add", registry, "digits", MODELS / "digits/1", "--tag", "production").returncode == 0
    with S3Server(tmp_path) as s3:
        done = serin("registry", "push", registry, "digits:production", "s3://models/registry", "--registry-cache", tmp_path / "first", env=s3.settings())
        assert done.returncode == 0, done.stderr
        s3.asked.clear()
        yield s3


def identity(tmp_path, s3, keys, token="good\n", **more):
    (tmp_path / "token").write_text(token)
    return s3.settings(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token", AWS_ROLE_ARN=ROLE,
                       AWS_ENDPOINT_URL_STS=keys.url, HOME=tmp_path, **more)


def show(tmp_path, settings, code=0):
    done = serin("registry", "show", "s3://models/registry", "digits:production", "--registry-cache", tmp_path / "cache", env=settings)
    assert done.returncode == code and SECRET not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_token_is_exchanged_once(tmp_path, s3):
    with KeyServer() as keys:
        show(tmp_path, identity(tmp_path, s3, keys, AWS_ROLE_SESSION_NAME="pod 1"))
    assert keys.asked == [("/", {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": ROLE, "RoleSessionName": "pod 1",
                                 "WebIdentityToken": "good"}, None)]
    assert s3.asked and all({name.lower(): value for name, value in each[3].items()}["x-amz-security-token"] == "session/+=" for each in s3.asked)


def test_keys_that_expire_are_replaced_while_a_server_runs(tmp_path, s3):
    with KeyServer(seconds=1) as keys:
        server = Process(tmp_path, "serve", "s3://models/registry", "--registry-cache", tmp_path / "served", "--poll-seconds", "0.05", *ON_FREE_PORTS,
                         env=identity(tmp_path, s3, keys))
        try:
            known = len(keys.asked)
            wait_until(lambda: len(keys.asked) > known, 20, "new keys")
            keys.answer = (503, b"")
            wait_until(lambda: f"keys of the role {ROLE}: 503" in server.log, 20, "the problem in the log")
            keys.answer = None
            wait_until(lambda: "the registry answers again" in server.log, 20, "its end in the log")
            assert call(f"{server.url}/v2/models/digits").json["versions"] == ["1"]
        finally:
            assert server.end() == 0
        assert SECRET not in server.log and "session/" not in server.log


@pytest.mark.parametrize("changed, answer, words", [
    ({"token": "stolen"}, None, f"keys of the role {ROLE}: 400 InvalidIdentityToken (in its words)"), ({"AWS_ROLE_ARN": None}, None, "AWS_ROLE_ARN is not"),
    ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere"}, None, "/nowhere"), ({"AWS_ENDPOINT_URL_STS": "ftp://x"}, None, "AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL is not"),
    ({}, (200, b"<html>"), "keys of the role"), ({}, (403, b"\xff" * 100_000), "keys of the role"),
])
def test_an_exchange_that_fails_is_named(tmp_path, s3, changed, answer, words):
    with KeyServer() as keys:
        keys.answer = answer
        settings = identity(tmp_path, s3, keys, **({"token": changed["token"]} if "token" in changed else {}))
        settings |= {name: value or "" for name, value in changed.items() if name != "token"}
        error = show(tmp_path, settings, code=2 if "is not" in words else 3)
    assert words in error and error.count("\n") == 1 and len(error) < 1000 and not s3.asked
