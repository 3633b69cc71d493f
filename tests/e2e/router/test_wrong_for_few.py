"""A canary that is right in shape, fast and without an error, but wrong for a few inputs; with real models and no word about it in the specification."""

import itertools

import pytest

from conftest import ON_FREE_PORTS, Process, serin, wait_until
from few_models import bodies, save_classifier
from routers import QUICK_HEALTH, hold, service
from traffic import Traffic, infer_request

BODIES = bodies(5000)


class Varied(Traffic):
    """Every request asks something else."""

    def __init__(self, url, **options):
        super().__init__(url, service="few", **options)
        self._requests = itertools.cycle([infer_request("few", body) for body in BODIES])

    @property
    def request(self):
        with self._lock:
            return next(self._requests)

    @request.setter
    def request(self, _):
        pass


@pytest.fixture
def models(tmp_path, route):
    """models(wrong_for=0.02): a router in front of version 1 and that version 2 of it, in one runtime."""
    processes = []

    def make(**canary):
        save_classifier(tmp_path / "models/few/1")
        save_classifier(tmp_path / "models/few/2", **canary)
        process = Process(tmp_path, "serve", "--models", tmp_path / "models", *ON_FREE_PORTS)
        process.__enter__()
        processes.append(process)
        url = f"http://127.0.0.1:{process.ports['http']}/v2/models/few/versions"
        router = route({"name": "few", "initial_stable": "1", "versions": [
            {"name": version, "endpoints": [{"url": f"{url}/{version}"}], "health": QUICK_HEALTH} for version in ("1", "2")]})
        wait_until(lambda: router.healthy("2", "few") == 1, 10, "health checked")
        answer = router.post("/v1/rollouts", {"service": "few", "canary": "2", "steps": [hold(5)]})
        assert answer.status == 201, answer.body
        return router

    yield make
    for process in processes:
        process.__exit__(None, None, None)


@pytest.mark.parametrize("share, most", [(0.02, 900), (0.2, 60)])
def test_a_canary_that_is_wrong_for_a_few_is_rolled_back(models, share, most, capsys):
    router = models(wrong_for=share)
    with Varied(router.url) as traffic:
        wait_until(lambda: router.rollout("few")["phase"] == "RolledBack", 60, "the verdict")
    rollout = router.rollout("few")
    with capsys.disabled():
        print(f"\n  wrong for {share:.0%}: out after {rollout['answers']['shadow']} pairs, {rollout['answers']['canary']} answers, "
              f"{rollout['seconds']:.1f} s\n  {rollout['reason']}")
    assert rollout["cause"] == "shadow_few" and rollout["answers"]["shadow"] <= most
    assert traffic.failures == [] and traffic.broken == 0
    done = serin("rollout", "explain", "few", "--admin", f"127.0.0.1:{router.ports['admin']}")
    assert done.returncode == 0 and "another label" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("decided again from this record alone: rolled back by event")


@pytest.mark.parametrize("canary", [{}, {"retrained": 0.06}])
def test_a_canary_that_is_well_stays(models, canary, capsys):
    """The same model, and one with other weights: about every twentieth of its labels is another one."""
    router = models(**canary)
    with Varied(router.url, clients=3) as traffic:
        wait_until(lambda: router.rollout("few")["phase"] != "Progressing" or router.rollout("few")["answers"]["shadow"] >= 800, 90, "pairs")
    rollout = router.rollout("few")
    shadow = rollout["shadow"]
    with capsys.disabled():
        print(f"\n  {canary or 'the same model'}: {shadow['labels']} of {shadow['compared']} labels differ, "
              f"{[line for line in rollout['evidence'] if line['guard'].startswith('shadow')]}")
    assert rollout["phase"] == "Progressing", rollout["reason"]
    assert (shadow["labels"] > 0) == bool(canary)
    assert traffic.failures == [] and traffic.broken == 0


def test_copies_do_not_make_the_canary_look_slow(route, backend):
    """One client, so that no request ever waits for another one, but the next one for the copy of the last. Each version takes one at a time."""
    stable, canary = backend("1", delay=0.01, serial=True), backend("2", delay=0.01, serial=True)
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    with Traffic(router.url, clients=1) as traffic:
        wait_until(lambda: traffic.answers > 250, 30, "stable's latencies known")
        router.start_rollout(steps=[hold(50)], guard={"latency": {"baseline": 200, "skip": 0, "slack": 0}}, shield={"hedge": "off"})
        before = stable.inferences
        wait_until(lambda: router.rollout()["phase"] != "Progressing" or router.rollout()["answers"]["shadow"] >= 60, 60, "copies")
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing", rollout["reason"]
    assert rollout["answers"]["canary"] + rollout["answers"]["shadow"] < canary.inferences - 5, "who had to wait is no evidence"
    assert rollout["answers"]["stable"] < stable.inferences - before - 5, "nor is a request of stable that would have had to wait on the canary"
    assert traffic.failures == []
