"""Every inference protocol is drawn, judged and compared as the Open Inference Protocol is; one that nobody knows by status, latency and bytes."""

import dataclasses
import json
import random
import struct
from collections.abc import Callable

import pytest

from backends import Backend, Faults
from conftest import call, wait_until
from routers import hold, service
from traffic import Traffic, ask

NAN = float("nan")


def binary(scores):
    """The answer of a client that asked for binary_data: FP32 behind the JSON."""
    head = json.dumps({"model_name": "digits", "model_version": "1",
                       "outputs": [{"name": "scores", "datatype": "FP32", "shape": [1, len(scores)],
                                    "parameters": {"binary_data_size": 4 * len(scores)}}]}).encode()
    return head + struct.pack(f"<{len(scores)}f", *scores), {"Inference-Header-Content-Length": len(head)}


def paddle(scores):
    """As its C++ server prints GeneralModelResponse: a list for every type, the data before the name."""
    tensor = {"int64_data": [], "float_data": scores, "elem_type": 1, "shape": [1, len(scores)], "lod": [], "name": "softmax_0.tmp_0",
              "alias_name": "prediction"}
    return {"outputs": [{"tensor": [tensor], "engine_name": "general_infer_0"}], "profile_time": [], "err_no": 0}


def pipeline(scores):
    return {"err_no": 0, "err_msg": "", "key": ["prediction"], "value": [str([scores])], "tensors": []}


@dataclasses.dataclass(frozen=True)
class Protocol:
    path: str  # of an inference at the router
    mount: str  # of the endpoint's url
    answer: Callable  # of scores: a document for JSON, or bytes and headers
    any_status: bool = False  # its servers have no path for health checks

    def printed(self, scores):
        answer = self.answer(scores)
        return answer if isinstance(answer, tuple) else (json.dumps(answer).encode(), {"Content-Type": "application/json"})


PROTOCOLS = {
    "open-inference-binary": Protocol("/v2/models/digits/infer", "/v2/models/digits", binary),
    "triton-generate": Protocol("/v2/models/digits/generate", "/v2/models/digits",
                                lambda scores: {"id": f"{random.random()}", "scores": scores, "model_name": "digits", "model_version": "1"}),
    "tensorflow-rows": Protocol("/v1/models/digits:predict", "/v1/models/digits", lambda scores: {"predictions": [scores]}),
    "tensorflow-named-rows": Protocol("/v1/models/digits/versions/3:predict", "/v1/models/digits/versions/3",
                                      lambda scores: {"predictions": [{"scores": scores, "best": scores.index(max(scores))}]}),
    "tensorflow-columns": Protocol("/v1/models/digits/labels/stable:predict", "/v1/models/digits",
                                   lambda scores: {"outputs": {"scores": [scores], "length": [len(scores)]}}),
    "tensorflow-classify": Protocol("/v1/models/digits:classify", "/v1/models/digits",
                                    lambda scores: {"results": [[[f"class {i}", score] for i, score in enumerate(scores)]]}),
    "paddle": Protocol("/GeneralModelService/inference", "", paddle, any_status=True),
    "paddle-pipeline": Protocol("/digits/prediction", "/digits", pipeline, any_status=True),
    "unknown": Protocol("/digits/anything", "/digits", lambda scores: (f"<best>{scores.index(max(scores))}</best>".encode(), {}), any_status=True),
}
TENSORS = sorted(set(PROTOCOLS) - {"unknown"})


class Speaking(Backend):
    """A fake runtime of another protocol."""

    def __init__(self, version, protocol, **faults):
        super().__init__(version, **faults)
        self.protocol = protocol

    @property
    def url(self):
        return self.origin + self.protocol.mount

    def _answer(self, connection, method, path, headers):
        if method == "POST":
            self.requests.append((0, headers, path))
        faults = self.faults
        label = faults.label if faults.label >= 0 else random.randrange(10)
        scores = [NAN] * 10 if faults.nan else [0.9 if i == label else round(random.uniform(0.01, 0.02), 4) for i in range(10)]
        body, fields = self.protocol.printed(scores)
        status = 500 if method == "POST" and random.random() < faults.error_rate else 200
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in fields.items())]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True


@pytest.fixture
def pair(request, route):
    """(router, protocol, stable, canary)"""
    protocol = PROTOCOLS[request.param]
    with Speaking("1", protocol) as stable, Speaking("2", protocol) as canary:
        described = service(stable, canary)
        for version in described["versions"]:
            version["health"] = {**version["health"], "any_status": protocol.any_status}
        router = route(described)
        wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
        yield router, protocol, stable, canary


def traffic_to(router, protocol):
    return Traffic(router.url, clients=3, path=protocol.path)


@pytest.mark.parametrize("pair", PROTOCOLS, indirect=True)
def test_an_inference_is_drawn_and_arrives_as_it_was_sent(pair):
    router, protocol, _, canary = pair
    router.start_rollout(steps=[hold(50)])
    answers = ask(router.url, 100, path=protocol.path)
    assert {status for status, _, _ in answers} == {200}
    assert 10 < sum(headers["x-serin-version"] == "2" for _, headers, _ in answers) < 90
    assert canary.requests[-1][2].lower() == protocol.path.replace("/labels/stable", "").lower()


@pytest.mark.parametrize("pair", PROTOCOLS, indirect=True)
def test_other_answers_are_found_in_the_shadow(pair):
    router, protocol, _, canary = pair
    canary.faults = Faults(label=7)
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": "certified"}}, 50])
    with traffic_to(router, protocol) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "shadow"
    assert set(traffic.versions) == {"1"} and traffic.failures == []


@pytest.mark.parametrize("pair", TENSORS, indirect=True)
def test_answers_with_other_scores_and_the_same_label_agree(pair):
    router, protocol, _, _ = pair
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": "certified"}}, hold(50)])
    with traffic_to(router, protocol):
        wait_until(lambda: router.rollout()["step"] == 1, 20, "the second step")


@pytest.mark.parametrize(("pair", "faults"), [*((name, Faults(nan=True)) for name in TENSORS), ("unknown", Faults(error_rate=1))],
                         ids=[*TENSORS, "unknown"], indirect=["pair"])
def test_nan_under_a_good_status_and_any_bad_status_are_errors(pair, faults):
    router, protocol, _, canary = pair
    canary.faults = faults
    router.start_rollout(steps=[50])
    with traffic_to(router, protocol) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "err"
    assert traffic.failures == []


@pytest.mark.parametrize("pair", ["tensorflow-rows"], indirect=True)
def test_status_and_metadata_of_tensorflow_are_stables(pair):
    router, _, stable, _ = pair
    for path in ("/v1/models/digits", "/v1/models/digits/versions/7", "/v1/models/digits/metadata"):
        answer = call(router.url + path)
        assert answer.status == 200 and answer.headers["x-serin-version"] == "1"
    assert stable.inferences == 0
    assert call(router.url + "/v1/models/half").status == 404
    assert call(router.url + "/v1/models").status == 404


@pytest.mark.parametrize("pair", ["paddle"], indirect=True)
def test_paddles_one_path_is_the_only_services(pair):
    router, _, _, _ = pair
    assert call(router.url + "/OtherService/inference", {}, {}).status == 404
