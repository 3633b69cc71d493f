"""What is in the answers of gRPC calls is judged as it is in those of HTTP; and NVIDIA's own client finds its way through the router."""

import queue

import grpc
import numpy
import pytest
import tritonclient.grpc
from conftest import wait_until
from grpc_backends import OIP, Faults, field, fields
from grpc_clients import Calls, infer
from routers import hold, service

GZIP = grpc.Compression.Gzip
NAMED = (("x-serin-service", "digits"),)  # the name within a compressed message cannot be read
WORTH_IT = infer(more=field(3, "id") + field(7, bytes(1000)))  # compressing it


@pytest.fixture
def calls(grpc_backend, route, channel):
    """(router, channel, stable, canary)"""
    stable, canary = grpc_backend("1"), grpc_backend("2")
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    return router, channel(router), stable, canary


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_other_answers_are_found_in_the_shadow(calls, raw):
    router, channel, stable, canary = calls
    stable.faults, canary.faults = Faults(raw=raw), Faults(raw=raw, label=7)
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": "certified"}}, 50])
    with Calls(channel) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "shadow"
    assert set(traffic.versions) == {"1"} and traffic.failures == []
    assert canary.shadows == canary.inferences > 0
    metadata, message = canary.calls[0]
    assert fields(message)[1] == b"digits" and fields(message)[2] == b"2", "the copy is named for the canary's endpoint"
    assert metadata["x-serin-shadow"] == "1"


def test_answers_that_agree_leave_the_shadow(calls):
    router, channel, _, canary = calls
    canary.faults = Faults(raw=False)  # written in another way, and the same
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": "certified"}}, hold(50)])
    with Calls(channel) as traffic:
        wait_until(lambda: router.rollout()["step"] == 1, 20, "the second step")
    assert traffic.failures == [] and router.metric("serin_route_shadow_pairs_total", result="agree") > 0


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_nan_is_an_error_though_the_status_is_ok(calls, raw):
    router, channel, _, canary = calls
    canary.faults = Faults(nan=True, raw=raw)
    router.start_rollout(steps=[50])
    with Calls(channel) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "err"
    assert traffic.failures == []


def test_answers_of_another_shape_are_found_in_live_traffic(calls):
    router, channel, _, canary = calls
    router.start_rollout(steps=[hold(20)], guard={"output": {"shadow": 0}})
    with Calls(channel) as traffic:
        router.wait_for_answers(100)
        canary.faults = Faults(classes=7)
        assert router.wait_for("RolledBack", 60)["cause"] == "out_form"
    assert traffic.failures == []


def test_a_slow_canary_is_hedged_with_stable_and_judged_all_the_same(calls):
    router, channel, _, canary = calls
    with Calls(channel, clients=2) as traffic:
        wait_until(lambda: traffic.answers > 500, 30, "stable's latencies known")
    canary.faults = Faults(delay=1.0)
    router.start_rollout(steps=[hold(50)], guard={"latency": {"floor": "1h"}})
    with Calls(channel, clients=2) as traffic:
        wait_until(lambda: router.metric("serin_route_hedges_total") >= 5, 30, "hedged")
    assert traffic.failures == []
    wait_until(lambda: router.rollout()["answers"]["canary"] >= 5, 10, "the canary's own answers are judged when they come")


def test_compressed_messages_pass_and_are_judged_by_their_status(calls):
    router, channel, stable, canary = calls
    canary.faults = Faults(compression=GZIP, classes=7)  # of another shape, if anybody could read it
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": "certified"}}, 50])
    with Calls(channel, message=WORTH_IT, compression=GZIP, metadata=NAMED) as traffic:
        wait_until(lambda: router.metric("serin_route_shadow_pairs_total", result="not_compared") > 20, 20, "copies")
        assert router.command("set-weight", {"weight": 50}).status == 200
        router.wait_for_answers(300)
        assert router.rollout()["phase"] == "Paused" and stable.inferences > 100
        canary.faults = Faults(compression=GZIP, error_rate=1)
        assert router.wait_for("RolledBack", 60)["cause"] == "err"
    assert traffic.failures == []
    answer = channel.unary_unary(OIP + "ModelInfer")(WORTH_IT, compression=GZIP, metadata=NAMED)
    assert fields(answer)[3] == b"id" and fields(answer)[7] == bytes(1000)


# --- NVIDIA's client ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def triton(calls):
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{calls[0].ports['http']}") as client:
        yield client


def tensor(name="x", rows=((1.0, 2.0),)):
    values = numpy.array(rows, dtype=numpy.float32)
    made = tritonclient.grpc.InferInput(name, values.shape, "FP32")
    made.set_data_from_numpy(values)
    return made


def test_tritons_client_infers_through_the_router(calls, triton):
    _, _, stable, _ = calls
    assert triton.is_server_live() and triton.is_server_ready() and triton.is_model_ready("digits")
    assert triton.get_server_metadata().name == "serin-router"
    result = triton.infer("digits", [tensor()], request_id="7", outputs=[tritonclient.grpc.InferRequestedOutput("scores")])
    assert result.as_numpy("scores").shape == (1, 10) and result.as_numpy("scores").argmax() == 3
    response = result.get_response()
    assert (response.model_name, response.model_version, response.id) == ("digits", "1", "7")
    assert fields(stable.calls[-1][1])[2] == b"1"


def test_tritons_client_streams_and_compresses(calls, triton):
    answers = queue.Queue()
    triton.start_stream(lambda result, error: answers.put(error or result), headers={"x-serin-service": "digits"})
    for i in range(5):
        triton.async_stream_infer("digits", [tensor()], request_id=str(i))
    assert all(not isinstance(answers.get(timeout=10), Exception) for _ in range(5))
    triton.stop_stream()
    result = triton.infer("digits", [tensor()], headers={"x-serin-service": "digits"}, compression_algorithm="gzip")
    assert result.as_numpy("scores").argmax() == 3


def test_tritons_client_is_told_what_is_wrong(triton):
    with pytest.raises(tritonclient.grpc.InferenceServerException, match="no such service"):
        triton.infer("nope", [tensor()])


def test_a_grpc_endpoint_that_says_unavailable_is_replaced_too(route, grpc_backend, channel):
    loading, other = grpc_backend("1", error_rate=1, code=grpc.StatusCode.UNAVAILABLE), grpc_backend("1")
    router = route(service(loading, other))
    wait_until(lambda: router.healthy("1") == 2, 10, "health checked")
    with Calls(channel(router)) as calls:
        wait_until(lambda: loading.inferences > 5 and other.inferences > 20, 30, "both asked")
    assert calls.failures == []
