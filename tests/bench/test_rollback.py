"""bench/rollback without a router: faults reach whom they are for, figures count what never happens as the worst, rules read the tapes of a run."""

import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import rollback  # noqa: E402
import rollback_runs as runs  # noqa: E402
from analysis import Answer  # noqa: E402

CASES = {case.title: case for cases in runs.CASES.values() for case in cases}


def answers(case, version, requests):
    """What clients get from one version, without a router."""
    with runs.Model(version, case, version == "2") as model:
        with runs.Clients(f"{model.origin}", 2000, case.classes) as clients:
            while len(clients.answers) < requests:
                runs.time.sleep(0.01)
    return [answer for _, answer in clients.answers]


def share(found, what):
    return sum(map(what, found)) / len(found)


@pytest.mark.parametrize("title, bad", [("fails for 50 %", 0.5), ("cuts off 100 %", 1), ("is wrong for 20 %", 0.2), ("is as good as stable", 0)])
def test_a_bad_answer_is_seen_by_the_client_and_only_the_canary_gives_it(title, bad):
    found = answers(CASES[title], "2", 400)
    assert share(found, lambda a: a.bad) == pytest.approx(bad, abs=0.12)
    assert share(found, lambda a: a.cut_off) == (1 if "cuts off" in title else 0)
    assert share(answers(CASES[title], "1", 100), lambda a: a.bad) == 0


def test_a_leak_is_exported_and_only_the_canary_has_it(monkeypatch):
    case = CASES["leaks 10 % of its memory a minute"]
    stable, canary = runs.Model("1", case, False), runs.Model("2", case, True)
    monkeypatch.setattr(runs.time, "monotonic", lambda began=canary.began: began + 600)
    assert canary.exported()["process_resident_memory_bytes"] == pytest.approx(2 * runs.MEMORY, rel=0.02)
    assert stable.exported()["process_resident_memory_bytes"] == pytest.approx(runs.MEMORY, rel=0.02)


def test_those_beside_a_bad_canary_are_well():
    with runs.models(CASES["is one of three, and fails for 50 %"]) as backends:
        assert [(backend.version, backend.faults.error_rate) for backend in backends] == [("1", 0), ("2", 0.5), ("3", 0), ("4", 0)]


def test_the_head_of_an_answer_that_is_cut_off_is_known():
    assert {answer.status for answer in answers(CASES["cuts off 100 %"], "2", 20)} == {200}


def test_failures_of_the_other_classes_are_not_the_canarys_doing():
    case = CASES["fails for one class, 3 % of the requests"]
    stable, canary = answers(case, "1", 1500), answers(case, "2", 1500)
    assert share(stable, lambda a: a.status == 500) == pytest.approx(0.05, abs=0.03) and share(stable, lambda a: a.bad) == 0
    assert share(canary, lambda a: a.bad) == pytest.approx(0.03, abs=0.02)
    assert share(canary, lambda a: a.status == 500) == pytest.approx(0.08, abs=0.03)


def test_only_the_tail_of_the_canary_is_slower():
    random.seed(5)
    model = runs.Model("2", CASES["has p99 x3 only"], True)
    drawn = sorted(random.lognormvariate(0, runs.SPREAD) * (runs.TAIL_FACTOR if random.random() < runs.TAIL else 1) for _ in range(200_000))
    usual = sorted(random.lognormvariate(0, runs.SPREAD) for _ in range(200_000))
    assert model.tail and not runs.Model("1", CASES["has p99 x3 only"], False).tail
    assert drawn[198_000] / usual[198_000] == pytest.approx(3, rel=0.07) and drawn[100_000] / usual[100_000] == pytest.approx(1, rel=0.03)


def test_a_run_that_never_ends_is_the_worst():
    assert runs.of_many([3, None, 1]) == (3, None) and runs.of_many([None, None, 1]) == (None, None) and runs.of_many([2, 1]) == (1, 2)
    figures = rollback.Figures([runs.Outcome(True, 4, 0.5, 2), runs.Outcome(False, 90, 9, 5, bad_in_an_hour=4500), runs.Outcome(True, 8, 1.5, 3)])
    assert (figures.out, figures.canary, figures.seconds, figures.bad) == (2, (8, None), (1.5, None), (3, 4500))
    assert rollback.both(figures.seconds) == "1.5 / never"


def test_rules_read_the_tapes_of_one_run():
    tapes = {"1": [Answer(0, 200, False, 0.02)] * 9, "2": [Answer(0, 500, False, 0.02, bad=True), Answer(0, 200, False, 0.02)]}
    found = rollback.by_rules(tapes)
    assert set(found) == set(rollback.RULES)
    assert found["Flagger's analysis"].out and found["Flagger's analysis"].seconds == 300 and not found["Flagger's analysis"].stable_out
    assert found["Argo's analysis"].seconds == pytest.approx(925, abs=10)
    envoy = found["Envoy's outlier detection"]
    assert envoy.out and envoy.ejections > 5 and envoy.bad < envoy.bad_in_an_hour < 3000  # it comes back, again and again


def test_every_row_has_serin_first_and_its_peers_after_it():
    for case in CASES.values():
        assert rollback.contenders(case)[0] == "Serin" and set(rollback.RULES) <= set(rollback.contenders(case))
    assert rollback.proxies_of(CASES["is twice as slow"]) == ["HAProxy observe"]
    assert rollback.proxies_of(CASES["cuts off 10 %"]) == list(runs.HAPROXIES)
