"""ConfigMaps and Secrets that change while both programs run: nobody sends a signal, and every file is a link that leads elsewhere from one moment to the next."""

import hashlib
import json
import pathlib
import socket
import ssl

from conftest import MODELS, ON_FREE_PORTS, call, infer_body, wait_until

from certificates import Authority
from mounted import Mounted
from routers import JSON, UNLIMITED_ADMIN, Router, hold, service
from traffic import Traffic, ask


def token_file(token, role):
    return f"tokens: [{{name: me, role: {role}, sha256: {hashlib.sha256(token.encode()).hexdigest()}}}]\n"


def bearer(token):
    return {**JSON, "Authorization": f"Bearer {token}"}


def router_yaml(tmp_path, *services, **more):
    return json.dumps({"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": services, "store": str(tmp_path / "router.db"), **more})


def certificate_of(port, authority):
    with socket.create_connection(("127.0.0.1", port)) as plain, authority.client().wrap_socket(plain, server_hostname="localhost") as secured:
        return secured.getpeercert(binary_form=True)


def reloads(router, result):
    try:
        return router.metric("serin_route_reloads_total", result=result)
    except OSError:  # the admin API is between two servers
        return None


def test_the_router_reads_a_router_yaml_that_another_version_of_its_configmap_brings(backend, tmp_path):
    stable, canary, letters = backend("1"), backend("2"), backend("1", service="letters")
    mounted = Mounted(tmp_path / "config", {"router.yaml": router_yaml(tmp_path, service(stable, canary))})
    with Router(tmp_path, "route", "--drain-seconds", 0, "--config", mounted / "router.yaml") as router:
        wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
        router.start_rollout(steps=[hold(25)])
        with Traffic(router.url, clients=2) as traffic:
            mounted.replace({"router.yaml": router_yaml(tmp_path, service(stable, canary), service(letters, name="letters"))})
            wait_until(lambda: reloads(router, "applied") == 1, 20, "read again")
            wait_until(lambda: router.healthy("1", "letters") == 1, 10, "the new service")
            assert ask(router.url, 1, service="letters")[0][0] == 200
            mounted.replace({"router.yaml": router_yaml(tmp_path, service(stable))})
            wait_until(lambda: reloads(router, "refused") == 1, 20, "refused: its rollout is under way")
            seen = traffic.answers
            wait_until(lambda: traffic.answers > seen + 50, 10, "traffic goes on")
            mounted.replace({"router.yaml": router_yaml(tmp_path, service(stable, canary))})
            wait_until(lambda: reloads(router, "applied") == 2, 20, "the next one")
        assert traffic.failures == [] and ask(router.url, 1, service="letters")[0][0] == 404
        assert router.rollout()["phase"] == "Progressing" and router.rollout()["weight"] == 25
        assert "its rollout 'digits-1' is in progress" in router.log or "the canary of rollout 'digits-1'" in router.log
        assert reloads(router, "refused") == 1, "a refused one is refused once"


def test_tokens_and_certificates_of_both_programs(start, backend, tmp_path):
    authority = Authority(tmp_path)
    pairs = [authority.issue(name, days=days) for name, days in [("first", 10), ("second", 20)]]

    def files(pair, token, role):
        return {"tls.crt": pathlib.Path(pair.cert).read_bytes(), "tls.key": pathlib.Path(pair.key).read_bytes(), "tokens.yaml": token_file(token, role)}

    old, new = "the-first-token-0123456789", "the-second-token-0123456789"
    of_server, of_router = (Mounted(tmp_path / name, files(pairs[0], old, "admin")) for name in ("server", "router"))
    server = start("serve", "--models", MODELS, *ON_FREE_PORTS, "--tokens", of_server / "tokens.yaml",
                   "--tls-cert", of_server / "tls.crt", "--tls-key", of_server / "tls.key")
    config = tmp_path / "router.yaml"
    config.write_text(router_yaml(tmp_path, service(backend("1")), tls={"cert": str(of_router / "tls.crt"), "key": str(of_router / "tls.key")},
                                  admin={"listen": "127.0.0.1:0", "rate": 0, "tokens": str(of_router / "tokens.yaml")}))
    with Router(tmp_path, "route", "--drain-seconds", 0, "--config", config) as router:
        def statuses(token):
            return (call(server.url.replace("http:", "https:") + "/v2/models/digits", headers=bearer(token), tls=authority.client()).status,
                    call(router.admin + "/v1/services", headers=bearer(token)).status)

        def shown(program):
            return ssl.DER_cert_to_PEM_cert(certificate_of(program.ports["http"], authority)).strip()

        assert statuses(old) == (200, 200) and statuses(new) == (401, 401)
        assert [shown(program) in pathlib.Path(pairs[0].cert).read_text() for program in (server, router)] == [True, True]
        for mounted in (of_server, of_router):
            mounted.replace(files(pairs[1], new, "admin"))
        wait_until(lambda: statuses(new) == (200, 200) and statuses(old) == (401, 401), 20, "the new tokens")
        wait_until(lambda: all(shown(program) in pathlib.Path(pairs[1].cert).read_text() for program in (server, router)), 20, "the new certificate")


def test_a_model_and_its_settings_in_a_configmap(serve, tmp_path):
    model = (MODELS / "digits/1/model.onnx").read_bytes()
    mounted = Mounted(tmp_path / "models/digits", {"1/model.onnx": model, "serin.yaml": "max_batch: 4\n"})
    runtime = serve(tmp_path / "models")

    def largest_batch():
        assert call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64])).status == 200
        return call(f"{runtime.url}/v2/models/digits/config").json["max_batch_size"]

    assert largest_batch() == 4
    mounted.replace({"1/model.onnx": model, "serin.yaml": "max_batch: 2\n"})
    wait_until(lambda: largest_batch() == 2, 20, "the new setting, and every request answered")
    mounted.replace({"1/model.onnx": model, "2/model.onnx": model, "serin.yaml": "max_batch: 2\n"})  # a kubelet makes the link, too
    (mounted / "2").symlink_to("..data/2")
    wait_until(lambda: call(f"{runtime.url}/v2/models/digits/versions/2/ready").status == 200, 20, "the new version")
