"""A router under test: its configuration, its rollouts over the admin API, what it says about itself."""

import json
import mmap
import signal
import struct

from conftest import Process, call, wait_until

JSON = {"Content-Type": "application/json"}
UNLIMITED_ADMIN = {"listen": "127.0.0.1:0", "rate": 0}  # tests poll it
QUICK_HEALTH = {"interval": "50ms", "timeout": "2s", "unhealthy": 2, "healthy": 1}
NO_SECOND_TRY = {"retryStable": False, "hedge": "off"}  # of a rollout: who was drawn to the canary is answered by it, however slow the machine is
# What a rollout needs to come to a verdict within seconds on a busy machine: latency is judged after 200 answers of stable, 50 ms do not
# matter, and every step is certified after some sixty good answers of the canary.
PATIENT = {"latency": {"baseline": 200, "skip": 5, "floor": "50ms"}}
SOON = {"margin": {"errors": "5%", "latency": "10%"}}


def service(*backends, name="digits", **more):
    """A service whose versions are named after their backends; the first one is stable."""
    versions = {}
    for backend in backends:
        versions.setdefault(backend.version, []).append({"url": backend.url})
    return {"name": name, "initial_stable": backends[0].version, **more,
            "versions": [{"name": version, "endpoints": endpoints, "health": QUICK_HEALTH} for version, endpoints in versions.items()]}


def write_config(folder, *services, store="router.db", **more):
    """router.yaml, in JSON: which is YAML, too."""
    path = folder / "router.yaml"
    path.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": services,
                                "store": store if isinstance(store, dict) else str(folder / store), **more}))
    return path


def spec(canary="2", steps=(50,), name="digits", guard=None, **more):
    return {"kind": "Rollout", "service": name, "canary": canary, "steps": list(steps), "guard": {**PATIENT, **(guard or {})},
            "certify": SOON, **more}


def hold(weight):
    """A step that nothing ends within a test."""
    return {"setWeight": weight, "until": {"duration": "1h"}}


class Router(Process):
    def post(self, path, body=None, **headers):
        return call(self.admin + path, body or {}, {**JSON, **headers})

    def start_rollout(self, **asked):
        answer = self.post("/v1/rollouts", spec(**asked))
        assert answer.status == 201, answer.body
        return answer.json

    def command(self, verb, body=None, name="digits", **headers):
        return self.post(f"/v1/rollouts/{name}:{verb}", body, **headers)

    def status(self, name="digits"):
        answer = call(f"{self.admin}/v1/rollouts/{name}")
        assert answer.status == 200, answer.body
        return answer.json

    def rollout(self, name="digits"):
        return self.status(name)["rollout"]

    def history(self, name="digits"):
        return call(f"{self.admin}/v1/rollouts/{name}/history?limit=10000").json["history"]

    def healthy(self, version, name="digits"):
        services = call(self.admin + "/v1/services").json["services"]
        versions = next(service for service in services if service["name"] == name)["versions"]
        return next(entry["healthy"] for entry in versions if entry["name"] == version)

    def wait_for(self, phase, seconds=30):
        """The rollout once it is in that phase; fails at once where it ended in another."""
        def reached():
            rollout = self.rollout()
            over = rollout["phase"] in ("Succeeded", "RolledBack")
            assert not over or rollout["phase"] == phase, f"{rollout['phase']}: {rollout['reason']}"
            return rollout if rollout["phase"] == phase else None
        return wait_until(reached, seconds, f"phase {phase}")

    def wait_for_answers(self, count, kind="canary", seconds=30):
        return wait_until(lambda: self.rollout()["answers"][kind] >= count, seconds, f"{count} answers of {kind}")


def reload(router):
    """SIGHUP, and whether what it read was applied."""
    before = {result: router.metric("serin_route_reloads_total", result=result) for result in ("applied", "refused")}
    router.process.send_signal(signal.SIGHUP)

    def told():
        try:
            now = {result: router.metric("serin_route_reloads_total", result=result) for result in before}
        except OSError:  # the admin API is between two servers
            return None
        return next((result for result in before if now[result] > before[result]), None)

    return wait_until(told, 20, "read again") == "applied"


class AppliedWeight:
    """The canary's weight as the data path of a router reads it, from the page beside its store (weights_page.h): seen without asking the router.
    Of its first service, and of the generation that runs now."""

    WORD = 64 + 16 + 63 * 8

    def __init__(self, store):
        with open(f"{store}.weights", "rb") as page:
            self._page = mmap.mmap(page.fileno(), 0, access=mmap.ACCESS_READ)

    def ppm(self):
        return struct.unpack_from("<Q", self._page, self.WORD)[0] & 0xFFFFF
