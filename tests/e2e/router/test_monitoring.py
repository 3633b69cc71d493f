"""deploy/prometheus and deploy/grafana: rules that fire when they should, panels that show something, metrics that a router really exports."""

import json
import re
import subprocess

import pytest
import yaml

from backends import Faults
from certificates import Authority
from conftest import ROOT, wait_until
from etcd import Cluster
from prometheus_server import program, prometheus
from routers import service
from traffic import Traffic

RULES = ROOT / "deploy/prometheus/serin.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/serin-rollouts.json"

pytestmark = pytest.mark.skipif(program("promtool") is None, reason="no prometheus here; deploy/install-deps --tests gets it")


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions():
    """(panel, PromQL with Grafana's variables filled in)"""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "2s").replace("$service", ".*")


def test_the_rules_fire_when_they_should():
    for command in (["check", "rules", RULES], ["test", "rules", RULES.with_name("serin.rules.test.yml")]):
        done = subprocess.run([program("promtool"), *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_to_fire_and_to_be_silent():
    cases = [case for group in yaml.safe_load(RULES.with_name("serin.rules.test.yml").read_text())["tests"] for case in group["alert_rule_test"]]
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts == {case["alertname"] for case in cases if not case["exp_alerts"]}


def test_the_runbook_has_a_section_for_each_alert():
    sections = re.split(r"^## ", RULES.with_name("RUNBOOK.md").read_text(), flags=re.M)[1:]
    assert [each.partition("\n")[0] for each in sections] == re.findall(r"alert: (\w+)", RULES.read_text())
    assert all("\n1. " in each for each in sections), "and something to do"


def test_a_fleet_that_is_well_has_every_metric_of_the_rules():
    """So that none of the alerts is silent there only because it sees nothing."""
    well = yaml.safe_load(RULES.with_name("serin.rules.test.yml").read_text())["tests"][-1]
    seen = {re.match(r"\w+", each["series"])[0] for each in well["input_series"]}
    named = {name for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"] for name in re.findall(r"\b(?:serin_\w+|up)\b", rule["expr"])}
    assert named <= seen, named - seen


def test_the_dashboard_is_one():
    ids, places = [panel["id"] for panel in panels()], set()
    assert len(set(ids)) == len(ids)
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places and at["x"] + at["w"] <= 24, f"{panel['title']} overlaps"
        places |= cells
        assert panel["title"] and panel["description"] and [target["refId"] for target in panel["targets"]] == list("ABCDE"[:len(panel["targets"])])


def test_what_they_name_is_exported_and_every_panel_shows_something(route, backend, receiver, tmp_path):
    stable, canary = backend("1"), backend("2")
    with Cluster(tmp_path) as etcd:  # as one of several, with somebody to tell: all that a router may export
        authority = Authority(tmp_path)
        router = route(service(stable, canary), prometheus={"tls": {"ca": authority.ca, **authority.issue("router").yaml()}}, store={"file": str(tmp_path / "router.db"), "etcd": {"endpoints": [etcd.members[0].url]}},
                       replicas={"max": 1, "listen": "127.0.0.1:0"}, webhooks=[{"name": "chat", "type": "event", "url": receiver.url}])
        wait_until(lambda: router.healthy("2") == 1 and router.status()["replicas"]["leader"], 20, "leads, and its endpoints are checked")
        shows_everything(router, stable, canary, tmp_path)


def shows_everything(router, stable, canary, tmp_path):
    stable.faults, canary.faults = Faults(label=3), Faults(label=-1)
    router.start_rollout(steps=[{"setWeight": 25, "until": {"duration": "1h"}}], guard={"output": {"shadow": "50%", "maxDisagreement": "99%", "drift": 100}})
    with prometheus(tmp_path, f"127.0.0.1:{router.ports['admin']}", [RULES]) as server, Traffic(router.url, clients=3):
        router.wait_for_answers(100)
        router.wait_for_answers(20, "shadow")
        canary.faults = Faults(status=500)
        router.wait_for("RolledBack")
        exported = set(re.findall(r"^(serin_\w+)", router.metrics(), re.M))
        named = set(re.findall(r"\bserin_\w+", RULES.read_text() + DASHBOARD.read_text()))
        assert len(named) > 20 and named <= exported, f"not exported: {sorted(named - exported)}"
        for title, expression in expressions():
            asked = f"last_over_time(({expression})[1m:200ms])"
            wait_until(lambda asked=asked: server.query(asked), 20, f"something on the panel '{title}' ({expression})")
        rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == len(re.findall("alert: ", RULES.read_text())) and all(rule["health"] != "err" for rule in rules)


def test_a_rollback_is_an_alert(pair, tmp_path):
    router, _, canary = pair
    with prometheus(tmp_path, f"127.0.0.1:{router.ports['admin']}", [RULES]) as server:
        canary.faults = Faults(error_rate=1)
        router.start_rollout(steps=[{"setWeight": 25, "until": {"duration": "1h"}}])
        with Traffic(router.url, clients=3):
            router.wait_for("RolledBack")
        wait_for_alert(server, "SerinRolledBack", service="digits")


def wait_for_alert(server, name, **labels):
    def firing():
        return [alert for alert in server.get("alerts")["alerts"] if alert["labels"]["alertname"] == name and alert["state"] == "firing"
                and labels.items() <= alert["labels"].items()]
    wait_until(firing, 30, f"{name} fires")
