"""The rules of bench/analysis.py on tapes whose outcome follows from the rules' documentation."""

import math
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from analysis import Answer, Argo, Envoy, Flagger, Prometheus, longer_tape, quantile  # noqa: E402

HOUR = 3600
GOOD, BAD, CUT = Answer(0, 200, False, 0.02), Answer(0, 500, False, 0.02), Answer(0, 200, True, 0.02)


def tape(*answers, rate=10, seconds=HOUR):
    return longer_tape(list(answers), rate, seconds, random.Random(5))


def test_a_longer_tape_has_the_rate_and_the_shares_of_what_was_recorded():
    drawn = tape(GOOD, GOOD, GOOD, BAD)
    assert len(drawn) == pytest.approx(36_000, rel=0.03) and sum(a.status == 500 for a in drawn) == pytest.approx(9_000, rel=0.05)
    assert drawn == sorted(drawn, key=lambda a: a.at)


def test_prometheus_sees_increases_between_scrapes_only():
    prometheus = Prometheus([Answer(at, 500 if at > 16 else 200, False, 0.02) for at in range(1, 60)], first_scrape=5)
    assert prometheus.scrapes[:3] == [5, 20, 35]
    assert prometheus.success_rate(19, 60) is None  # one scrape
    assert prometheus.success_rate(20, 60) == pytest.approx(11 / 15)  # 6 to 20, of which 17 to 20 failed
    assert prometheus.success_rate(36, 60) == pytest.approx(11 / 30)
    assert prometheus.success_rate(36, 60, instant=True) == 0
    assert math.isnan(Prometheus([Answer(1, 200, False, 1), Answer(100, 200, False, 1)]).success_rate(60, 40))  # two scrapes, no answer between


def test_a_quantile_is_linear_within_its_bucket():
    assert quantile(0.99, [0, 0, 0, 0, 100] + [0] * 11) == pytest.approx(0.010 + 0.015 * 0.99)
    assert quantile(0.99, [0] * 15 + [7]) == 60  # beyond the last bound
    assert math.isnan(quantile(0.99, [0] * 16))


def test_argo_rolls_back_at_the_failure_after_its_limit():
    prometheus = Prometheus(tape(GOOD, BAD))
    assert Argo(success=0.95, failure_limit=3).out(prometheus, HOUR) == 30 + 3 * 300  # errors at 0, 10 and 20 s: two scrapes have answers at 30 s
    assert Argo(success=0.95, interval=60, window=60).out(prometheus, HOUR) == 30
    assert Argo(success=0.4, failure_limit=3).out(prometheus, HOUR) is None


def test_argo_without_data_ends_after_five_errors_and_pauses_at_nan():
    assert Argo(success=0.95).out(Prometheus([]), HOUR) == 40
    once = Prometheus([Answer(1, 500, False, 1), Answer(HOUR, 500, False, 1)])
    assert Argo(success=0.95, interval=60, window=60).out(once, HOUR) is None


def test_argo_judges_a_second_metric():
    slow = Prometheus(tape(Answer(0, 200, False, 0.2)))
    assert Argo(success=0.95, interval=60, window=60, instant=False).out(slow, HOUR) is None
    assert Argo(success=0.95, interval=60, window=60, instant=False, p99=0.1).out(slow, HOUR) == 30


def test_flagger_takes_its_interval_times_its_threshold():
    assert Flagger().out(Prometheus(tape(GOOD, BAD)), HOUR) == 5 * 60
    assert Flagger(threshold=10).out(Prometheus(tape(GOOD, BAD)), HOUR) == 10 * 60
    assert Flagger().out(Prometheus(tape(GOOD)), HOUR) is None
    assert Flagger().out(Prometheus(tape(Answer(0, 200, False, 0.9))), HOUR) == 5 * 60
    assert Flagger().out(Prometheus(tape(Answer(0, 200, False, 0.2))), HOUR) is None  # ten times slower, and below 500 ms


def test_an_answer_that_is_cut_off_counts_by_the_status_of_its_head():
    prometheus = Prometheus(tape(CUT))
    assert Flagger().out(prometheus, HOUR) is None and Argo(success=0.95).out(prometheus, HOUR) is None
    assert Envoy().ejections(tape(CUT))


def test_envoy_ejects_after_five_in_a_row_and_lets_the_host_back():
    bad = [Answer(at, 500, False, 0.02) for at in range(100)]
    assert Envoy().ejections(bad) == [4, 38]  # back at 34 and, for twice as long, at 98
    mixed = [Answer(at, 200 if at % 5 == 4 else 500, False, 0.02) for at in range(100)]
    assert Envoy().ejections(mixed) == []


def test_one_bad_host_of_fewer_than_five_is_no_outlier_by_success_rate():
    half = tape(GOOD, BAD, GOOD, rate=50, seconds=60)
    by_rate = Envoy(consecutive=10**6)
    assert by_rate.ejections(half, [1.0]) == [] and by_rate.ejections(half, [1.0] * 3) == []
    assert by_rate.ejections(half, [1.0] * 4)[0] == 10
    assert not any(Envoy(minimum_hosts=2).outliers([1.0] * 3 + [0.0]))  # nor without the minimum: sqrt(3) deviations
    assert by_rate.ejections(tape(GOOD, BAD, rate=5, seconds=60), [1.0] * 4) == []  # fewer than 100 requests in an interval
