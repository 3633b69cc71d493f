"""Specifications of rollouts as files: everything that is wrong is said at once, and the JSON schema says what the parser says."""

import json
import re

import hypothesis
import jsonschema_rs
import pytest
import schemathesis
import yaml
from schemathesis import GenerationMode

from conftest import ROOT, serin

SCHEMA = json.loads((ROOT / "router" / "rollout" / "rollout.schema.json").read_text())
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
SAMPLES = sorted((ROOT / "deploy" / "rollouts").glob("*.yaml"))
BASE = {"service": "digits", "canary": {"version": "2"}}


def validate(*files):
    return serin("rollout", "validate", *files, timeout=20)


def problems(tmp_path, document):
    path = tmp_path / "rollout.yaml"
    path.write_text(document if isinstance(document, str) else json.dumps(document, ensure_ascii=False))
    done = serin("rollout", "validate", "--json", path, timeout=20)
    said = json.loads(done.stdout)
    assert said["valid"] == (done.returncode == 0) == (not said["problems"])
    return said["problems"]


# --- validate -------------------------------------------------------------------------------------------------------------------------


def test_samples_are_valid_and_editors_find_their_schema():
    assert len(SAMPLES) >= 4
    done = validate(*SAMPLES)
    assert done.returncode == 0 and done.stdout == done.stderr == ""
    for sample in SAMPLES:
        first = sample.read_text().splitlines()[0]
        found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert found and (sample.parent / found[1]).resolve() == ROOT / "router" / "rollout" / "rollout.schema.json", sample


MISTAKES = """kind: Rolout
service: digits
canry: 2
canary: {version: 2, sticky: {header: x-user, cookie: session}}
steps: [5, 3, {setWeight: 300}, {pause: {duration: soon}}, {promote: {control: 60}}, 7]
guard: {erors: {max: 1%}, latency: {p99: -5ms, slak: 1%}, falseRollback: 2}
certify: {margin: lots, confidence: 10%}
shield: {hedge: p42}
dryRun: [everything]
"""


def test_everything_that_is_wrong_is_said_at_once_with_its_line(tmp_path):
    found = problems(tmp_path, MISTAKES)
    words = [(1, "Rollout"), (3, "'canry'"), (4, "header or a cookie"), (5, "rise"), (5, "'300'"), (5, "duration"), (5, "bake time"),
             (5, "last step"), (6, "'erors'"), (6, "p99"), (6, "'slak'"), (6, "falseRollback"), (7, "taper"), (7, "50%"), (8, "p95"), (9, "everything")]
    for line, word in words:
        assert any(problem["line"] == line and word in problem["message"] for problem in found), (line, word, found)
    assert len(found) == len(words), found
    done = validate(tmp_path / "rollout.yaml")
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == len(words) and all(line.startswith(f"{tmp_path}/rollout.yaml:") for line in lines)


def test_start_names_the_first_mistake_and_how_many_more(tmp_path):
    (tmp_path / "rollout.yaml").write_text(MISTAKES)
    done = serin("rollout", "start", "digits", "--spec", tmp_path / "rollout.yaml")
    assert done.returncode == 2 and "rollout.yaml:3:1: unknown key 'canry'" in done.stderr and "(and 15 more)" in done.stderr


@pytest.mark.parametrize("text, line", [("{{{", 1), ("a: [1,\n", 2), ("service: digits\n\tcanary: 2\n", 2), ("", 0), ("- 1\n", 1), ("7", 1)])
def test_c1_what_is_no_document_is_said_too(tmp_path, text, line):
    found = problems(tmp_path, text)
    assert found and (line == 0 or found[0]["line"] == line), found


def test_c1_a_document_of_nonsense_is_not_answered_with_a_book(tmp_path):
    assert len(problems(tmp_path, "".join(f"key{i}: 1\n" for i in range(5000)))) <= 100


def test_a_file_that_cannot_be_read_is_2_and_several_are_checked(tmp_path):
    assert validate("/nowhere.yaml").returncode == 2
    (tmp_path / "bad.yaml").write_text("service: digits\n")
    done = validate(SAMPLES[0], tmp_path / "bad.yaml")
    assert done.returncode == 1 and "bad.yaml" in done.stderr and SAMPLES[0].name not in done.stderr


# --- the schema -----------------------------------------------------------------------------------------------------------------------


def test_the_program_prints_the_schema():
    done = serin("rollout", "schema")
    assert done.returncode == 0 and json.loads(done.stdout) == SCHEMA


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_the_schema_takes_the_samples(sample):
    VALIDATOR.validate(yaml.safe_load(sample.read_text()))


def resolved(schema):
    while "$ref" in schema:
        schema = {**SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], **{k: v for k, v in schema.items() if k not in ("$ref", "description")}}
    return schema


def objects(schema, path=()):
    """(path, properties) of every object in the schema; a path leads through keys and list items ([])."""
    schema = resolved(schema)
    if "properties" in schema:
        yield path, schema
        for key, value in schema["properties"].items():
            yield from objects(value, (*path, key))
    if "items" in schema:
        yield from objects(schema["items"], (*path, "[]"))
    for value in schema.get("anyOf", []):
        yield from objects(value, path)


OBJECTS = list(objects({k: v for k, v in SCHEMA.items() if k not in ("if", "then")}))


def document_with(path, value):
    for part in reversed(path):
        value = [value] if part == "[]" else {part: value}
    if path and path[0] == "canary" and len(path) > 1:
        value["canary"]["version"] = "2"
    return {**BASE, **value}


@pytest.mark.parametrize("path, schema", OBJECTS, ids=lambda part: ".".join(part) or "document" if isinstance(part, tuple) else "")
def test_the_schema_names_the_keys_that_the_parser_allows(tmp_path, path, schema):
    # A key that nobody knows makes the parser name those that it does.
    document = document_with(path, {"zzz": 1}) if path else {**BASE, "zzz": 1}
    if path == ("steps", "[]", "until"):
        document["steps"][0]["setWeight"] = 5  # what else is a step with until
    said = [problem["message"] for problem in problems(tmp_path, document) if "unknown key 'zzz'" in problem["message"]]
    assert len(said) == 1, (path, said)
    allowed = set(said[0].split("allowed: ")[1].split(", "))
    if path == ("steps", "[]"):
        assert set(schema["properties"]) <= allowed, "one kind of step of several"
    else:
        assert set(schema["properties"]) == allowed


REFUSED = [
    {"steps": []}, {"steps": [0]}, {"steps": [101]}, {"steps": [1.00001]}, {"steps": ["five"]}, {"steps": "5"}, {"steps": [{"wait": 1}]},
    {"steps": [{"pause": {}}]}, {"steps": [{"setWeight": 5, "until": "soon"}]}, {"steps": [5, {"promote": {"control": 5}}]},
    {"steps": [{"shadow": {"percent": 0}}, 5]}, {"canary": {}}, {"canary": ""}, {"canary": {"version": "2", "baseline": "auto"}},
    {"canary": {"version": "2", "sticky": {}}}, {"canary": {"version": "2", "sticky": {"header": "a b"}}},
    {"canary": {"version": "2", "sticky": {"header": "x", "cookie": "y"}}}, {"canary": {"version": "2", "cohort": {"header": "x"}}},
    {"canary": {"version": "2", "cohort": {"header": "x", "values": []}}}, {"service": ""}, {"kind": "Deployment"}, {"nonsense": 1},
    {"guard": {"falseRollback": 0}}, {"guard": {"falseRollback": 0.6}}, {"guard": {"errors": {"max": "0%"}}}, {"guard": {"errors": {"max": "100%"}}},
    {"guard": {"errors": {"tolerateRatio": 0.5}}}, {"guard": {"latency": {"p99": "0ms"}}}, {"guard": {"latency": {"p99": 50}}},
    {"guard": {"latency": {"p42": "5ms"}}}, {"guard": {"latency": {"baseline": 7}}}, {"guard": {"output": {"compare": "vibes"}}},
    {"guard": {"output": {"drift": 1}}}, {"guard": {"unit": "key"}}, {"guard": {"unit": "user"}}, {"guard": {"whenStableBreachesToo": "panic"}},
    {"guard": {"prometheus": []}}, {"guard": {"prometheus": {"name": "x"}}},
    {"guard": {"prometheus": {"name": "a b", "address": "http://p", "query": "q", "max": 1}}},
    {"guard": {"prometheus": {"name": "a", "address": "p:9090", "query": "q", "max": 1}}},
    {"guard": {"slices": "country"}}, {"guard": {"slices": [{"name": "a"}]}}, {"guard": {"slices": [{"header": "x-a"}]}},
    {"guard": {"slices": [{"name": "a=b", "header": "x-a"}]}}, {"guard": {"slices": [{"name": "a", "header": "x a"}]}},
    {"guard": {"slices": [{"name": "a", "header": "x-a", "label": True}]}}, {"guard": {"slices": [{"name": "a", "label": False}]}},
    {"guard": {"slices": [{"name": "a", "json": "language"}]}}, {"guard": {"slices": [{"name": "a", "json": "/a~2"}]}},
    {"guard": {"slices": [{"name": "a", "bytes": []}]}}, {"guard": {"slices": [{"name": "a", "bytes": [0]}]}},
    {"guard": {"slices": [{"name": f"s{i}", "header": "x-a"} for i in range(5)]}},
    {"certify": {"confidence": "10%"}}, {"certify": {"margin": "lots"}}, {"certify": {"onTimeout": "promote"}}, {"certify": {"maxStepDuration": 60}},
    {"shield": {"hedge": "p42"}}, {"shield": {"budget": 2}}, {"shield": {"retryStable": "yes"}}, {"dryRun": "output"}, {"dryRun": ["everything"]},
]


@pytest.mark.parametrize("lines", REFUSED, ids=json.dumps)
def test_the_schema_and_the_parser_refuse_the_same(tmp_path, lines):
    document = {**BASE, **lines}
    assert not VALIDATOR.is_valid(document) and problems(tmp_path, document)


# What only a whole document shows: no schema says it.
WHOLE = [r"weights must rise", r"must be the last step", r"comes before the first setWeight", r"must differ", r"is the canary itself",
         r"must be at least 100ms", r"given twice", r"must be above the size before it", r"key needs canary"]
HUGE = r"from -1e\+300 to 1e\+300"  # a validator compares an integer of 300 digits with the bound as if it had 16


def test_what_the_schema_allows_the_parser_takes(tmp_path):
    described = {"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": {"/": {"post": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Rollout"}}}},
        "responses": {"200": {"description": "ok"}}}}},
        "components": {"schemas": {"Rollout": inlined({k: v for k, v in SCHEMA.items() if k not in ("$defs", "$id", "$schema")})}}}
    operation = schemathesis.openapi.from_dict(described)["/"]["post"]

    @hypothesis.given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    def check(case):
        left = [p["message"] for p in problems(tmp_path, plain(case.body)) if not any(re.search(word, p["message"]) for word in [*WHOLE, HUGE])]
        assert not left, (case.body, left)

    check()


def plain(value):
    """1900.0 is an integer to JSON Schema, and 1900 to everybody else."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def inlined(schema):
    """Without $ref: the schema stands inside another document there."""
    if isinstance(schema, list):
        return [inlined(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: inlined(value) for key, value in (resolved(schema) if "$ref" in schema else schema).items()}
