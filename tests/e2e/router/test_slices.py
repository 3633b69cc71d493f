"""A canary that is worse for one class of requests only, which the specification names: by a header, a field of the JSON, the size, the label."""

import itertools
import json
import random

import pytest

from backends import Faults
from conftest import serin, wait_until
from routers import NO_SECOND_TRY, hold, service
from traffic import BODY, Traffic, infer_request

OTHERS = ["fr", "it", "es", "pl"]


def request(country, size=0):
    body = json.dumps({**json.loads(BODY), "parameters": {"country": country, "padding": "x" * size}}).encode()
    return infer_request(body=body, headers={"x-country": country})


class Countries(Traffic):
    """Three of a hundred requests are from "de", and their bodies are larger."""

    def __init__(self, url, **options):
        super().__init__(url, **options)
        rare, usual = request("de", size=5000), [request(other) for other in OTHERS]
        draw = random.Random(5)
        self._requests = itertools.cycle([rare if draw.random() < 0.03 else draw.choice(usual) for _ in range(20_000)])
        self.of_class = 0
        self._rare = rare

    @property
    def request(self):
        with self._lock:
            made = next(self._requests)
            self.of_class += made is self._rare
            return made

    @request.setter
    def request(self, _):
        pass


@pytest.fixture
def versions(route, backend):
    stable, canary = backend("1"), backend("2")
    return route(service(stable, canary)), stable, canary


def begin(router, slices, output=None, **more):
    guard = {"slices": slices, **({"output": output} if output else {})}
    body = {"service": "digits", "canary": "2", "steps": [hold(20)], "shield": NO_SECOND_TRY, "guard": guard, **more}
    answer = router.post("/v1/rollouts", body)
    assert answer.status == 201, answer.body


BY = [({"name": "country", "header": "X-Country"}, "country=de"), ({"name": "from", "json": "/parameters/country"}, "from=de"),
      ({"name": "size", "bytes": [4096]}, "size=4096+")]


@pytest.mark.parametrize("slices, title", BY, ids=["header", "json", "bytes"])
def test_a_canary_that_fails_for_one_class_is_found(versions, slices, title, capsys):
    """Both versions fail for every tenth of the other requests, so that the failures of the class do not stand out among all of them."""
    router, stable, canary = versions
    begin(router, [slices])
    stable.faults = Faults(error_rate=0.1, only=("x-country", "fr"))
    canary.faults = Faults(error_rate=1, only=("x-country", "de"))
    with Countries(router.url) as traffic:
        router.wait_for("RolledBack", seconds=60)
    rollout = router.rollout()
    with capsys.disabled():
        print(f"\n  {traffic.of_class} requests of the class, {rollout['answers']['canary']} of the canary: {rollout['reason']}")
    assert rollout["cause"] == f"slice:{title}:errors", rollout["reason"]
    assert f"among requests of {title}" in rollout["reason"]
    assert traffic.of_class <= 200
    explained = serin("rollout", "explain", "digits", "--admin", router.admin.removeprefix("http://"))
    assert explained.returncode == 0 and "decided again from this record alone: rolled back by event" in explained.stdout, explained.stdout


def test_a_canary_that_is_slow_for_one_class_is_found(versions):
    router, stable, canary = versions
    begin(router, [BY[0][0]], dryRun=["latency"])  # which may be as soon, with a fifth of the traffic
    canary.faults = Faults(delay=0.1, only=("x-country", "de"))
    with Countries(router.url) as traffic:
        router.wait_for("RolledBack", seconds=60)
    rollout = router.rollout()
    assert rollout["cause"] == "slice:country=de:latency" and "slower than stable's" in rollout["reason"], rollout["reason"]
    assert traffic.failures == []


def test_a_canary_that_answers_otherwise_where_stable_gives_one_label_is_found(versions):
    router, stable, canary = versions
    stable.faults = Faults(label=4, only=("x-country", "de"))
    canary.faults = Faults(label=9, only=("x-country", "de"))
    begin(router, [{"name": "digit", "label": True}], output={"shadow": "100%", "maxDisagreement": "20%"})
    with Countries(router.url) as traffic:
        router.wait_for("RolledBack", seconds=60)
    rollout = router.rollout()
    assert rollout["cause"] == "slice:digit=4:shadow", rollout["reason"]
    assert traffic.failures == []


def test_a_canary_that_is_well_for_every_class_stays_and_its_classes_are_shown(versions):
    router, stable, canary = versions
    stable.faults = canary.faults = Faults(error_rate=0.02)
    begin(router, [slices for slices, _ in BY])
    with Countries(router.url):
        router.wait_for_answers(600, seconds=60)
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing"
    shown = [line["guard"] for line in rollout["evidence"] if line["guard"].startswith("slice:")]
    assert {name.split(":")[-1] for name in shown} == {"errors", "latency", "shadow"} and len(shown) == 9, shown


def test_a_rehearsal_of_slices_only_reports(versions):
    router, _, canary = versions
    begin(router, [BY[0][0]], dryRun=["slices", "latency"])
    canary.faults = Faults(delay=0.1, only=("x-country", "de"))
    with Countries(router.url):
        trips = wait_until(lambda: [trip for trip in router.rollout()["dry_run"] if trip["guard"] == "slice:country=de:latency"], 60, "rehearsed")
    assert "among requests of country=de" in trips[0]["reason"]
