"""The data path of the router beside rollouts: bodies of any size, endpoints that misbehave, second tries and their limits."""

import contextlib
import hashlib
import os
import re
import socket
import subprocess
import threading
import time

import pytest

from backends import Faults
from conftest import ROOT, call, resident_mb, wait_until
from routers import QUICK_HEALTH, hold, service
from traffic import BODY, Connection, Traffic, ask, infer_request

MIB = 1 << 20


class Digest:
    """A server that answers with the length and digest of what it was sent, or with `answer` bytes; it takes bodies only as fast as told."""

    def __init__(self, answer=b"", chunked=False, slow=threading.Event(), window=0):
        self.answer, self.chunked, self.slow = answer, chunked, slow
        self.taken = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        if window:  # so that bodies do not lie in the kernel's buffers
            self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while line := self._line(stream):
                headers = {}
                while field := stream.readline().strip():
                    name, _, value = field.decode().partition(":")
                    headers[name.lower()] = value.strip()
                digest, length = hashlib.sha256(), 0
                for piece in self._body(stream, headers):
                    digest.update(piece)
                    length += len(piece)
                    self.taken = length
                body = self.answer or f"{length} {digest.hexdigest()}".encode()
                if line.startswith(b"GET"):
                    body = b"ready"
                self._send(connection, body)

    @staticmethod
    def _line(stream):
        try:
            return stream.readline()
        except OSError:
            return b""

    def _body(self, stream, headers):
        if headers.get("transfer-encoding") == "chunked":
            while size := int(stream.readline(), 16):
                yield stream.read(size)
                stream.readline()
            stream.readline()
            return
        left = int(headers.get("content-length", 0))
        while left:
            while self.slow.is_set() and not isinstance(self, Cut):
                time.sleep(0.01)
            piece = stream.read(min(left, 65536))
            left -= len(piece)
            yield piece

    def _send(self, connection, body):
        if not self.chunked:
            with contextlib.suppress(OSError):  # the router may have gone
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 100_000):
            piece = body[at : at + 100_000]
            connection.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        connection.sendall(b"0\r\n\r\n")

    def close(self):
        self.listener.close()


def whole(*backends, **version):
    health = {**QUICK_HEALTH, "path": "/"}
    return {"name": "digits", "initial_stable": "1",
            "versions": [{"name": "1", "endpoints": [{"url": backend.url} for backend in backends], "health": health, **version}]}


def digest_of(body):
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode()


# --- bodies ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 65536, 602_112, MIB, MIB + 1, 20 * MIB])
def test_bodies_of_any_size_arrive_as_they_were_sent(route, size):
    backend = Digest()
    client = Connection(route(whole(backend)).url)
    for _ in range(2):  # on one connection: what the first left behind would show
        body = os.urandom(size)
        assert client.ask(infer_request(body=body))[2] == digest_of(body)


@pytest.mark.parametrize("chunks", [[b"abc"], [b"x" * 70_000, b"y"], [os.urandom(300_000) for _ in range(8)]])
def test_chunked_requests_arrive_whole(route, chunks):
    client = Connection(route(whole(Digest())).url)
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n" % len(chunk) + chunk + b"\r\n" for chunk in chunks) + b"0\r\n\r\n"
    assert client.ask(head + body)[2] == digest_of(b"".join(chunks))


@pytest.mark.parametrize("size", [1, 5000, 602_112, 20 * MIB])
def test_answers_of_any_size_arrive_as_they_were_sent(route, size):
    answer = os.urandom(size)
    client = Connection(route(whole(Digest(answer))).url)
    for _ in range(2):
        status, headers, body = client.ask(infer_request())
        assert status == 200 and body == answer and headers["x-serin-version"] == "1"


def test_chunked_answers_arrive_whole(route):
    answer = os.urandom(3 * MIB)
    url = route(whole(Digest(answer, chunked=True))).url
    assert call(url + "/v2/models/digits/infer", b"{}", method="POST").body == answer


def test_a_backend_that_takes_nothing_stops_its_client_and_not_our_memory(route):
    slow = threading.Event()
    slow.set()
    backend = Digest(slow=slow)
    router = route(whole(backend), limits={"body_bytes": 512 * MIB})
    before = resident_mb(router.process)
    body = os.urandom(64 * MIB)
    client = Connection(router.url)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(client.ask(infer_request(body=body))[2]))
    asking.start()
    wait_until(lambda: resident_mb(router.process) > before, 10, "some of it has come")
    time.sleep(0.5)  # it could all have come by now
    assert resident_mb(router.process) < before + 16 and answers == []
    slow.clear()
    asking.join(30)
    assert answers == [digest_of(body)]


def test_a_client_that_reads_nothing_stops_its_backend_and_not_our_memory(route):
    router = route(whole(Digest(os.urandom(64 * MIB))))
    before = resident_mb(router.process)
    with socket.create_connection(("127.0.0.1", int(router.url.rsplit(":", 1)[1]))) as client:
        client.sendall(infer_request())
        client.recv(1)
        time.sleep(0.5)
        assert resident_mb(router.process) < before + 16
    assert call(router.url + "/v2/health/live").json == {"live": True}


# --- endpoints ------------------------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_keeps_failing_is_ejected_though_it_passes_its_health_check(route, backend):
    bad, good = backend("1", error_rate=1), backend("1")
    router = route(service(bad, good))
    statuses = [status for status, _, _ in ask(router.url, 200)]
    assert statuses.count(500) == 5 and bad.inferences == 5
    assert router.metric("serin_route_ejections_total") == 1 and router.healthy("1") == 2


def test_an_endpoint_that_fails_slowly_is_left_out_from_its_failure_on(route, backend):
    """Counted from the start of what failed, its time would be over before it begins."""
    bad, good = backend("1", error_rate=1, delay=2), backend("1")
    slow = service(bad, good)
    slow["versions"][0]["ejection"] = {"failures": 1, "time": "1s"}
    router = route(slow)
    for _ in range(100):  # both are idle: either may be chosen
        if bad.inferences == 0:
            ask(router.url, 1)
    assert bad.inferences == 1 and router.metric("serin_route_ejections_total") == 1
    assert {status for status, _, _ in ask(router.url, 20)} == {200} and bad.inferences == 1


def test_requests_that_wait_at_an_endpoint_that_stopped_are_asked_elsewhere(route, backend):
    """Its connections stay open, so only its health check tells. One that is slow and healthy is left alone."""
    stopped, well = backend("1", delay=0.3), backend("1")
    router = route(service(stopped, well))
    wait_until(lambda: ask(router.url, 1) and stopped.inferences, 10, "asked")
    assert router.metric("serin_route_retries_total") == 0
    stopped.faults = Faults(hang=True)
    with Traffic(router.url, clients=4) as traffic:
        wait_until(lambda: stopped.under_way > 0 and traffic.answers > 100, 10, "one of them waits")
        stopped.healthy = False
    assert traffic.failures == [] and router.metric("serin_route_retries_total") >= 1 and stopped.under_way > 0


def test_no_request_is_asked_elsewhere_where_all_fail_their_health_check(route, backend):
    """Then the check may be wrong, and asking twice would be no help."""
    endpoints = backend("1", hang=True), backend("1", hang=True)
    router = route(service(*endpoints))
    for each in endpoints:
        each.healthy = False
    wait_until(lambda: router.healthy("1") == 0, 10, "both left out")
    assert ask(router.url, 1, headers={"x-serin-timeout-ms": "500"})[0][0] == 504
    assert router.metric("serin_route_retries_total") == 0 and sum(each.inferences for each in endpoints) == 1


def test_a_version_that_fails_as_a_whole_is_not_emptied_by_ejections(route, backend):
    router = route(service(backend("1", error_rate=1), backend("1", error_rate=1)))
    assert {status for status, _, _ in ask(router.url, 100)} == {500}
    assert router.metric("serin_route_ejections_total") == 1


def test_an_endpoint_never_works_on_more_than_its_limit_and_who_is_over_it_is_told(route, backend):
    busy = backend("1", delay=0.05)
    limited = service(busy)
    limited["versions"][0]["max_in_flight"] = 4
    router = route(limited)
    with Traffic(router.url, clients=12) as traffic:
        wait_until(lambda: traffic.statuses[200] > 20 and traffic.statuses[503] > 20, 20, "some served, some refused")
    assert busy.busiest <= 4 and set(traffic.statuses) == {200, 503}


# --- second tries -----------------------------------------------------------------------------------------------------------------------


def test_f10_failures_of_stable_are_tried_again_within_the_budget_only(route, backend):
    first, second = backend("1"), backend("1")
    router = route(service(first, second))
    first.faults = second.faults = Faults(delay=0.05, reset_rate=1)
    with Traffic(router.url, clients=40) as traffic:
        wait_until(lambda: traffic.statuses[502] > 200, 20, "everybody refused")
    tried = first.inferences + second.inferences
    assert tried <= 1.35 * traffic.answers + 40  # a fifth of what is under way, and three
    assert router.metric("serin_route_retries_denied_total") > 0


def test_an_endpoint_that_says_503_is_replaced_by_another_one_that_is_healthy(route, backend):
    """As a container that began again under a pod that is still ready, and loads its models."""
    loading, other = backend("1", status=503), backend("1")
    router = route(service(loading, other))
    wait_until(lambda: router.healthy("1") == 2, 10, "health checked")
    assert [status for status, _, _ in ask(router.url, 50)] == [200] * 50 and 0 < loading.inferences <= 50
    assert router.metric("serin_route_retries_total") == loading.inferences
    other.faults = Faults(status=503)
    seen = loading.inferences + other.inferences
    assert [status for status, _, _ in ask(router.url, 5)] == [503] * 5 and loading.inferences + other.inferences == seen + 10, "one other, and once"
    other.down()
    wait_until(lambda: router.healthy("1") == 1, 10, "noticed")
    seen = loading.inferences
    answers = ask(router.url, 5)
    assert [status for status, _, _ in answers] == [503] * 5 and loading.inferences == seen + 5, "no other"
    assert b"no endpoint" not in answers[0][2], "its own words"


class Cut(Digest):
    """Ends every answer in the middle, some time after its first half."""

    asked = 0

    def _send(self, connection, body):
        if body == b"ready":
            return super()._send(connection, body)
        self.asked += 1
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n" + b"x" * 100_000 + b"half")
        self.slow.wait(10)
        connection.shutdown(socket.SHUT_RDWR)


def test_nothing_is_tried_again_once_the_client_has_a_byte_of_the_answer(route):
    let_go = threading.Event()
    first, second = Cut(slow=let_go), Cut(slow=let_go)
    router = route(whole(first, second))
    with socket.create_connection(("127.0.0.1", int(router.url.rsplit(":", 1)[1])), timeout=10) as client:
        client.sendall(infer_request())
        answer = b""
        while not answer.endswith(b"half"):
            answer += client.recv(4096)
        let_go.set()
        assert client.recv(4096) == b"", "the client can tell that its answer is not whole"
    assert first.asked + second.asked == 1


def test_a_slow_canary_is_hedged_with_stable_and_judged_all_the_same(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: traffic.answers > 500, 30, "stable's latencies known")
    canary.faults = Faults(delay=1.0)
    router.start_rollout(steps=[hold(50)], guard={"latency": {"floor": "1h"}})
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: router.metric("serin_route_hedges_total") >= 20, 30, "hedged")
    assert traffic.failures == []
    # Each client that leaves may take its last request with it.
    wait_until(lambda: router.rollout()["answers"]["canary"] >= 10, 10, "the canary's own answers are judged when they come")


def on_canary(router, endpoints=1, **asked):
    """A rollout that sends everybody to version 2: all but one in a million."""
    wait_until(lambda: router.healthy("2") == endpoints, 10, "health checked")
    router.start_rollout(steps=[hold(99.9999)], **asked)


def known_pace(router, body=BODY):
    """Stable is asked until the router knows how long it usually takes: then it hedges."""
    ask(router.url, 150, body=body)
    time.sleep(1.2)  # it looks once a second


def test_a_hedge_that_finds_stable_full_leaves_the_canary_alone(route, backend):
    stable, canary = backend("1"), backend("2")
    limited = service(stable, canary, force_header=True)
    limited["versions"][0]["max_in_flight"] = 1
    router = route(limited)
    known_pace(router)
    on_canary(router)
    canary.faults, stable.faults = Faults(delay=0.5), Faults(hang=True)
    with Connection(router.url) as busy:
        busy.send(infer_request(headers={"x-serin-force-version": "1"}))
        wait_until(lambda: stable.under_way == 1, 10, "stable is full")
        assert [(status, headers["x-serin-version"]) for status, headers, _ in ask(router.url, 1)] == [(200, "2")]
    assert router.metric("serin_route_hedges_total") == router.metric("serin_route_retries_total") == 0


def test_a_large_failure_of_a_hedged_canary_is_evidence_too(route, backend):
    """Its answer stops at what is kept of one while stable is waited for, and must go on afterwards."""
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary))
    known_pace(router)
    on_canary(router)
    canary.faults = Faults(delay=0.1, garbage=b"HTTP/1.1 500 No\r\ncontent-length: %d\r\n\r\n" % (3 * MIB) + b"x" * (3 * MIB))
    stable.faults = Faults(delay=0.5)
    assert {(status, headers["x-serin-version"]) for status, headers, _ in ask(router.url, 2)} == {(200, "1")}
    assert router.metric("serin_route_hedges_total") == canary.served == 2
    wait_until(lambda: router.rollout()["answers"]["canary"] == 2, 10, "both are judged")


# --- requests that take their time ------------------------------------------------------------------------------------------------------


def test_a_hedged_canary_gets_the_rest_of_its_request_and_is_judged_by_what_it_then_says(route):
    """It reads slowly, stable has answered the client: half a request would wait for ever, and that is not the canary's fault."""
    held = threading.Event()
    stable, canary = Digest(), Digest(slow=held, window=4096)
    versions = [{"name": name, "endpoints": [{"url": server.url}], "health": {**QUICK_HEALTH, "path": "/"}} for name, server in
                (("1", stable), ("2", canary))]
    router = route({"name": "digits", "initial_stable": "1", "versions": versions})
    body = os.urandom(900_000)
    known_pace(router, body)
    on_canary(router)
    held.set()
    status, headers, answer = ask(router.url, 1, body=body)[0]
    assert (status, headers["x-serin-version"], answer) == (200, "1", digest_of(body))
    assert canary.taken < len(body) and router.rollout()["answers"]["canary"] == 0
    held.clear()
    wait_until(lambda: router.rollout()["answers"]["canary"] == 1, 10, "judged")
    assert canary.taken == len(body) and next(line for line in router.rollout()["evidence"] if line["guard"] == "err")["bits"] == 0


def slowly(router, pause, headers=None):
    """A request whose last byte comes that much later than what is enough to begin with: (status, headers)."""
    request = infer_request(body=BODY + b" " * 70_000, headers=headers)
    with Connection(router.url) as client:
        client.send(request[:-1])
        time.sleep(pause)
        return client.ask(request[-1:])[:2]


def test_the_time_that_a_client_takes_to_send_is_not_the_canarys(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary))
    on_canary(router, guard={"latency": {"deadline": "500ms", "p99": "400ms", "floor": "1h"}, "whenStableBreachesToo": "rollback"})
    for _ in range(4):
        status, headers = slowly(router, 0.7)
        assert (status, headers["x-serin-version"]) == (200, "2"), "the deadline was not the canary's"
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and rollout["answers"]["canary"] == 4


def test_a_request_that_never_comes_whole_says_nothing_about_the_canary(route, backend):
    judged = service(backend("1"), backend("2"), backend("2"))
    judged["versions"][1]["ejection"] = {"failures": 1, "time": "1h"}
    router = route(judged)
    on_canary(router, endpoints=2)
    assert slowly(router, 0.7, {"x-serin-timeout-ms": "300"})[0] == 504
    assert router.rollout()["answers"]["canary"] == router.metric("serin_route_ejections_total") == 0
    assert ask(router.url, 1)[0][1]["x-serin-version"] == "2" and router.rollout()["answers"]["canary"] == 1


def test_a_canary_that_hangs_has_no_more_than_its_share_under_way(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary, request_timeout="3s"))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[hold(10)], shield={"hedge": "off", "retryStable": False})
    canary.faults = Faults(hang=True)
    with Traffic(router.url, clients=30) as traffic:
        wait_until(lambda: router.metric("serin_route_exposure_capped_total") > 0, 20, "capped")
        wait_until(lambda: traffic.versions["1"] > 500, 20, "stable serves everybody else")


# --- request smuggling ------------------------------------------------------------------------------------------------------------------


def smuggling_rows():
    """Each with a hidden GET /smuggled (tests/runtime/net/smuggling_rows.h)."""
    printed = subprocess.run([ROOT / "build/tests/print_smuggling_rows"], check=True, capture_output=True, text=True).stdout
    for line in printed.splitlines():
        name, _, message = line.partition("\t")
        yield name, bytes.fromhex(message).replace(b" /echo ", b" /v2/models/digits/infer ")


def test_ht_nothing_ambiguous_reaches_a_backend(route, backend):
    """HT1 to HT25: what the server refuses by itself (tests/runtime/net) is not forwarded either, neither whole nor in part, also behind a valid request."""
    behind = backend("1")
    router = route(service(behind))
    port = int(router.url.rsplit(":", 1)[1])
    valid = infer_request()
    for count, (name, message) in enumerate(smuggling_rows(), 1):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(valid + message)
            answers = b"".join(iter(lambda: client.recv(65536), b""))
        statuses = re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)
        assert len(statuses) == 2 and statuses[0] == b"200" and statuses[1][:1] in b"45", (name, answers)
        assert behind.inferences == count, name
    assert router.metric("serin_http_bad_requests_total") >= count
    assert all(path.endswith("/infer") for _, _, path in behind.requests)


def test_ht_what_is_forwarded_has_one_length_and_no_trace_of_the_connection(route, backend):
    """HT15, HT17, HT21, HT23, HT25: chunks end at the router, and so does what Connection lists."""
    behind = backend("1")
    client = Connection(route(service(behind)).url)
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: X-Batch, keep-alive\r\nX-Batch: 1\r\n\r\n"
    assert client.ask(head + b"2;x=y\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n")[0] == 200
    forwarded = behind.last()
    assert ("content-length" in forwarded) != ("transfer-encoding" in forwarded)
    assert not {"connection", "x-batch", "x-trailer", "trailer"} & forwarded.keys()
