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


def problems(tmp_path, *documents):
    """Of one document its problems; of several a list for each. They are read by one process."""
    paths = [tmp_path / ("rollout.yaml" if len(documents) == 1 else f"{number}.yaml") for number in range(len(documents))]
    for path, document in zip(paths, documents):
        path.write_text(document if isinstance(document, str) else json.dumps(document, ensure_ascii=False))
    done = serin("rollout", "validate", "--json", *(path.name for path in paths), cwd=tmp_path, timeout=60)
    said = json.loads(done.stdout)
    assert said["valid"] == (done.returncode == 0) == (not said["problems"])
    by_file = {path.name: [] for path in paths}
    for problem in said["problems"]:
        by_file[problem["file"]].append(problem)
    return list(by_file.values()) if len(documents) > 1 else by_file[paths[0].name]


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


# Keys that others need beside them, by the path of their object.
QUERY = {"name": "queue", "address": "http://prometheus:9090", "query": "max(queue)", "max": 1}
BESIDE = {
    ("canary",): {"version": "2"}, ("canary", "sticky"): {"header": "x-user"}, ("canary", "cohort"): {"header": "x-cohort", "values": ["beta"]},
    ("steps", "[]", "shadow"): {"percent": 10}, ("steps", "[]", "promote"): {"bake": "30m"},
    ("guard", "slices", "[]"): {"name": "country", "header": "x-country"},
    ("guard", "prometheus"): QUERY, ("guard", "prometheus", "[]"): QUERY,
    ("guard", "outcomes"): {"metric": "accuracy"}, ("guard", "outcomes", "[]"): {"metric": "accuracy"},
}
STEPS_AROUND = {"shadow": ([], [100]), "pause": ([5], []), "promote": ([5], [])}  # before and after a step of that kind
ABSENT = object()


def document_with(path, value):
    """A document that is right but for the value at this path. ABSENT: it has no such key."""
    beside = {**BESIDE, ("steps", "[]"): {"setWeight": 5} if path[2:3] == ("until",) else {}}
    if path == ("canary", "sticky", "cookie"):
        beside["canary", "sticky"] = {}  # one of both
    if path[3:4] in (("json",), ("bytes",), ("label",)):
        beside["guard", "slices", "[]"] = {"name": "country"}  # one of four
    for depth in range(len(path) - 1, -1, -1):
        owner, key = path[:depth], path[depth]
        if key == "[]":
            before, after = STEPS_AROUND.get(path[depth + 1] if path[depth + 1 :] else "", ([], []))
            value = [*before, value, *after]
        else:
            value = {**(beside.get(owner, {}) if owner else BASE), key: value}
            if value[key] is ABSENT:
                del value[key]
    return value


def test_the_schema_names_the_keys_that_the_parser_allows(tmp_path):
    # A key that nobody knows makes the parser name those that it does.
    said = problems(tmp_path, *(document_with((*path, "zzz"), 1) for path, _ in OBJECTS))
    for (path, schema), found in zip(OBJECTS, said):
        unknown = [problem["message"] for problem in found if "unknown key 'zzz'" in problem["message"]]
        assert len(unknown) == 1, (path, found)
        allowed = set(unknown[0].split("allowed: ")[1].split(", "))
        if path == ("steps", "[]"):
            assert set(schema["properties"]) <= allowed, "one kind of step of several"
        else:
            assert set(schema["properties"]) == allowed, path


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
    {"guard": {"resources": "on"}}, {"guard": {"resources": {"memory": "a b"}}}, {"guard": {"resources": {"cpuRatio": 1}}},
    {"guard": {"resources": {"path": "metrics"}}}, {"guard": {"resources": {"port": 70000}}}, {"guard": {"resources": {"memoryLimit": 0}}},
    {"guard": {"prometheus": []}}, {"guard": {"prometheus": {"name": "x"}}},
    {"guard": {"prometheus": {"name": "a b", "address": "http://p", "query": "q", "max": 1}}},
    {"guard": {"prometheus": {"name": "a", "address": "p:9090", "query": "q", "max": 1}}},
    {"guard": {"outcomes": []}}, {"guard": {"outcomes": "accuracy"}}, {"guard": {"outcomes": ["accuracy"]}}, {"guard": {"outcomes": {"margin": 1}}},
    {"guard": {"outcomes": [{"metric": "a", "margin": -1}]}},
    {"guard": {"slices": "country"}}, {"guard": {"slices": [{"name": "a"}]}}, {"guard": {"slices": [{"header": "x-a"}]}},
    {"guard": {"slices": [{"name": "a=b", "header": "x-a"}]}}, {"guard": {"slices": [{"name": "a", "header": "x a"}]}},
    {"guard": {"slices": [{"name": "a", "header": "x-a", "label": True}]}}, {"guard": {"slices": [{"name": "a", "label": False}]}},
    {"guard": {"slices": [{"name": "a", "json": "language"}]}}, {"guard": {"slices": [{"name": "a", "json": "/a~2"}]}},
    {"guard": {"slices": [{"name": "a", "bytes": []}]}}, {"guard": {"slices": [{"name": "a", "bytes": [0]}]}},
    {"guard": {"slices": [{"name": f"s{i}", "header": "x-a"} for i in range(5)]}},
    {"certify": {"confidence": "10%"}}, {"certify": {"margin": "lots"}}, {"certify": {"onTimeout": "promote"}}, {"certify": {"maxStepDuration": 60}},
    {"shield": {"hedge": "p42"}}, {"shield": {"budget": 2}}, {"shield": {"retryStable": "yes"}}, {"dryRun": "output"}, {"dryRun": ["everything"]},
]


def test_the_schema_and_the_parser_refuse_the_same(tmp_path):
    documents = [{**BASE, **lines} for lines in REFUSED]
    for document, said in zip(documents, problems(tmp_path, *documents)):
        assert not VALIDATOR.is_valid(document) and said, document


# What only a whole document shows: no schema says it.
WHOLE = [r"weights must rise", r"must be the last step", r"comes before the first setWeight", r"must differ", r"is the canary itself",
         r"must be at least 100ms", r"given twice", r"must be above the size before it", r"key needs canary",
         r"replay belongs to the first step"]
BYTES = r"of 1 to 64 characters|1 to 256 characters|of 1 to 4096 characters"  # the parser counts bytes of UTF-8, JSON Schema code points
HUGE = r"from -1e\+300 to 1e\+300"  # a validator compares an integer of 300 digits with the bound as if it had 16


def test_what_the_schema_allows_the_parser_takes(tmp_path):
    described = {"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": {"/": {"post": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Rollout"}}}},
        "responses": {"200": {"description": "ok"}}}}},
        "components": {"schemas": {"Rollout": inlined({k: v for k, v in SCHEMA.items() if k not in ("$defs", "$id", "$schema")})}}}
    operation = schemathesis.openapi.from_dict(described)["/"]["post"]

    documents = []

    @hypothesis.given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    def collect(case):
        documents.append(plain(case.body))

    collect()
    assert len(documents) >= 100
    for document, said in zip(documents, problems(tmp_path, *documents)):
        left = [p["message"] for p in said if not any(re.search(word, p["message"]) for word in [*WHOLE, BYTES, HUGE])]
        assert not left, (document, left)


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


# --- every value at every key ---------------------------------------------------------------------------------------------------------

KEYS = list(dict.fromkeys((*path, key) for path, schema in OBJECTS for key in schema["properties"]))
VALUES = [
    True, False, {}, [], ["x"], [5], [5, 50], [{"setWeight": 5}], {"version": "1"}, {"duration": "10m"}, {"errors": "1%"}, {"latency": 0.01}, {"header": "x"},
    0, 1, -1, 2, 5, 10, 50, 100, 101, 0.5, 0.25, 1.5, -0.5, 0.00001, 1e-12, 1e30, 12345678901, "0", "1", "5", "100", "0.5", "1e3",
    "0%", "1%", "5 %", "12.5%", "50%", "50.1%", "99%", "99.99%", "100%", "101%", "-1%", "0.1%", "0.0001%", "0.00001%", "33.33333%",
    "0ms", "500us", "1ms", "0.5s", "2s", "10m", "1.5h", "1d", "-5ms", "ms", "1e3ms", "999999h",
    "", "a b", "a:b", "a,b", 'a"b', "x-user", "X-User", "ä", "x" * 64, "x" * 65, "http://p:9090", "https://p", "p:9090", "yes", "true", "soon",
]


def values_near(schema):
    """Bounds of the schema and what is just within and just beyond them; its words and defaults."""
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            yield from (value, value - 1, value + 1, value * (1 - 1e-6) - 1e-12, value * (1 + 1e-6) + 1e-12)
        elif keyword in ("minLength", "maxLength"):
            yield from ("x" * length for length in (value - 1, value, value + 1))
        elif keyword in ("minItems", "maxItems"):
            for length in range(value - 1, value + 2):
                yield from (["x"] * length, [(i + 1) / 2 for i in range(length)], [{**QUERY, "name": f"q{i}"} for i in range(length)])
        elif keyword == "enum":
            yield from value
        elif keyword in ("const", "default"):
            yield value
        yield from values_near(value)


# The parser takes these, and the schema warns: names that router.yaml cannot have, an address without a host, a bake of no time.
ONLY_THE_PARSER = {
    ("service",): r"x{129,}", ("stable",): r"x{129,}", ("stable", "version"): r"x{129,}", ("canary",): r"x{129,}", ("canary", "version"): r"x{129,}",
    ("guard", "prometheus", "address"): "http://", ("guard", "prometheus", "[]", "address"): "http://", ("steps", "[]", "promote", "bake"): "0|0ms",
}


def respelled(value):
    """The same to the parser: "5" and 5, true and "true", no time at all."""
    if isinstance(value, list):
        return [respelled(part) for part in value]
    if not isinstance(value, str):
        return json.dumps(value)
    return "0" if value == "0ms" else json.loads(value) if re.fullmatch(r"true|[-.e0-9]+", value) else value


def test_the_schema_and_the_parser_agree_about_every_value_at_every_key(tmp_path):
    values = {json.dumps(value): value for value in map(plain, [*VALUES, *values_near(SCHEMA)])}.values()
    cases = [(path, value) for path in KEYS for value in (ABSENT, *values)]
    assert len(KEYS) >= 80 and len(cases) > 10_000
    documents = [document_with(path, value) for path, value in cases]
    taken = 0
    for (path, value), document, said in zip(cases, documents, problems(tmp_path, *documents)):
        for words in (re.search(r"must be one of (.*), not", p["message"]) for p in said if value == "soon"):
            assert not words or all(VALIDATOR.is_valid(document_with(path, word)) or path == ("guard", "unit") for word in words[1].split(", ")), path
        left = [p["message"] for p in said if not any(re.search(word, p["message"]) for word in WHOLE)]
        if VALIDATOR.is_valid(document):
            assert not left, (document, left)
            taken += 1
        elif not said and not (path in ONLY_THE_PARSER and re.fullmatch(ONLY_THE_PARSER[path], str(value))):
            assert value is not ABSENT and VALIDATOR.is_valid(document_with(path, respelled(value))), ("only the parser takes it", document)
    assert taken > 1000
