"""gRPC through the router, with grpcio at both ends."""

import subprocess
import sys
import threading
import time

import grpc
import grpc_backends
import numpy as np
import pytest
import tritonclient.grpc as triton
from conftest import call, wait_until
from grpc_backends import OIP, YES, Faults, field, fields
from grpc_clients import Calls, code_of, infer
from routers import service
from test_serve import EVALUATION, expected_scores

TEST = (("x-serin-service", "digits"),)  # for methods that name no model


def test_a_call_reaches_the_model_that_its_message_names(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    method = channel(router).unary_unary(OIP + "ModelInfer")
    answer, ended = method.with_call(infer(more=field(2, "7") + field(3, "id")), metadata=(("x-key", "k"), ("x-key-bin", b"\x00\xff")))
    assert fields(answer)[2] == b"1" and fields(answer)[3] == b"id"
    head, trailers = dict(ended.initial_metadata()), dict(ended.trailing_metadata())
    assert head["x-serin-version"] == "1" and head["x-backend"] == "1"
    assert trailers["x-trailer"] == "t" and trailers["x-trailer-bin"] == b"\x00\xff"
    metadata, message = backend.calls[0]
    assert metadata["x-key"] == "k" and metadata["x-key-bin"] == b"\x00\xff" and metadata["x-forwarded-for"] == "127.0.0.1"
    assert fields(message)[1] == b"digits" and fields(message)[2] == b"1"  # the version is the router's to choose
    assert router.metric("serin_route_requests_total", version="1", code="OK") == 1


def test_every_size_of_message_and_metadata(grpc_backend, route, channel):
    router = route(service(grpc_backend("1")))
    options = channel(router)
    method = options.unary_unary(OIP + "ModelInfer")
    for size in (0, 1, 1000, 16_384, 65_536, 300_000, 3_000_000):
        large = bytes(size)
        assert fields(method(infer(more=field(7, large))))[7] == large
    long = "m" * 7000
    assert method(infer(), metadata=(("x-long", long),))
    assert code_of(lambda: method(infer(), metadata=[(f"x-{i}", long) for i in range(10)])) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_what_the_router_answers_itself(grpc_backend, route, channel):
    router = route(service(grpc_backend("1")))
    to = channel(router)
    for method in (OIP + "ServerLive", OIP + "ServerReady", "/grpc.health.v1.Health/Check"):
        assert to.unary_unary(method)(b"") == YES
    assert fields(to.unary_unary(OIP + "ServerMetadata")(b""))[1] == b"serin-router"
    assert to.unary_unary(OIP + "ModelReady")(infer()) == YES
    assert code_of(lambda: to.unary_unary(OIP + "ModelInfer")(infer("nope"))) == grpc.StatusCode.NOT_FOUND
    assert code_of(lambda: to.unary_unary(OIP + "RepositoryIndex")(b"")) == grpc.StatusCode.UNIMPLEMENTED
    assert code_of(lambda: to.unary_unary("/some.Other/Method")(b"")) == grpc.StatusCode.UNIMPLEMENTED
    assert code_of(lambda: to.stream_stream("/some.Other/Method")(iter([b""])).next()) == grpc.StatusCode.UNIMPLEMENTED


def test_a_service_without_grpc_and_one_without_http(backend, grpc_backend, route, channel):
    plain, calls = backend("1"), grpc_backend("1")
    router = route(service(plain), service(calls, name="calls"))
    assert code_of(lambda: channel(router).unary_unary(OIP + "ModelInfer")(infer())) == grpc.StatusCode.UNIMPLEMENTED
    assert call(router.url + "/v2/models/calls/infer", {"inputs": []}).status == 501
    assert call(router.url + "/v2/models/digits/infer", {"inputs": []}).status == 200


def test_one_server_with_both(backend, grpc_backend, route, channel):
    plain, calls = backend("1"), grpc_backend("1")
    both = service(plain)
    both["versions"][0]["endpoints"][0]["grpc_port"] = calls.port
    router = route(both)
    assert call(router.url + "/v2/models/digits/infer", {"inputs": []}).status == 200
    assert channel(router).unary_unary(OIP + "ModelInfer")(infer())


def test_a_deadline_travels_and_ends_the_call(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    method = channel(router).unary_unary(OIP + "ModelInfer")
    method(infer(), timeout=20)
    assert 10 < backend.left[-1] <= 20.1
    backend.faults = Faults(delay=2)
    assert code_of(lambda: method(infer(), timeout=0.2)) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert code_of(lambda: method(infer(), metadata=(("x-serin-timeout-ms", "200"),))) == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_cancelled_call_is_cancelled_behind_the_router(grpc_backend, route, channel):
    backend = grpc_backend("1", delay=0.5)
    router = route(service(backend))
    under_way = channel(router).unary_unary(OIP + "ModelInfer").future(infer())
    wait_until(lambda: backend.inferences == 1)
    under_way.cancel()
    assert backend.cancelled.wait(10)


def test_messages_go_back_and_forth(grpc_backend, route, channel):
    router = route(service(grpc_backend("1")))
    said, may_say = [], threading.Semaphore(1)

    def one_by_one():
        for i in range(50):
            assert may_say.acquire(timeout=10)
            yield infer(more=field(3, str(i)))

    for answer in channel(router).stream_stream(OIP + "ModelStreamInfer")(one_by_one()):
        response = fields(fields(answer)[2])
        said.append(response[3])
        assert response[2] == b"1"
        may_say.release()
    assert said == [str(i).encode() for i in range(50)]


def test_a_slow_reader_holds_up_who_produces(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    stream = channel(router).unary_stream("/test.Streams/Produce")(b"2000", metadata=TEST)
    next(stream)
    produced = 0
    while produced != backend.produced:  # until it stands still
        produced = backend.produced
        time.sleep(0.3)
    assert produced < 1000, "125 MB are on their way and nobody reads"
    assert sum(len(message) for message in stream) == 1999 * (64 << 10)


def test_a_slow_backend_holds_up_who_sends(grpc_backend, route, channel):
    backend = grpc_backend("1", delay=0.01)
    router = route(service(backend))
    sent = 0

    def messages():
        nonlocal sent
        for _ in range(500):
            sent += 1
            yield bytes(64 << 10)

    ended = channel(router).stream_unary("/test.Streams/Collect").future(messages(), metadata=TEST)
    wait_until(lambda: backend.produced > 20)
    assert sent < 400, "all is on its way though hardly anything was read"
    assert ended.result(timeout=30) == str(500 * (64 << 10)).encode()


def test_a_rollout_ends_in_a_rollback_that_no_client_sees(grpc_backend, route, channel):
    stable, canary = grpc_backend("1"), grpc_backend("2", error_rate=0.5)
    router = route(service(stable, canary))
    with Calls(channel(router)) as calls:
        router.start_rollout(steps=(50,))
        rollout = router.wait_for("RolledBack")
        seen = canary.inferences
        wait_until(lambda: calls.versions["1"] > 50)
    assert calls.failures == []
    assert canary.inferences <= seen + 8 and rollout["reason"].startswith("err:")
    assert router.metric("serin_route_retries_total") > 0


def test_a_healthy_canary_is_promoted(grpc_backend, route, channel):
    stable, canary = grpc_backend("1"), grpc_backend("2")
    router = route(service(stable, canary))
    with Calls(channel(router)) as calls:
        router.start_rollout(steps=(50, 100))
        router.wait_for("Succeeded", seconds=60)
        before = calls.versions["2"]
        wait_until(lambda: calls.versions["2"] > before + 20)
    assert calls.failures == []


def test_a_server_that_ends_its_connections_loses_no_call(grpc_backend, route, channel):
    ageing = (("grpc.max_connection_age_ms", 100), ("grpc.max_connection_age_grace_ms", 5000))
    backend = grpc_backend("1", options=ageing)
    router = route(service(backend))
    with Calls(channel(router)) as calls:
        wait_until(lambda: calls.versions["1"] > 1000, 60)
    assert calls.failures == []


def test_an_endpoint_that_is_killed_loses_no_call(grpc_backend, route, channel):
    stays = grpc_backend("1")
    with subprocess.Popen([sys.executable, grpc_backends.__file__], stdout=subprocess.PIPE, text=True) as dies:
        url = dies.stdout.readline().strip()
        both = service(stays)
        both["versions"][0]["endpoints"].append({"url": url})
        router = route(both)
        with Calls(channel(router), clients=3) as calls:  # no more than may be tried again at once
            wait_until(lambda: calls.versions["1"] > 200 and stays.inferences < calls.versions["1"])
            dies.kill()
            wait_until(lambda: router.healthy("1") == 1)
            before = calls.versions["1"]
            wait_until(lambda: calls.versions["1"] > before + 50)
    assert calls.failures == []


def test_the_last_endpoint_is_missed_by_name(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    method = channel(router).unary_unary(OIP + "ModelInfer")
    assert method(infer())
    backend.down()
    with pytest.raises(grpc.RpcError) as error:
        method(infer(), timeout=10)
    assert error.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    wait_until(lambda: router.healthy("1") == 0)
    with pytest.raises(grpc.RpcError) as error:
        method(infer(), timeout=10)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE and "version '1'" in error.value.details()


def test_grpc_beside_http1_on_the_wrong_port(backend, route, channel):
    plain = backend("1")
    wrong = service(plain)
    wrong["versions"][0]["endpoints"][0]["grpc_port"] = plain.port
    router = route(wrong)
    assert code_of(lambda: channel(router).unary_unary(OIP + "ModelInfer")(infer())) == grpc.StatusCode.UNAVAILABLE


def test_a_draining_router_ends_what_is_under_way(grpc_backend, route, channel):
    backend = grpc_backend("1", delay=1)
    router = route(service(backend))
    under_way = channel(router).unary_unary(OIP + "ModelInfer").future(infer())
    wait_until(lambda: backend.inferences == 1)
    assert router.end() == 0
    assert fields(under_way.result(timeout=10))[2] == b"1"


def test_h24_a_model_named_twice_is_the_one_that_was_routed(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    method = channel(router).unary_unary(OIP + "ModelInfer")
    method(infer(more=field(1, "secret") + field(2, "9")))
    assert fields(backend.calls[0][1])[1] == b"digits" and fields(backend.calls[0][1])[2] == b"1"


def test_h24_messages_that_name_no_model(grpc_backend, route, channel):
    backend = grpc_backend("1")
    router = route(service(backend))
    method = channel(router).unary_unary(OIP + "ModelInfer")
    for message in (b"", b"\xff" * 11, b"\x0a\x7fshort", b"\x0b", field(1, "x" * 200), field(2, "1")):
        assert code_of(lambda m=message: method(m)) == grpc.StatusCode.INVALID_ARGUMENT, message
    packed = channel(router).unary_unary(OIP + "ModelInfer")
    assert code_of(lambda: packed(infer(more=field(7, bytes(10_000))), compression=grpc.Compression.Gzip)) == grpc.StatusCode.INVALID_ARGUMENT
    assert code_of(lambda: method(infer(), metadata=(("grpc-timeout-x", "1"), ("x-serin-timeout-ms", "soon")))) == grpc.StatusCode.INVALID_ARGUMENT
    assert backend.inferences == 0


# --- the runtime's own gRPC behind it -------------------------------------------------------------------------------------------------


def real_service(runtime, *versions):
    """The versions of models/digits that the runtime serves, over REST and gRPC."""
    return {"name": "digits", "initial_stable": versions[0], "versions": [
        {"name": version, "endpoints": [{"url": f"{runtime.url}/v2/models/digits/versions/{version}", "grpc_port": runtime.ports["grpc"]}]}
        for version in versions]}  # fmt: skip


def test_tritonclient_through_the_router(shared_runtime, route):
    router = route(real_service(shared_runtime, "1"))
    wait_until(lambda: router.healthy("1") == 1)
    with triton.InferenceServerClient(f"127.0.0.1:{router.ports['http']}") as client:
        pixels = EVALUATION["pixels"][:5]
        tensor = triton.InferInput("pixels", list(pixels.shape), "FP32")
        tensor.set_data_from_numpy(pixels)
        answer = client.infer("digits", [tensor], request_id="a-1")
        np.testing.assert_allclose(answer.as_numpy("scores"), expected_scores(1, pixels), rtol=1e-4, atol=1e-5)
        assert answer.get_response().id == "a-1"


def test_a_real_canary_that_refuses_everything_is_rolled_back_over_grpc(shared_runtime, route):
    router = route(real_service(shared_runtime, "1", "5"))  # version 5 was exported with another shape of input
    wait_until(lambda: router.healthy("1") == router.healthy("5") == 1)
    router.start_rollout(canary="5")
    pixels = EVALUATION["pixels"][:1]
    tensor = triton.InferInput("pixels", [1, 64], "FP32")
    tensor.set_data_from_numpy(pixels)
    expected = expected_scores(1, pixels)
    with triton.InferenceServerClient(f"127.0.0.1:{router.ports['http']}") as client:
        while router.rollout()["phase"] != "RolledBack":  # no answer is bad: what the canary refuses is run again on stable
            np.testing.assert_allclose(client.infer("digits", [tensor]).as_numpy("scores"), expected, rtol=1e-4, atol=1e-5)
    assert 0 < router.rollout()["answers"]["canary"] < 100
