"""Several routers that share rollouts, and what tests ask of them."""

import json

from backends import Faults
from conftest import call, wait_until
from routers import JSON, UNLIMITED_ADMIN, Router, service, spec
from traffic import Traffic

HOLD = {"until": {"duration": "1h"}}


class Group:
    """Three routers named a, b and c, each with its own way to what they share. A subclass says how that stands in router.yaml."""

    def __init__(self, folder, backends, stack, **of_service):
        self.of_service = of_service
        self.folder, self.backends, self.stack = folder, backends, stack
        self.routers = {}
        for name in "abc":
            self.launch(name)

    def shared(self, name, **options):
        """In the map `store`."""
        raise NotImplementedError

    def besides(self, _name):
        """Further keys of router.yaml."""
        return {}

    def launch(self, name, **options):
        home = self.folder / name
        home.mkdir(exist_ok=True)
        config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": [service(*self.backends, **self.of_service)],
                  "store": {"file": str(home / "router.db"), **self.shared(name, **options)},
                  "replicas": {"max": 3, "listen": "127.0.0.1:0", "name": name}, **self.besides(name)}
        (home / "router.yaml").write_text(json.dumps(config))
        router = self.stack.enter_context(Router(home, "route", "--drain-seconds", 0, "--config", home / "router.yaml"))
        self.routers[name] = router
        return router

    def all(self):
        return list(self.routers.values())

    def replicas(self, router):
        return router.status()["replicas"]

    def leader(self, among="abc"):
        """The name of the one that all of these name, and that says so itself."""
        def agreed():
            named = {self.replicas(self.routers[name])["leader"] for name in among}
            return named.pop() if len(named) == 1 and named != {""} and next(iter(named)) in among else None
        return wait_until(agreed, 20, "one leader")

    def settled(self, count=3):
        wait_until(lambda: all(len(self.replicas(router)["alive"]) == count for router in self.all()), 20, f"{count} routers alive")
        return self.leader()

    def start(self, weight=25):
        """A rollout that stays at this weight, asked for at any router that leads or says who does."""
        wait_until(lambda: all(router.healthy("2") == 1 for router in self.all()), 10, "health checked")
        asked = spec(steps=[{"setWeight": weight, **HOLD}])
        wait_until(lambda: self.routers[self.leader()].post("/v1/rollouts", asked).status == 201, 15, "started by who leads")
        self.wait_for_weight(weight)

    def weights(self, names="abc"):
        return [self.routers[name].metric("serin_route_weight_ppm", version="2") / 10_000 for name in names]

    def wait_for_weight(self, weight, names="abc"):
        wait_until(lambda: self.weights(names) == [weight] * len(names), 15, f"{weight} % at all of {names}: {self.weights(names)}")

    def wait_for_phase(self, phase, names="abc", seconds=15):
        wait_until(lambda: all(self.routers[name].rollout()["phase"] == phase for name in names), seconds, f"{phase} at all of {names}")

    def traffic(self):
        return Traffic(self.routers["a"].url, clients=2)

    def fail_canary(self):
        self.backends[1].faults = Faults(error_rate=1)

    def heal_canary(self):
        self.backends[1].faults = Faults()

    def set_weight(self, name, weight):
        return call(f"{self.routers[name].admin}/v1/rollouts/digits:set-weight", {"weight": weight}, JSON)
