"""After 100 %: the version of before is kept warm for the time that was asked for, and one command brings it back."""

import pytest

from conftest import wait_until
from routers import service
from traffic import Traffic, ask

STEPS = [50, {"promote": {"keepWarm": "1h"}}]


@pytest.fixture
def promoted(route, backend):
    """(begin, old, new): begin() is a router on one store; the first one has promoted `new`."""
    old, new = backend("1"), backend("2")

    def begin():
        router = route(service(old, new))
        wait_until(lambda: router.healthy("1") == router.healthy("2") == 1, 10, "health checked")
        return router

    router = begin()
    router.start_rollout(steps=STEPS)
    with Traffic(router.url, clients=2):
        router.wait_for("Succeeded")
    # The weights rise once the promotion is stored. The history is read from the store.
    wait_until(lambda: router.history()[-1]["event"] == "promoted", 20, "it is stored")
    wait_until(lambda: {headers["x-serin-version"] for _, headers, _ in ask(router.url, 20)} == {"2"}, 10, "the new version has all traffic")
    return begin, router, old, new


def test_the_old_version_gets_copies_until_its_time_is_over(promoted):
    _, router, old, _ = promoted
    warm = router.status()["warm"]
    assert warm["version"] == "1" and 3500 < warm["seconds"] <= 3600
    served = old.inferences - old.shadows
    with Traffic(router.url, clients=2) as traffic:
        copies = old.shadows
        wait_until(lambda: old.shadows > copies, 30, "copies of requests")
    assert traffic.failures == [] and set(traffic.versions) == {"2"} and old.inferences - old.shadows == served, "clients see the new one alone"
    assert router.rollout()["phase"] == "Succeeded"


def test_undo_is_one_command_and_no_client_sees_it(promoted):
    _, router, old, _ = promoted
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: traffic.answers > 100, 20, "traffic")
        undone = router.command("undo", {"reason": "customers complain"})
        assert undone.status == 200 and undone.json["stable"] == "1" and undone.json["warm"] is None
        assert all(headers["x-serin-version"] == "1" for _, headers, _ in ask(router.url, 20)), "from the very next request on"
    assert traffic.failures == []
    copies = old.shadows
    ask(router.url, 500)
    assert old.shadows == copies


def test_it_is_still_warm_after_a_crash(promoted):
    begin, router, old, _ = promoted
    router.kill()
    router = begin()
    assert router.status()["warm"]["version"] == "1" and router.status()["stable"] == "2"
    copies = old.shadows
    with Traffic(router.url, clients=2):
        wait_until(lambda: old.shadows > copies, 30, "copies of requests")
    assert router.command("undo").json["stable"] == "1"


def test_another_rollout_ends_it(promoted):
    _, router, _, _ = promoted
    router.start_rollout(canary="1", steps=[{"setWeight": 10, "until": {"duration": "1h"}}])
    assert router.status()["warm"] is None and router.rollout()["weight"] == 10
    assert router.command("abort").json["warm"] is None
