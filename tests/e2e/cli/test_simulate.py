"""`serin rollout simulate`: the judge that decides real rollouts, on recorded traffic; and which access logs are read."""

import json
import random

import pytest

from conftest import ROOT, serin
from routers import spec

DATE = "03/Feb/2026:04:{:02d}:{:02d} +0000"


def traffic(requests=20_000, rate=200, errors=0.001):
    """(second, status, latency in seconds)"""
    draw = random.Random(7)
    return [(i / rate, 500 if draw.random() < errors else 200, draw.lognormvariate(-4.6, 0.5)) for i in range(requests)]


def json_lines(rows):
    return "".join(json.dumps({"time": 1_770_000_000 + at, "status": status, "request_time": latency}) + "\n" for at, status, latency in rows)


def combined(rows):
    return "".join(f'192.0.2.7 - - [{DATE.format(int(at) // 60, int(at) % 60)}] "POST /v2/x HTTP/1.1" {status} 17 "-" "a \\"b\\"" {latency:.3f}\n'
                   for at, status, latency in rows)


def csv(rows):
    return "time,status,latency_ms\n" + "".join(f"{at},{status},{1000 * latency}\n" for at, status, latency in rows)


@pytest.fixture
def simulate(tmp_path):
    def run(log, asked=None, runs=10, **options):
        (tmp_path / "rollout.yaml").write_text(json.dumps(asked or spec(steps=[5, 50, 100], guard={"latency": {"baseline": 1000, "floor": "1ms"}})))
        (tmp_path / "access.log").write_text(log)
        flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        return serin("rollout", "simulate", tmp_path / "rollout.yaml", "--log", tmp_path / "access.log", "--runs", runs, *flags, timeout=120)
    return run


def cases(done):
    assert done.returncode == 0, done.stderr
    return {case["case"]: case for case in json.loads(done.stdout)["cases"]}


def test_healthy_canaries_are_promoted_and_broken_ones_found(simulate, tmp_path):
    simulate(json_lines(traffic()), runs=1)
    done = serin("rollout", "simulate", tmp_path / "rollout.yaml", "--log", tmp_path / "access.log", "--runs", "20", "--json", timeout=120)
    found = cases(done)
    assert found["healthy"]["promoted"] == 20 and found["healthy"]["rolled_back"] == 0
    for name in ("errors 5 %", "errors 50 %", "latency x2"):
        assert found[name]["rolled_back"] == 20, found[name]
    quick, slow = found["errors 50 %"], found["errors 5 %"]
    assert quick["canary_requests"][0] < slow["canary_requests"][0] and quick["canary_failures"][1] < 60
    assert quick["seconds"][0] < slow["seconds"][0]
    assert json.loads(done.stdout)["requests"] == 20_000


def test_traffic_may_be_assumed_where_there_is_no_log_yet(tmp_path):
    (tmp_path / "rollout.yaml").write_text(json.dumps({**spec(steps=[5, 50, 100]), "guard": {"latency": {"floor": 0}}}))
    command = ["rollout", "simulate", tmp_path / "rollout.yaml", "--rate", "5", "--runs", "20", "--json"]
    found = cases(serin(*command, timeout=120))
    assert found["healthy"]["rolled_back"] == 0
    for name, most in (("errors 50 %", 20), ("latency x2", 60), ("latency x10", 20)):
        assert found[name]["rolled_back"] == 20 and found[name]["canary_requests"][0] <= most, found[name]
    for wrong in (["--rate", "0"], ["--rate", "fast"], [], ["--rate", "5", "--log", tmp_path / "rollout.yaml"]):
        refused = serin("rollout", "simulate", tmp_path / "rollout.yaml", *wrong)
        assert refused.returncode == 2 and refused.stderr, wrong


def test_people_read_what_their_traffic_is_and_what_follows(simulate):
    done = simulate(json_lines(traffic(2000)), runs=2)
    assert done.returncode == 0 and done.stdout.startswith("2000 requests in 10.0 s (200.0 a second)"), done.stdout
    assert "healthy" in done.stdout and "errors 50 %" in done.stdout and "0.1 %" in done.stdout


@pytest.mark.parametrize("write", [json_lines, combined, csv])
def test_three_kinds_of_logs_say_the_same(simulate, write):
    rows = [(i // 20, status, round(latency, 3)) for i, (_, status, latency) in enumerate(traffic(2000))]
    first = simulate(write(rows), runs=1).stdout.splitlines()[0]
    assert first == simulate(json_lines(rows), runs=1).stdout.splitlines()[0]
    assert first.startswith("2000 requests in 10")


def test_r8_no_traffic_is_no_verdict(simulate):
    asked = spec(steps=[1, 100], certify={"maxStepDuration": "10m"})
    done = simulate(json_lines(traffic(10, rate=0.01)), asked, runs=3)
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line[:1].isalpha()}
    assert done.returncode == 0 and lines["healthy"].split()[1:4] == ["0", "0", "3"], done.stdout


@pytest.mark.parametrize("log, words", [
    ("", ["empty"]), ("hello\nworld\n", ["2 of 2", "hello"]), ('{"a": 1}\n', ["1 of 1"]), ("time,status,latency_ms\n1,2\n", ["1 of 1"]),
    ("\x00\xff\n", ["1 of 1"]), ('{"time": 1e300, "status": 200, "request_time": 1}\n', ["1 of 1"]),
    ('{"time": 1, "status": 200, "request_time": -1}\n', ["1 of 1"]), ('{"time": 1, "status": 99999, "request_time": 1}\n', ["1 of 1"]),
])
def test_a_log_that_says_nothing_is_refused(simulate, log, words):
    done = simulate(log)
    assert done.returncode == 2 and done.stdout == "" and all(word in done.stderr for word in words), done.stderr


def test_a_few_odd_lines_are_skipped_and_counted(simulate):
    done = simulate(json_lines(traffic(1000)) + "rotated\n" + "x" * 100_000 + "\n", runs=1)
    assert done.returncode == 0 and "2 lines skipped" in done.stdout.splitlines()[0]


def test_c5_what_cannot_be_read_ends_with_2(tmp_path):
    sample = ROOT / "deploy" / "rollouts" / "canary.yaml"
    assert serin("rollout", "simulate", sample, "--log", "/nowhere").returncode == 2
    assert serin("rollout", "simulate", "/nowhere", "--log", sample).returncode == 2
    assert serin("rollout", "simulate", sample).returncode == 2
    assert serin("rollout", "simulate", sample, "--log", sample, "--runs", "0").returncode == 2
