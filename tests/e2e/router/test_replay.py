"""Recorded requests that a canary answers before it gets any traffic: `recording:` of router.yaml and `replay:` of a specification."""

import json
import signal
import stat

import numpy as np
import pytest

from backends import Faults
from conftest import MODELS, run_client, serin, wait_until
from routers import NO_SECOND_TRY, QUICK_HEALTH, reload, service, write_config
from traffic import Traffic

KEY = "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
REPLAY = {"shadow": {"percent": 100, "replay": 200}}


@pytest.fixture
def versions(route, backend):
    stable, canary = backend("1"), backend("2")
    return route(service(stable, canary, recording={"requests": 60})), stable, canary


EVALUATION = np.load(MODELS / "digits" / "eval.npz")


@pytest.mark.parametrize("canary, goes_on", [("1", True), ("3", False)], ids=["the same", "mostly wrong"])
def test_calls_of_tensorflow_are_recorded_and_replayed(route, shared_runtime, canary, goes_on):
    """With TensorFlow Serving's own client and real models: the model is named in the message, and the copies are compared."""
    versions = [{"name": name, "health": QUICK_HEALTH, "endpoints": [{"url": f"grpc://127.0.0.1:{shared_runtime.ports['grpc']}/v1/models/digits/versions/{model}"}]}
                for name, model in (("1", "1"), ("2", canary))]
    router = route({"name": "numbers", "initial_stable": "1", "versions": versions, "recording": {"requests": 60}})
    wait_until(lambda: router.healthy("2", "numbers") == 1, 20, "health checked")
    asked = [{"method": "Predict", "model": "numbers", "input": "pixels", "rows": [row]} for row in EVALUATION["pixels"][:60].tolist()]
    other = [{"method": "GetModelMetadata", "model": "numbers"}, {"method": "Predict", "model": "nothing", "input": "pixels", "rows": [[0.0] * 64]}]
    answers = run_client("tfserving_rows.py", f"127.0.0.1:{router.ports['http']}", json.dumps([*asked, *other]))
    assert answers[-1]["error"][0] == "NOT_FOUND" and answers[-2]["answer"] == "digits", "named as the endpoint names it"
    right = [np.argmax(each["answer"]["scores"]) for each in answers[:60]] == EVALUATION["label"][:60]
    assert np.mean(right) > 0.9 and all(each["versions"] == {"1": 1} for each in answers[:60])
    assert router.metric("serin_route_recorded_requests") == 60
    assert router.post("/v1/rollouts", {"service": "numbers", "canary": "2", "steps": [REPLAY, 50, 100], "shield": NO_SECOND_TRY}).status == 201
    if goes_on:
        wait_until(lambda: router.rollout("numbers")["weight"] == 50, 20, "certified without a client")
        assert router.metric("serin_route_shadow_pairs_total", result="agree") >= 29
    else:
        wait_until(lambda: router.rollout("numbers")["phase"] == "RolledBack", 20, "another label for most")
        assert router.rollout("numbers")["cause"] == "shadow"


def record(router, count=60):
    with Traffic(router.url, headers={"Authorization": "Bearer secret"}) as traffic:
        wait_until(lambda: router.metric("serin_route_recorded_requests") >= count, 20, "recorded")
    assert traffic.failures == []


def begin(router, steps=(REPLAY, 50, 100), **more):
    answer = router.post("/v1/rollouts", {"service": "digits", "canary": "2", "steps": list(steps), "shield": NO_SECOND_TRY, **more})
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("faults, cause", [(Faults(error_rate=1), "err"), (Faults(garbage=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), "err"),
                                           (Faults(label=7), "shadow")], ids=["errors", "cut off", "another label"])
def test_a_bad_canary_is_out_before_it_has_any_traffic(versions, faults, cause):
    router, stable, canary = versions
    record(router)
    canary.faults = faults
    begin(router)
    router.wait_for("RolledBack")  # no client asks anything
    rollout = router.rollout()
    assert rollout["cause"] == cause, rollout["reason"]
    assert 4 < rollout["answers"]["shadow"] <= 60
    assert canary.served == 0, "no client's request"


def test_a_good_canary_gets_traffic_after_it(versions):
    router, stable, canary = versions
    record(router)
    before = stable.inferences
    begin(router)
    wait_until(lambda: router.rollout()["weight"] == 50, 20, "certified without a client")
    assert router.rollout()["answers"]["shadow"] >= 29
    wait_until(lambda: canary.shadows == stable.shadows == stable.inferences - before, 10, "those under way have ended")
    assert canary.served == 0
    assert "authorization" not in canary.last() and canary.last()["x-serin-shadow"] == "1"
    assert router.metric("serin_route_replayed_total") >= 29


def test_without_enough_recorded_requests_live_ones_are_mirrored(versions):
    router, stable, canary = versions
    record(router, 10)
    begin(router, certify={"confidence": "99.99%"})  # 88 pairs
    wait_until(lambda: router.rollout()["answers"]["shadow"] >= 10, 20, "replayed")
    assert router.rollout()["step"] == 0
    with Traffic(router.url):
        wait_until(lambda: router.rollout()["weight"] == 50, 20, "certified with a client's requests")


def test_a_service_that_records_nothing_cannot_replay(pair):
    router, *_ = pair
    answer = router.post("/v1/rollouts", {"service": "digits", "canary": "2", "steps": [REPLAY, 50, 100]})
    assert answer.status == 400 and "router.yaml has no `recording`" in answer.json["error"]
    answer = router.post("/v1/rollouts", {"service": "digits", "canary": "2", "steps": [{"shadow": {"percent": 1}}, REPLAY, 50, 100]})
    assert answer.status == 400 and "replay belongs to the first step" in answer.json["error"]


@pytest.fixture
def kept(tmp_path, backend):
    key = tmp_path / "recording.key"
    key.write_text(KEY)
    key.chmod(0o600)
    return service(backend("1"), backend("2"), recording={"file": str(tmp_path / "digits.recording"), "key": str(key)})


def test_recorded_requests_outlive_a_restart_and_a_reload(route, kept, tmp_path):
    router = route(kept)
    record(router, 40)
    count = router.metric("serin_route_recorded_requests")
    assert reload(router) and router.metric("serin_route_recorded_requests") >= count
    router.process.send_signal(signal.SIGTERM)
    router.process.wait(10)
    file = tmp_path / "digits.recording"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and b"infer" not in file.read_bytes()
    again = route(kept)
    assert again.metric("serin_route_recorded_requests") >= count


def test_a_damaged_recording_is_kept_and_reported(route, kept, tmp_path):
    file = tmp_path / "digits.recording"
    file.write_bytes(b"serin sealed 1\n" + bytes(100))
    router = route(kept)
    record(router, 5)
    router.process.send_signal(signal.SIGTERM)
    router.process.wait(10)
    assert file.read_bytes() == b"serin sealed 1\n" + bytes(100)
    assert "damaged, or written with another key" in router.log


@pytest.mark.parametrize("recording, complaint", [
    ({"requests": 0}, "requests"), ({"keep": "5m"}, "must be from 1h"), ({"file": "a"}, "file and key belong together"),
    ({"redact": ["user"]}, "JSON pointers"), ({"file": "a", "key": "missing.key"}, "missing.key"), ({"share": "10%"}, "unknown key 'share'")])
def test_a_bad_recording_is_refused_by_name(tmp_path, backend, recording, complaint):
    config = write_config(tmp_path, service(backend("1"), backend("2"), recording=recording))
    done = serin("route", "--config", config, "--check")
    assert done.returncode != 0 and complaint in done.stderr, done.stderr
