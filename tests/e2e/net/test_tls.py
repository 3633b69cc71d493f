"""TLS on every way in and out of a router and a runtime, with clients that no one here wrote, while certificates change and where they are wrong."""

import asyncio
import concurrent.futures
import contextlib
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import threading

import aiohttp
import grpc
import pytest
import requests

from backends import Faults
from certificates import Authority, openssl
from conftest import MODELS, ON_FREE_PORTS, call, infer_body, serin, wait_until
from etcd import SecureEtcd
from grpc_backends import OIP, GrpcBackend, field
from routers import JSON, Router, service, spec, write_config
from traffic import BODY, Traffic, ask

HOLD = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def server(authority):
    return authority.issue("server")


def secure(url):
    return url.replace("http://", "https://")


def over_tls(ca, *backends, **more):
    made = service(*backends)
    for version in made["versions"]:
        version["tls"] = {"ca": ca, **more}
    return made


def await_healthy(router, authority, *versions, pair=None):
    """Asks the admin API over TLS."""
    def healthy():
        services = call(secure(router.admin) + "/v1/services", tls=authority.client(pair)).json["services"]
        return all(entry["healthy"] == 1 for entry in services[0]["versions"] if entry["name"] in versions)
    wait_until(healthy, 10, "healthy endpoints")


# --- the data path ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def everywhere(route, backend, authority, server):
    """(router, stable, canary): TLS at both of its ports and to both of its endpoints, which ask for certificates themselves."""
    own = authority.issue("router")
    stable, canary = (backend(version, tls=authority.server(server, ask=True)) for version in "12")
    router = route(over_tls(authority.ca, stable, canary, **own.yaml()), tls=server.yaml(),
                   admin={"listen": "127.0.0.1:0", "rate": 0, "tls": server.yaml()})
    await_healthy(router, authority, "1", "2")
    return router, stable, canary


def test_clients_that_speak_http(everywhere, authority):
    router, stable, _ = everywhere
    url = secure(router.url) + "/v2/models/digits/infer"
    with requests.Session() as session:
        for _ in range(3):
            assert session.post(url, data=BODY, verify=authority.ca, timeout=10).headers["x-serin-version"] == "1"
    for version in ("--http1.1", "--http2"):
        done = subprocess.run(["curl", "--silent", "--show-error", version, "--cacert", authority.ca, "--data-binary", BODY, "--write-out",
                               "%{http_version} %{http_code} %{ssl_verify_result}", "--output", os.devnull, url],
                              capture_output=True, text=True, timeout=20, check=False)
        assert done.stdout == ("1.1 200 0" if version == "--http1.1" else "2 200 0"), done.stderr

    async def many():
        async with aiohttp.ClientSession() as session:
            async def one():
                async with session.post(url, data=BODY, ssl=authority.client()) as answer:
                    return answer.status
            return await asyncio.gather(*(one() for _ in range(50)))
    with concurrent.futures.ThreadPoolExecutor(1) as beside:  # this thread may have the event loop of a browser's tests
        assert beside.submit(asyncio.run, many()).result() == [200] * 50
    assert stable.inferences == 55


def test_what_openssl_sees(everywhere, authority):
    port = everywhere[0].ports["http"]
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", authority.ca, "-verify_ip", "127.0.0.1", "-alpn", "h2,http/1.1"],
                          capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    for wanted in ("Verify return code: 0 (ok)", "TLSv1.3", "ALPN protocol: h2"):
        assert wanted in done.stdout
    old = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2"], capture_output=True, text=True, timeout=20, check=False,
                         stdin=subprocess.DEVNULL)
    assert "alert protocol version" in old.stderr


def test_http_in_the_clear_is_told_what_to_do(everywhere):
    answer = call(everywhere[0].url + "/v2")
    assert answer.status == 400 and "use https" in answer.error


def test_a_rollback_that_no_client_notices(everywhere, authority):
    router, _, canary = everywhere
    admin, client = secure(router.admin), authority.client()
    with Traffic(router.url, tls=client) as steady, Traffic(router.url, tls=client, clients=2, reconnect=True) as fleeting:
        assert call(f"{admin}/v1/rollouts", spec(steps=[HOLD]), JSON, tls=client).status == 201
        wait_until(lambda: canary.inferences > 50, 20, "traffic on the canary")
        canary.faults = Faults(error_rate=0.5)
        wait_until(lambda: call(f"{admin}/v1/rollouts/digits", tls=client).json["rollout"]["phase"] == "RolledBack", 20, "the rollback")
    assert steady.failures == [] and fleeting.failures == []
    assert steady.answers > 50 and fleeting.answers > 20


def test_grpc_on_both_sides(route, authority, server):
    def pem(path):
        with open(path, "rb") as file:
            return file.read()
    credentials = grpc.ssl_server_credentials([(pem(server.key), pem(server.cert))])
    with GrpcBackend("1", credentials=credentials) as stable:
        router = route(over_tls(authority.ca, stable), tls=server.yaml())
        wait_until(lambda: router.healthy("1") == 1, 10, "healthy")
        with grpc.secure_channel(f"localhost:{router.ports['http']}", grpc.ssl_channel_credentials(pem(authority.ca))) as channel:
            infer = channel.unary_unary(OIP + "ModelInfer")
            for size in (10, 200_000):
                assert b"digits" in infer(field(1, "digits") + field(9, "x" * size), timeout=10)
                assert field(9, "x" * size) in stable.calls[-1][1]
        assert stable.inferences == 2


def test_an_endpoint_that_is_not_believed_gets_nothing(route, backend, authority, tmp_path):
    stranger = Authority(tmp_path, "stranger")
    stable = backend("1", tls=stranger.server(stranger.issue("server")))
    router = route(over_tls(authority.ca, stable))
    wait_until(lambda: "is not healthy" in router.log, 10, "the health check")
    assert f"127.0.0.1:{stable.port}: cannot connect: TLS: its certificate (CN=server) is signed by CN=stranger, an unknown authority" in router.log
    assert authority.ca in router.log
    assert stable.inferences == 0


def test_an_endpoint_asks_for_a_certificate(route, backend, authority, server):
    stable = backend("1", tls=authority.server(server, ask=True))
    router = route(over_tls(authority.ca, stable))
    wait_until(lambda: "certificate required" in router.log, 10, "the reason in the log")


# --- who steers ---------------------------------------------------------------------------------------------------------------------


def test_certificates_have_roles(route, backend, authority, server, tmp_path):
    ann = authority.issue("ann", "URI:spiffe://corp/ann")
    eve = authority.issue("eve", "DNS:eve.corp")
    mal = authority.issue("mal", "DNS:mal.corp")
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text('tokens:\n  - {name: ann, role: operator, certificate: "URI:spiffe://corp/ann"}\n  - {name: eve, role: viewer, certificate: "CN:eve"}\n')
    router = route(service(backend("1"), backend("2")),
                   admin={"listen": "127.0.0.1:0", "tokens": str(tokens), "tls": server.yaml(client_ca=authority.ca)})
    admin = secure(router.admin)
    await_healthy(router, authority, "1", "2", pair=ann)

    with pytest.raises((ssl.SSLError, OSError)):
        call(admin + "/v1/me", tls=authority.client())
    assert call(admin + "/v1/me", tls=authority.client(eve)).json["role"] == "viewer"
    unknown = call(admin + "/v1/me", tls=authority.client(mal))
    assert unknown.status == 401 and "DNS:mal.corp" in unknown.error

    assert call(admin + "/v1/rollouts", spec(steps=[HOLD]), JSON, tls=authority.client(eve)).status == 403
    flags = ("--admin", admin, "--ca", authority.ca)
    started = serin("rollout", "start", "digits", "--canary", "2", "--steps", "25", *flags, "--cert", ann.cert, "--key", ann.key)
    assert started.returncode == 0, started.stderr
    by_environment = serin("rollout", "abort", "digits", "--admin", admin, env={"SERIN_CA": authority.ca, "SERIN_CERT": ann.cert, "SERIN_KEY": ann.key})
    assert by_environment.returncode == 0, by_environment.stderr
    history = call(admin + "/v1/rollouts/digits/history", tls=authority.client(eve)).json["history"]
    assert {entry["actor"].split(" ")[0] for entry in history if entry["event"] in ("started", "rolled_back")} == {"ann"}

    refused = serin("rollout", "status", "digits", *flags)
    assert refused.returncode == 5 and "certificate required" in refused.stderr
    disbelieved = serin("rollout", "status", "digits", "--admin", admin)
    assert disbelieved.returncode == 5 and "an unknown authority" in disbelieved.stderr
    assert serin("rollout", "status", "digits", "--admin", router.admin).returncode == 1


def test_whoever_has_a_certificate_may_steer_where_there_are_no_tokens(route, backend, authority, server):
    ann = authority.issue("ann", "URI:spiffe://corp/ann")
    router = route(service(backend("1"), backend("2")), admin={"listen": "0.0.0.0:0", "tls": server.yaml(client_ca=authority.ca)})
    await_healthy(router, authority, "1", "2", pair=ann)
    assert call(secure(router.admin) + "/v1/me", tls=authority.client(ann)).json == {
        "name": "URI:spiffe://corp/ann", "role": "admin", "may": call(secure(router.admin) + "/v1/me", tls=authority.client(ann)).json["may"]}


# --- other certificates, other processes --------------------------------------------------------------------------------------------


def expiry(router, pair):
    return router.metric("serin_tls_certificate_expiry_seconds", file=pair.cert)


def test_certificates_change_under_load(route, backend, authority, server):
    router = route(service(backend("1")), tls=server.yaml())
    wait_until(lambda: router.healthy("1") == 1, 10, "healthy")
    before = expiry(router, server)
    with Traffic(router.url, tls=authority.client(), clients=2) as steady, Traffic(router.url, tls=authority.client(), clients=2, reconnect=True) as fleeting:
        authority.issue("server", days=20)
        wait_until(lambda: expiry(router, server) > before + 5 * 86400, 10, "the new certificate")
        with open(server.key, "w", encoding="utf-8") as file:
            file.write("nothing")
        wait_until(lambda: router.metric("serin_tls_certificate_stale", file=server.cert) == 1, 10, "the refusal")
        assert f"{server.key}: holds no private key in PEM" in router.log
        answers = fleeting.answers
        wait_until(lambda: fleeting.answers > answers + 20, 10, "new connections with the old certificate")
        router.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "is refused, what was read before stays in force" in router.log, 10, "the refusal of router.yaml")
        authority.issue("server", days=30)
        router.process.send_signal(signal.SIGHUP)
        wait_until(lambda: expiry(router, server) > before + 15 * 86400, 20, "the newest certificate")
    assert steady.failures == [] and fleeting.failures == []


def test_a_successor_takes_over(route, backend, authority, server, tmp_path):
    router = route(service(backend("1")), tls=server.yaml())
    wait_until(lambda: router.healthy("1") == 1, 10, "healthy")
    with Traffic(router.url, tls=authority.client(), clients=2) as steady, Traffic(router.url, tls=authority.client(), clients=2, reconnect=True) as fleeting:
        successor = Router(tmp_path, "route", "--take-over", "--drain-seconds", 0, "--config", tmp_path / "router.yaml")
        try:
            assert router.process.wait(40) == 0
            answers = fleeting.answers
            wait_until(lambda: fleeting.answers > answers + 20, 10, "answers of the successor")
        finally:
            fleeting.stop()
            steady.stop()
            successor.close()
    assert steady.failures == [] and fleeting.failures == []


def test_serve(start, authority, server):
    runtime = start("serve", "--models", MODELS, *ON_FREE_PORTS, "--tls-cert", server.cert, "--tls-key", server.key)
    url = secure(runtime.url)
    answer = call(f"{url}/v2/models/digits/versions/1/infer", infer_body([[0.0] * 64]), JSON, tls=authority.client())
    assert answer.status == 200
    loaded = serin("load", url, "--model", "digits", "--concurrency", 4, "--seconds", 1, "--json", "--ca", authority.ca)
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout)["ok"] > 0
    before = runtime.metric("serin_tls_certificate_expiry_seconds", file=server.cert)
    authority.issue("server", days=20)
    runtime.process.send_signal(signal.SIGHUP)
    wait_until(lambda: runtime.metric("serin_tls_certificate_expiry_seconds", file=server.cert) > before, 10, "the new certificate")
    assert runtime.end() == 0
    refused = serin("serve", "--models", MODELS, *ON_FREE_PORTS, "--tls-cert", server.cert, "--tls-key", authority.issue("other").key)
    assert refused.returncode == 2 and "is not the key of the certificate" in refused.stderr


# --- whom the router asks -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def https_server(context, answer):
    """answer(path, body) -> what is sent, as JSON."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent = json.dumps(answer(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"https://localhost:{server.server_port}"
        finally:
            server.shutdown()


def test_webhooks_and_prometheus(route, backend, authority, server):
    seen = []

    def answer(path, body):
        seen.append(path)
        return {"status": "success", "data": {"resultType": "scalar", "result": [0, "7"]}} if path.endswith("/query") else {}

    with https_server(authority.server(server), answer) as url:
        router = route(service(backend("1"), backend("2")), prometheus={"tls": {"ca": authority.ca}},
                       webhooks=[{"name": "chat", "type": "event", "url": url + "/hook", "tls": {"ca": authority.ca}},
                                 {"name": "deaf", "type": "event", "url": url + "/never"}])
        wait_until(lambda: router.healthy("2") == 1, 10, "healthy")
        router.start_rollout(steps=[HOLD], guard={"prometheus": [{"name": "queue", "address": url, "query": "q", "max": 100, "interval": "100ms"}]})
        wait_until(lambda: "/hook" in seen and "/api/v1/query" in seen, 20, "both asked")
        wait_until(lambda: "webhook 'deaf'" in router.log, 10, "the one who is not believed in the log")
    assert "/never" not in seen
    assert "an unknown authority: it is not in the authorities of this system" in router.log


def test_etcd_with_tls_and_users(tmp_path, backend, authority, route):
    # Where there are users, etcd's JSON gateway takes no common name from who asks it, and takes that of its own certificate for the user.
    own, its = (authority.issue(name, subject=f"/O={name}") for name in ("router", "etcd"))
    with SecureEtcd(tmp_path, authority, its, own) as etcd:
        etcd.enable_users("root", "secret")
        password = tmp_path / "password"
        password.write_text("secret\n")
        shared = {"endpoints": [etcd.url], "user": "root", "password_file": str(password), "tls": {"ca": authority.ca, **own.yaml()}, "timeout": "2s"}
        router = route(service(backend("1"), backend("2")), store={"file": str(tmp_path / "router.db"), "etcd": shared},
                       replicas={"max": 1, "listen": "127.0.0.1:0", "name": "a"})
        wait_until(lambda: router.status()["replicas"]["leader"] == "a", 20, "a leader")
        router.start_rollout(steps=[HOLD])
        wait_until(lambda: router.rollout()["weight"] == 25, 20, "a weight that etcd has agreed on")


# --- mistakes -----------------------------------------------------------------------------------------------------------------------


def check(tmp_path, *services, **more):
    done = serin("route", "--check", "--config", write_config(tmp_path, *services, **more))
    assert done.returncode == (2 if done.stderr else 0), done
    return done.stderr


def plain_service(**version):
    url = version.pop("url", "http://127.0.0.1:1")
    return {"name": "digits", "initial_stable": "1", "versions": [{"name": "1", "endpoints": [{"url": url}], **version}]}


def test_mistakes_in_the_configuration(tmp_path, authority, server):
    other = authority.issue("other")
    encrypted, folder, words = tmp_path / "encrypted.key", tmp_path / "folder", tmp_path / "words"
    openssl("ec", "-in", other.key, "-aes128", "-passout", "pass:x", "-out", encrypted)
    folder.mkdir()
    words.write_text("words")
    for tls, wanted in (({"cert": server.cert}, "key"), ({"key": server.key}, "cert"), (server.yaml(ca=authority.ca), "unknown key 'ca'"),
                        ({"cert": server.cert, "key": other.key}, f"{other.key} is not the key of the certificate in {server.cert}"),
                        ({"cert": server.cert, "key": str(encrypted)}, f"{encrypted}: the key is encrypted"),
                        ({"cert": str(folder), "key": server.key}, f"{folder}: not a regular file"),
                        ({"cert": str(words), "key": server.key}, f"{words}: holds no certificate in PEM"),
                        ({"cert": str(tmp_path / "none"), "key": server.key}, f"{tmp_path / 'none'}: cannot be opened: No such file"),
                        (server.yaml(client_ca=str(words)), f"{words}: holds no certificate"), (server.yaml(min_version="1.1"), "1.2"),
                        (server.yaml(client_certificates="optional"), "needs client_ca"),
                        (server.yaml(client_ca=authority.ca, client_certificates="perhaps"), "required")):
        for more in ({"tls": tls}, {"admin": {"listen": "127.0.0.1:0", "tls": tls}}):
            message = check(tmp_path, plain_service(), **more)
            assert wanted in message and "router.yaml:" in message, message
    for version, wanted in (({"tls": {"ca": authority.ca}}, "belongs to an url that begins with https://"),
                            ({"url": "https://h", "tls": {"ca": str(words)}}, f"{words}: holds no certificate"),
                            ({"url": "https://h", "tls": {"cert": server.cert}}, "cert and key belong together"),
                            ({"url": "grpcs://h", "tls": {"insecure_skip_verify": True, "ca": authority.ca}}, "believes every certificate"),
                            ({"url": "ftp://h"}, "https:// and grpcs:// with TLS")):
        message = check(tmp_path, plain_service(**version))
        assert wanted in message and "router.yaml:" in message, message
    assert check(tmp_path, plain_service(url="https://h", tls={"ca": authority.ca, "server_name": "x"}), tls=server.yaml(client_ca=authority.ca)) == ""
    assert "is not loopback" in check(tmp_path, plain_service(), admin={"listen": "0.0.0.0:0", "tls": server.yaml()})


@pytest.mark.parametrize("client", ["digits_of_nothing", "half_of_a_handshake"])
def test_clients_that_never_finish_cost_a_place_for_a_while(route, backend, authority, server, client):
    router = route(service(backend("1")), tls=server.yaml(), limits={"header_timeout": "300ms"})
    wait_until(lambda: router.healthy("1") == 1, 10, "healthy")
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", router.ports["http"]))) for _ in range(50)]
        if client == "half_of_a_handshake":
            for each in silent:
                each.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        assert ask(router.url, 5, tls=authority.client())[-1][0] == 200
        wait_until(lambda: router.metric("serin_http_bad_requests_total", reason="tls_timeout") == 50, 10, "all given up")
