"""What is not quite HTTP, sent to the runtime and to the router: a clear refusal, and the next client does not notice.

The names begin with the row of the project's list of bad input. Parsers are tested byte by byte in tests/runtime/net; here it is the whole program,
with the limits as an operator sets them.
"""

import contextlib
import json
import os
import re
import resource
import socket
import types

import pytest

from backends import Backend, Faults
from conftest import MODELS, ON_FREE_PORTS, Process, call, infer_body, resident_mb, wait_until
from routers import Router, service, write_config
from test_data_path import smuggling_rows
from traffic import BODY, Connection, ask, infer_request

BODY_LIMIT = 65_536
DIGIT = infer_body([[0.0] * 64])


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    process = Process(tmp_path_factory.mktemp("runtime"), "serve", "--models", MODELS, *ON_FREE_PORTS,
                      "--max-body-bytes", BODY_LIMIT)
    yield types.SimpleNamespace(process=process, url=process.url, port=process.ports["http"], model="/v2/models/digits/versions/1")
    assert process.end() == 0


@pytest.fixture(scope="module")
def router(tmp_path_factory):
    folder = tmp_path_factory.mktemp("router")
    with Backend("1") as stable:
        limits = {"body_bytes": BODY_LIMIT, "header_timeout": "300ms", "body_timeout": "300ms"}
        process = Router(folder, "route", "--drain-seconds", 0, "--config", write_config(folder, service(stable), limits=limits))
        yield types.SimpleNamespace(process=process, url=process.url, port=process.ports["http"], model="/v2/models/digits", backend=stable)
        assert process.end() == 0


@pytest.fixture(params=["runtime", "router"])
def server(request):
    """Each of the two; alive and well after every test."""
    found = request.getfixturevalue(request.param)
    yield found
    assert_well(found)


def assert_well(server):
    answer = call(server.url + server.model + "/infer", DIGIT)
    assert answer.status == 200, answer.body


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    connection.close()


def converse(server, sent):
    """Sends bytes on a new connection and reads to its end, or to the end of the first answer: (status, {header: value}, body, closed)."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        with contextlib.suppress(ConnectionError):  # refused before all of it was read
            connection.sendall(sent)
        stream = connection.makefile("rb")
        line = stream.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        headers = {}
        while (field := stream.readline().strip()):
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", 0)))
        closed = headers.get("connection", "").lower() == "close" and stream.read() == b""
        return int(line.split()[1]), headers, body, closed


def post(server, *lines, body=b""):
    return "\r\n".join([f"POST {server.model}/infer HTTP/1.1", "Host: x", *lines]).encode() + b"\r\n\r\n" + body


def assert_refused(server, sent, *statuses):
    status, _, body, closed = converse(server, sent)
    assert status in statuses and b'"error"' in body and closed, (status, body, closed)


def test_h1_a_length_and_chunks_at_once(server):
    assert_refused(server, post(server, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400)


def test_h2_two_lengths(server):
    assert_refused(server, post(server, "Content-Length: 5", "Content-Length: 6", body=b"123456"), 400)


def test_h3_to_h9_what_two_parsers_read_differently(server):
    """Lengths, chunks, line ends, names, values, first lines and hosts of every family of smuggling bugs: refused, and whatever is hidden in it not answered."""
    for name, message in smuggling_rows():
        status, _, body, closed = converse(server, message)
        assert 400 <= status < 600 and b'"error"' in body and closed, (name, status, body)


@pytest.mark.parametrize("size", ["0x2e", "+5", "-1", "0_2e", "", " 5", "00000000000000005", "ffffffffffffffff1", "fffffffffffffffe"])
def test_h5_chunk_sizes(server, size):
    assert_refused(server, post(server, "Transfer-Encoding: chunked", body=size.encode() + b"\r\nhello\r\n0\r\n\r\n"), 400, 413)


def test_h10_a_request_line_beyond_8_kib(server):
    assert_refused(server, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414)


@pytest.mark.parametrize("headers", [[f"X-{i}: 1" for i in range(200)], ["X-Big: " + "a" * 70_000]], ids=["200-headers", "70-kib"])
def test_h10_headers_beyond_the_limits(server, headers):
    assert_refused(server, post(server, *headers, "Content-Length: 0"), 431)


def test_h11_a_body_announced_beyond_the_limit_is_refused_before_it_comes(server):
    assert_refused(server, post(server, f"Content-Length: {BODY_LIMIT + 1}"), 413)


def test_h11_a_body_that_grows_beyond_the_limit_chunk_by_chunk(server):
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    assert_refused(server, post(server, "Transfer-Encoding: chunked", body=chunk * (BODY_LIMIT // 0x1000 + 2)), 413)


def test_h12_a_body_of_tiny_chunks(server):
    assert_refused(server, post(server, "Transfer-Encoding: chunked", body=b"1\r\n \r\n" * 70_000 + b"0\r\n\r\n"), 400, 413)


@pytest.mark.parametrize("body", [b"1;" + b"x" * (1 << 20) + b"\r\n \r\n0\r\n\r\n", b"1\r\n \r\n0\r\n" + b"X: 1\r\n" * (1 << 17) + b"\r\n"],
                         ids=["extension", "trailers"])  # fmt: skip
def test_h13_chunk_extensions_and_trailers_of_a_megabyte(server, body):
    assert_refused(server, post(server, "Transfer-Encoding: chunked", body=body), 400, 413, 431)


def test_h15_expectations(server):
    assert_refused(server, post(server, "Expect: 200-maybe", "Content-Length: 2", body=b"{}"), 417)
    body = json.dumps(DIGIT).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(post(server, "Expect: 100-continue", f"Content-Length: {len(body)}"))
        assert client.recv(25, socket.MSG_WAITALL) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert client.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"


def test_h19_a_valid_request_before_an_invalid_one(server):
    """The first is answered, the second refused, and what is behind that not looked at."""
    valid = f"GET {server.model} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(valid + b"GET / HTTP/1.1\r\nHost : x\r\n\r\n" + valid)
        answers = b"".join(iter(lambda: client.recv(65_536), b""))
    assert re.findall(rb"HTTP/1\.1 (\d+)", answers)[1:] == [b"400"]


def test_h20_a_body_where_none_is_usual_is_no_request(server):
    hidden = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    for method in ("GET", "HEAD", "DELETE"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            head = f"{method} /v2/health/live HTTP/1.1\r\nHost: x\r\nContent-Length: {len(hidden)}\r\nConnection: close\r\n\r\n"
            client.sendall(head.encode() + hidden)
            assert b"".join(iter(lambda: client.recv(65_536), b"")).count(b"HTTP/1.1 ") == 1, method


def test_h23_other_protocols_are_not_spoken(server):
    for request in (b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n"):
        assert 400 <= converse(server, request)[0] < 600
    status, headers, _, _ = converse(server, b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                                     b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")  # fmt: skip
    assert status == 200 and "upgrade" not in headers


def test_h27_no_header_comes_of_a_name(server):
    for name in ("a%0d%0ax-injected:%201", "a\u010dx-injected: 1", "a%e5%98%8a%e5%98%8dx-injected:%201"):  # line ends, and what becomes one when cut to a byte
        path = f"/v2/models/{name}/infer".encode("latin-1", "xmlcharrefreplace")
        status, headers, _, _ = converse(server, b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert status in (400, 404) and "x-injected" not in headers


def test_h16_clients_that_send_nothing_more_keep_nobody_waiting(server):
    halves = [b"POST /v2", post(server, "Content-Length: 1000", body=b"{"), post(server, "Transfer-Encoding: chunked", body=b"10\r\nabc")]
    with contextlib.ExitStack() as stack:
        for half in halves * 20:
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port))).sendall(half)
        for _ in range(5):
            assert_well(server)


def test_h17_ten_thousand_idle_connections_cost_little_and_hold_nobody_up(route, backend):
    count = 10_000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count + 500:
        pytest.skip(f"only {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    router = route(service(backend("1")), limits={"connections": count + 100})
    before = resident_mb(router.process)
    address = ("127.0.0.1", router.ports["http"])
    request = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address)) for _ in range(count)]
        for client in idle[::2]:  # half of them have asked once
            client.sendall(request)
        for client in idle[::2]:
            assert client.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: router.metric("serin_http_connections", listener="data") == count, 20, "all accepted")
        assert resident_mb(router.process) - before < 200
        assert {status for status, _, _ in ask(router.url, 100)} == {200}
    wait_until(lambda: router.metric("serin_http_connections", listener="data") == 0, 20, "all gone")


def test_h17_without_descriptors_who_is_connected_is_served_and_the_others_wait(route, backend):
    router = route(service(backend("1")))
    address = ("127.0.0.1", router.ports["http"])
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Connection(router.url))
        assert client.ask(infer_request())[0] == 200  # its connection to the backend stays, too
        open_now = len(os.listdir(f"/proc/{router.process.pid}/fd"))
        resource.prlimit(router.process.pid, resource.RLIMIT_NOFILE, (open_now + 10, open_now + 10))
        waiting = [stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(50)]
        wait_until(lambda: "out of file descriptors" in router.log, 10, "told")
        assert {client.ask(infer_request())[0] for _ in range(20)} == {200}
        for each in waiting:
            each.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for each in waiting:
            assert each.recv(12) == b"HTTP/1.1 200"
            each.close()
        assert router.log.count("out of file descriptors") < 1000, "it pauses instead of spinning"


HALVES = {"head": b"POST /v2 HTTP/1.1\r\nHost:",
          "body": b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_h16_what_does_not_come_in_time_is_408(router, half):
    status, _, _, closed = converse(router, half)
    assert status == 408 and closed
    assert_well(router)


def test_h16_a_client_that_never_reads_keeps_nobody_waiting(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=1) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        request = f"GET {server.model} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        with contextlib.suppress(OSError):  # it stops reading us once we stop reading it
            for _ in range(2000):
                connection.sendall(request * 100)
        for _ in range(5):
            assert_well(server)


@pytest.mark.parametrize("half", ["head", "body", "answer"])
def test_h18_a_reset_at_any_point_is_one_clients_own_affair(server, half):
    whole = post(server, f"Content-Length: {len(BODY)}", body=BODY)
    sent = {"head": whole[:30], "body": whole[:-10], "answer": whole}[half]
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(sent)
            reset(connection)


@pytest.mark.parametrize("leave", ["closes", "half-closes", "resets"])
def test_h18_the_work_for_a_client_that_leaves_is_cancelled(router, leave):
    """The router hangs up on the runtime, too: nobody works for a dead client."""
    router.backend.faults = Faults(garbage=b"HTTP/1.1 200 OK\r\n", stays_open=True)
    before = router.backend.inferences
    with socket.create_connection(("127.0.0.1", router.port)) as connection:
        connection.sendall(post(router, f"Content-Length: {len(BODY)}", body=BODY))
        wait_until(lambda: router.backend.inferences > before, 10, "the request under way")
        if leave == "half-closes":
            connection.shutdown(socket.SHUT_WR)
        elif leave == "resets":
            reset(connection)
        else:
            connection.close()
        wait_until(lambda: router.backend.under_way == 0, 10, "the backend's connection ended")
    router.backend.faults = Faults()
    assert_well(router)


def test_h22_methods_and_paths(server):
    status, headers, _, _ = converse(server, f"BREW {server.model}/infer HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert status in (405, 501) and (status == 501 or "POST" in headers["allow"])
    assert converse(server, b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 404
    status, headers, body, _ = converse(server, b"HEAD /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert status == 200 and body == b""
    assert converse(server, b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")[0] in (200, 204, 400, 404, 405)


# --- H26: backends that do not speak HTTP well --------------------------------------------------------------------------------------

BAD_ANSWERS = {
    "no-status-line": b"I am not a web server\r\n\r\n",
    "a-status-that-is-no-number": b"HTTP/1.1 2OO OK\r\nContent-Length: 0\r\n\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
    "a-length-and-chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a-bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "a-head-of-1-mb": b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
    "many-interim-answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "an-early-end": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
    "nothing": b"\r\n",
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_h26_a_backend_that_answers_nonsense_is_a_bad_gateway(router, answer):
    router.backend.faults = Faults(garbage=answer)
    refused = call(router.url + "/v2/models/digits/infer", DIGIT)
    router.backend.faults = Faults()
    assert refused.status == 502 and "service 'digits' version '1'" in refused.error
    assert_well(router)  # and not on that connection


def test_h26_a_backend_that_is_not_there_is_told_from_one_that_closes_early(router):
    """503: nobody saw the request, ask again. 502: somebody may have."""
    router.backend.faults = Faults(reset=True)
    assert call(router.url + "/v2/models/digits/infer", DIGIT).status == 502
    router.backend.faults = Faults()
    router.backend.down()
    try:
        refused = call(router.url + "/v2/models/digits/infer", DIGIT)
    finally:
        router.backend.up()
    assert refused.status == 503 and "cannot connect: Connection refused" in refused.error and refused.headers["retry-after"] == "1"


UNFINISHED = {"none": b"", "half-a-head": b"HTTP/1.1 200 OK\r\n", "half-a-body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}


@pytest.mark.parametrize("answer", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_h26_a_backend_that_never_ends_is_cut_off_at_the_deadline(router, answer):
    router.backend.faults = Faults(garbage=answer, stays_open=True) if answer else Faults(hang=True)
    refused = call(router.url + "/v2/models/digits/infer", DIGIT, {"x-serin-timeout-ms": "300"})
    router.backend.faults = Faults()
    assert refused.status == 504 and "service 'digits' version '1'" in refused.error
    assert_well(router)


def test_h26_surplus_bytes_after_an_answer_are_nobodys_answer(router):
    """A second answer that nobody asked for must not be given to the next client on that connection."""
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
    router.backend.faults = Faults(garbage=first + smuggled, stays_open=True)
    assert call(router.url + "/v2/models/digits/infer", DIGIT).body == b"first"
    router.backend.faults = Faults()
    for _ in range(20):
        assert b"smuggled" not in call(router.url + "/v2/models/digits/infer", DIGIT).body
