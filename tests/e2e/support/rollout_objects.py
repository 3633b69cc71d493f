"""Objects of the kind Rollout as people write them, and the questions that tests ask about them; `group` is one of router_group.Group."""

from conftest import wait_until
from router_group import HOLD


def rollout_object(name="digits", canary="2", revision=None, steps=({"setWeight": 25, **HOLD},), **spec):
    annotations = {"serin.dev/revision": revision} if revision else {}
    return {"apiVersion": "serin.dev/v1", "kind": "Rollout", "metadata": {"name": name, "annotations": annotations},
            "spec": {"service": "digits", "canary": {"version": canary}, "steps": list(steps), **spec}}


def conditions(found):
    return {each["type"]: (each["status"], each["reason"]) for each in found.get("status", {}).get("conditions", [])}


class ObjectScenarios:
    """The same for an API in memory and for a real one. A subclass has a fixture `group` with apply(object), find(name) and remove(name)."""

    def wait_for(self, group, what, name="digits", seconds=20, **fields):
        def there():
            status = group.find(name).get("status", {})
            return all(status.get(key) == value for key, value in fields.items())
        try:
            wait_until(there, seconds, what)
        except AssertionError as error:
            raise AssertionError(f"{what}: {group.find(name).get('status')}") from error
        return group.find(name)["status"]

    def test_it_is_promoted(self, group):
        group.apply(rollout_object(steps=[{"setWeight": 50, "until": {"duration": "1s"}}]))
        with group.traffic():
            status = self.wait_for(group, "promoted", phase="Succeeded", seconds=60)
        assert (status["verdict"], status["weight"], status["stable"], status["observedGeneration"]) == ("promoted", "100%", "2", 1)
        assert conditions(group.find("digits"))["Ready"] == ("True", "Succeeded") and conditions(group.find("digits"))["Stalled"][0] == "False"
        wait_until(lambda: {router.status()["stable"] for router in group.all()} == {"2"}, 10, "stable at all routers")

    def test_a_bad_one_is_rolled_back_and_never_comes_back(self, group):
        group.apply(rollout_object())
        status = self.wait_for(group, "under way", weight="25%")
        first = status["id"]
        assert conditions(group.find("digits"))["Reconciling"][0] == "True" and status["step"] == "1/1"
        group.fail_canary()
        with group.traffic() as traffic:
            status = self.wait_for(group, "rolled back", phase="RolledBack", verdict="rolled_back")
        assert set(traffic.statuses) == {200}
        assert status["cause"] == "err" and "bad answers" in status["reason"] and {"guard", "bits", "bitsToTrip"} <= status["evidence"][0].keys()
        assert conditions(group.find("digits"))["Stalled"] == ("True", "RolledBack")
        group.heal_canary()
        # A tool of GitOps writes the same object again and again, deletes what it does not know, and applies it anew.
        group.apply(rollout_object())
        group.apply(rollout_object(steps=[{"setWeight": 30, **HOLD}]))  # other weights are no other canary
        self.wait_for(group, "the new text is seen", observedGeneration=2)
        group.remove("digits")
        group.apply(rollout_object())
        self.wait_for(group, "blocked", id=first, phase="RolledBack")
        assert "another revision" in next(each["message"] for each in group.find("digits")["status"]["conditions"] if each["type"] == "Stalled")
        for router in group.all():
            assert router.rollout()["id"] == first
        group.wait_for_weight(0)
        group.apply(rollout_object(revision="sha256:4f1c"))
        status = self.wait_for(group, "another revision starts", phase="Progressing", revision="sha256:4f1c")
        assert status["id"] != first

    def test_another_version_takes_the_place_of_one_that_runs(self, group):
        group.apply(rollout_object(revision="1"))
        first = self.wait_for(group, "under way", weight="25%")["id"]
        group.apply(rollout_object(revision="2", steps=[{"setWeight": 5, **HOLD}]))
        assert self.wait_for(group, "replaced", weight="5%")["id"] != first
        events = [(entry["rollout"], entry["event"]) for entry in group.routers["a"].history()]
        assert (first, "rolled_back") in events

    def test_a_deleted_one_takes_its_canary_back(self, group):
        group.apply(rollout_object())
        self.wait_for(group, "under way", weight="25%")
        group.wait_for_weight(25)
        group.remove("digits")
        group.wait_for_phase("RolledBack")
        assert "was deleted" in group.routers["a"].rollout()["reason"]

    def test_what_a_person_started_is_left_alone(self, group):
        group.start(25)
        group.apply(rollout_object(name="other", canary="7"))
        wait_until(lambda: conditions(group.find("other")).get("Accepted", [""])[0] == "False", 10, "refused")
        group.remove("other")
        assert group.weights() == [25, 25, 25]

    def test_a_bad_specification_is_named(self, group):
        group.apply(rollout_object(steps=[{"setWeight": 50, **HOLD}, {"setWeight": 10, **HOLD}]))
        wait_until(lambda: conditions(group.find("digits")).get("Accepted") == ("False", "InvalidSpecification"), 10, "refused")
        message = next(each["message"] for each in group.find("digits")["status"]["conditions"] if each["type"] == "Accepted")
        assert "steps[1]" in message, message
