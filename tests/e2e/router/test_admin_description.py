"""The admin API is what its OpenAPI description says: schemathesis asks a real router what the description allows, and what it does not."""

import json
import re

import hypothesis
import jsonschema_rs
import pytest
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from backends import Backend, Faults
from conftest import ROOT, call
from routers import Router, hold, service, write_config
from traffic import Traffic

load_all_checks()
TOKEN = "the-token-of-an-admin-01"
# What a schema allows may still ask for what there is not (a version, a service), or for what the state does not allow: 400, 404, 409, 412.
EXCLUDED = [CHECKS.get_one("positive_data_acceptance")]


class FirstEvents(requests.Session):
    """Of an answer that goes on for minutes only what comes first."""

    def send(self, request, **options):
        response = super().send(request, **{**options, "stream": True})
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            response._content = next(response.iter_content(65536))
            response.close()
        return response


@pytest.fixture(scope="module")
def router(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    tokens = folder / "tokens.yaml"
    tokens.write_text(f"tokens: [{{name: tester, role: admin, token: {TOKEN}}}]\n")
    tokens.chmod(0o600)
    with Backend("1") as stable, Backend("2") as canary:
        admin = {"listen": "127.0.0.1:0", "tokens": str(tokens), "rate": 0}
        router = Router(folder, "route", "--drain-seconds", 0, "--config", write_config(folder, service(stable, canary, outcomes=[{"name": "conversion"}]), admin=admin))
        yield router
        assert router.end() == 0, router.log


@pytest.fixture(scope="module")
def description(router):
    return schemathesis.openapi.from_url(router.admin + "/v1/openapi.json")


def questions():
    """(path, method, mode): what the description allows, and, where a request has parts that may be wrong, what it does not."""
    described = json.loads((ROOT / "router" / "admin" / "openapi.json").read_text())["paths"]
    for path, methods in described.items():
        for method, operation in methods.items():
            yield path, method, GenerationMode.POSITIVE
            if "parameters" in operation:
                yield path, method, GenerationMode.NEGATIVE


@pytest.mark.parametrize("path, method, mode", list(questions()), ids=lambda part: getattr(part, "value", part))
def test_the_router_does_what_its_description_says(description, path, method, mode):
    @hypothesis.given(case=description[path][method].as_strategy(generation_mode=mode))
    @hypothesis.settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    def ask(case):
        case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, session=session, excluded_checks=EXCLUDED)

    with FirstEvents() as session:
        ask()


def test_the_description_and_the_schema_need_no_token(router):
    described = call(router.admin + "/v1/openapi.json")
    assert described.status == 200 and described.json["openapi"].startswith("3.1")
    schema = call(router.admin + "/v1/rollout.schema.json")
    assert schema.status == 200 and schema.headers["Content-Type"] == "application/schema+json" and "canary" in schema.json["properties"]


def test_the_answers_about_a_verdict_have_the_described_fields_and_no_others(pair):
    router, _, canary = pair
    components = call(router.admin + "/v1/openapi.json").json["components"]
    for schema in components["schemas"].values():
        schema["additionalProperties"] = False
    canary.faults = Faults(error_rate=0.7)
    router.start_rollout(steps=[hold(20)])
    with Traffic(router.url, clients=3):
        router.wait_for("RolledBack")
    answers = {"StatusList": "rollouts", "Status": "rollouts/digits", "Timeline": "rollouts/digits/timeline", "History": "rollouts/digits/history",
               "Word": "rollouts/digits/verdict", "Verdict": "verdicts/digits", "ServiceList": "services", "Caller": "me"}
    for name, path in answers.items():
        answer = call(f"{router.admin}/v1/{path}").json
        jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": components}).validate(answer)
    verdict = call(f"{router.admin}/v1/verdicts/digits").json
    assert verdict["record"]["events"] and verdict["evidence"] and router.rollout()["events"]


def test_every_path_of_the_routers_own_table_is_described():
    """The headings of router/admin/REFERENCE.md, for people."""
    named = set(re.findall(r"(?m)^### `(?:GET|POST) (/[^`]*)`$", (ROOT / "router/admin/REFERENCE.md").read_text()))
    described = set(json.loads((ROOT / "router" / "admin" / "openapi.json").read_text())["paths"])
    assert len(named) > 15 and named <= described, named - described


def test_every_command_is_described(router):
    described = call(router.admin + "/v1/openapi.json").json["paths"]
    may = call(router.admin + "/v1/me", headers={"Authorization": f"Bearer {TOKEN}"}).json["may"]
    assert {f"/v1/rollouts/{{service}}:{verb}" for verb in may if verb != "start"} <= set(described)
