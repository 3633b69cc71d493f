"""Who may call what of `serin serve`: tokens with roles, certificates, and the port where orders to the server are taken."""

import base64
import hashlib
import json

import grpc
import numpy
import pytest
import tritonclient.grpc
from conftest import MODELS, ON_FREE_PORTS, call, wait_until
from tritonclient.utils import InferenceServerException

TOKENS = {role: f"{role}-0123456789abcdef" for role in ("read", "infer", "admin")}
PIXELS = {"inputs": [{"name": "pixels", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0] * 64}]}
ORDER = "/v2/repository/models/digits/unload"


def write_tokens(path, roles=("read", "infer", "admin")):
    lines = [f"  - {{name: {role}, role: {role}, sha256: {hashlib.sha256(TOKENS[role].encode()).hexdigest()}}}" for role in roles]
    path.write_text("\n".join(["tokens:", *lines]) + "\n")
    return path


def bearer(role):
    return {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}


GUARDED = ["serve", "--models", MODELS, *ON_FREE_PORTS, "--admin-port", 0, "--tokens"]


@pytest.fixture(scope="module")
def guarded_once(start_once, tmp_path_factory):
    return start_once(*GUARDED, write_tokens(tmp_path_factory.mktemp("tokens") / "tokens.yaml"))


@pytest.fixture
def guarded(guarded_once):
    """A runtime with tokens that these tests share; it serves on after each."""
    yield guarded_once
    assert call(f"{guarded_once.url}/v2/models/digits/infer", PIXELS, headers=bearer("infer")).status == 200


@pytest.mark.parametrize("role, question, inference, order", [(None, 401, 401, 401), ("read", 200, 403, 403), ("infer", 200, 200, 403)])
def test_each_role_may_what_those_before_it_may(guarded, role, question, inference, order):
    assert call(f"{guarded.url}/v2/models/digits", headers=bearer(role)).status == question
    assert call(f"{guarded.url}/v2/models/digits/infer", PIXELS, headers=bearer(role)).status == inference
    assert call(f"{guarded.url}{ORDER}", {}, headers=bearer(role)).status == order
    assert call(f"{guarded.admin}{ORDER}", {}, headers=bearer(role)).status == order


def test_probes_need_no_token(guarded):
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert call(guarded.url + path).status == 200


def test_a_refusal_says_what_is_missing(guarded):
    refused = lambda: [guarded.metric("serin_refused_callers_total", reason=reason) for reason in ("unauthenticated", "forbidden")]  # noqa: E731
    before = refused()
    nobody = call(f"{guarded.url}/v2/models/digits")
    assert nobody.error == "a token is needed: Authorization: Bearer TOKEN"
    assert nobody.headers["WWW-Authenticate"] == 'Bearer realm="serin"' and nobody.headers["x-serin-batch"].endswith("/0/1")
    wrong = call(f"{guarded.url}/v2/models/digits", headers={"Authorization": "Bearer not-one-of-them-0000"})
    assert wrong.error == "this token is not known here" and 'error="invalid_token"' in wrong.headers["WWW-Authenticate"]
    assert call(f"{guarded.url}/v2/models/digits/infer", PIXELS, headers=bearer("read")).error == "this call needs the role infer; 'read' has read"
    assert refused() == [before[0] + 2, before[1] + 1]


@pytest.mark.parametrize("path", ["//v2/models/digits", "/v2/./models/digits", "/%76%32/models/digits", "/v2/models/digits/", "/v2/models/x/../digits"])
def test_h21_no_other_spelling_of_a_path_goes_past_the_guard(guarded, path):
    assert call(guarded.url + path).status in (400, 401, 404)


def test_orders_are_not_taken_at_the_ports_of_clients(serve):
    server = serve(MODELS, "--admin-port", 0)
    refused = call(f"{server.url}{ORDER}", {})
    assert refused.status == 403 and "--admin-port" in refused.error
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
    with pytest.raises(InferenceServerException, match="--admin-port") as failure:
        client.unload_model("digits")
    assert failure.value.status() == "StatusCode.PERMISSION_DENIED"
    assert call(f"{server.url}/v2/models/digits/ready").status == 200, "nothing was unloaded"
    assert call(f"{server.admin}{ORDER}", {}).status == 409, "the control is not explicit"


def test_pages_of_a_browser_give_no_orders(serve):
    server = serve(MODELS, "--admin-port", 0, "--control", "explicit", "--load", "digits")
    page = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    assert call(f"{server.admin}{ORDER}", {}, headers=page).status == 403
    assert call(f"{server.url}/v2/models/digits/ready").status == 200
    assert call(f"{server.admin}{ORDER}", {}).status == 200


def test_what_a_load_order_says_reads_nothing_outside_the_model(serve, tmp_path):
    server = serve(MODELS / "digits/1/model.onnx", "--control", "explicit", "--load", "*", "--admin-port", 0)
    config = {"output": [{"name": "scores", "label_filename": "labels.txt"}]}
    load = f"{server.admin}/v2/repository/models/model/load"
    refused = call(load, {"parameters": {"config": json.dumps(config)}})
    assert refused.status == 400 and "must lie in the model's folder" in refused.error
    model = base64.b64encode((MODELS / "digits/1/model.onnx").read_bytes()).decode()
    settings = base64.b64encode(b"precision: auto\nsamples: /etc\n").decode()
    refused = call(load, {"parameters": {"config": "{}", "file:1/model.onnx": model, "file:serin.yaml": settings}})
    assert refused.status == 400 and "samples must lie among the files that were sent" in refused.error, refused.body
    assert call(load, {"parameters": {"config": "{}", "file:1": model}}).status == 400


def test_grpc_asks_for_tokens_too(guarded):
    address = f"127.0.0.1:{guarded.ports['grpc']}"
    client = tritonclient.grpc.InferenceServerClient(address)
    pixels = tritonclient.grpc.InferInput("pixels", [1, 1, 8, 8], "FP32")
    pixels.set_data_from_numpy(numpy.zeros((1, 1, 8, 8), numpy.float32))
    assert client.is_server_live(), "a probe"
    for role, status in ((None, "UNAUTHENTICATED"), ("read", "PERMISSION_DENIED")):
        headers = {name.lower(): value for name, value in bearer(role).items()}
        with pytest.raises(InferenceServerException) as failure:
            client.infer("digits", [pixels], headers=headers)
        assert failure.value.status() == f"StatusCode.{status}"
    headers = {"authorization": f"Bearer {TOKENS['infer']}"}
    assert client.infer("digits", [pixels], headers=headers).get_response().model_name == "digits"
    with pytest.raises(grpc.RpcError) as failure:
        grpc.insecure_channel(address).unary_unary("/inference.GRPCInferenceService/NoSuchMethod")(b"")
    assert failure.value.code() == grpc.StatusCode.UNAUTHENTICATED, "who may call nothing is told nothing of what there is"


def test_a_token_that_is_taken_out_of_the_file_is_worth_nothing(start, tmp_path):
    guarded = start(*GUARDED, write_tokens(tmp_path / "tokens.yaml"))
    ask = lambda: call(f"{guarded.url}/v2", headers=bearer("read")).status  # noqa: E731
    assert ask() == 200
    write_tokens(tmp_path / "tokens.yaml", ["admin"])
    wait_until(lambda: ask() == 401, what="the token is refused")
    (tmp_path / "tokens.yaml").write_text("tokens: [{name: x, role: emperor}]\n")
    wait_until(lambda: guarded.metric("serin_tokens_stale") == 1 or call(f"{guarded.url}/v2", headers=bearer("admin")).status == 0)
    assert call(f"{guarded.url}/v2", headers=bearer("admin")).status == 200, "those of before stay in force"
    assert "must be one of read, infer, admin, not 'emperor'" in guarded.log
    assert not any(token in guarded.log for token in TOKENS.values())
