"""What a real Triton answered to more than a thousand requests, good and bad, beside what Serin answers to the same."""

import contextlib
import gzip
import json
import pathlib
import subprocess
import time

import pytest

import asked_control
import asking
import comparing
import models
from differences import DIFFERENCES, listed

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIALECTS = ("serin", "tritonserver")


@pytest.fixture(scope="module")
def recorded():
    with gzip.open(pathlib.Path(__file__).parent / "recorded.jsonl.gz", "rt") as lines:
        return [asking.from_line(line) for line in lines]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models.write_serin_repository(folder)
    return folder


@contextlib.contextmanager
def served(dialect, repository, folder, *more):
    """Its ports."""
    ready = folder / "ready"
    command = [ROOT / "build/serin", "serve", *(["--as", dialect] if dialect != "serin" else []), "--models", repository, "--address", "127.0.0.1", "--port", "0",
               "--grpc-port", "0", "--metrics-port", "0", "--drain-seconds", "0", "--ready-file", ready, *more]  # fmt: skip
    server = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert server.poll() is None and time.monotonic() < deadline, "serin serve did not get ready"
            time.sleep(0.05)
        yield json.loads(ready.read_text())
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module", params=DIALECTS)
def found(request, recorded, repository, tmp_path_factory):
    """(exchange's name, aspect, Triton's, Serin's, the row of the list that fits or None), of every difference."""
    rows = []
    for kind, arguments in ((None, ()), (asked_control.SERVER, asked_control.SERIN[request.param])):
        with served(request.param, repository, tmp_path_factory.mktemp("serve"), *arguments) as ports, asking.channel_to(ports["grpc"]) as channel:
            for exchange in (one for one in recorded if one.get("server") == kind):
                answer = asking.ask(ports["http"], channel, exchange)
                for aspect, triton, serin in comparing.differences(exchange, exchange["answer"], answer):
                    rows.append((exchange["name"], aspect, triton, serin, listed(exchange["name"], aspect, triton, serin, request.param)))
    return request.param, rows


def test_enough_is_recorded(recorded):
    assert len(recorded) >= 500
    assert len({repr(sorted((key, str(value)) for key, value in exchange.items())) for exchange in recorded}) == len(recorded), "one is there twice"


def test_every_difference_is_listed(found):
    dialect, rows = found
    unlisted = [f"{name}: {aspect} is {serin!r}, Triton's {triton!r}"[:300] for name, aspect, triton, serin, row in rows if row is None]
    assert not unlisted, f"--as {dialect}, {len(unlisted)} differences that no row of differences.py explains:\n" + "\n".join(unlisted[:200])


def test_every_row_of_the_list_occurs(found):
    dialect, rows = found
    used = {row for *_, row in rows}
    unused = [f"{' '.join(row.names)}: {row.aspect} {row.triton!r} {row.serin!r} ({row.why})" for row in DIFFERENCES if dialect in row.dialects and row not in used]
    assert not unused, f"--as {dialect} answers as Triton does:\n" + "\n".join(unused)
