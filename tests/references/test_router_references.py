"""The references of the router say all that the code has, and nothing else.

Each page is held to the place where the code keeps the same fact: the key lists of the readers of router.yaml, rollout.schema.json, openapi.json, and the
names under which metrics are registered. Sources are found by pattern, so that files may move between folders.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "router/config/REFERENCE.md"
SPECIFICATION = ROOT / "router/rollout/REFERENCE.md"
ADMIN = ROOT / "router/admin/REFERENCE.md"
METRICS = ROOT / "router/view/METRICS.md"

HEADING = re.compile(r"(?m)^### `([^`]+)`$")


def read(pattern):
    """The one file of that name, wherever in its folder it lies."""
    found = sorted(ROOT.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0].read_text()


def sections(page):
    """{what a heading names: the text below it}"""
    parts = HEADING.split(page.read_text())
    names = parts[1::2]
    assert len(names) == len(set(names)), f"{page}: headings twice: {sorted(name for name in names if names.count(name) > 1)}"
    return {name: re.split(r"(?m)^## ", text)[0] for name, text in zip(names, parts[2::2])}


def assert_same(page, named, known):
    missing, extra = sorted(known - named), sorted(named - known)
    assert not missing and not extra, f"{page.relative_to(ROOT)}: missing {missing}, not in the code {extra}"


# ---- router.yaml ----

# Where the keys that a reader allows stand in router.yaml. A reader without an entry fails the test: say here where it reads.
READERS = {
    ("read_config", "root"): "",
    ("read_config", "prometheus"): "prometheus.",
    ("read_admin", "node"): "admin.",
    ("read_listener_tls", "node"): "tls.",  # and admin.tls, external_metrics.tls, external_scaler.tls
    ("read_store", "store"): "store.",
    ("read_replicas", "node"): "replicas.",
    ("read_etcd", "node"): "store.etcd.",
    ("read_kubernetes", "node"): "kubernetes.",
    ("read_group", "node"): "store.kubernetes.",
    ("read_external_metrics", "node"): "external_metrics.",
    ("read_external_scaler", "node"): "external_scaler.",
    ("read_limits", "node"): "limits.",
    ("read_service", "node"): "services.",
    ("read_split", "node"): "services.split.",
    ("read_version", "node"): "services.versions.",
    ("read_list", "item"): "services.versions.endpoints.",
    ("read_source", "node"): "services.versions.endpoints.",
    ("read_http_route", "node"): "services.http_route.",
    ("read_slices", "node"): "services.versions.endpoints.kubernetes.",
    ("read_health", "node"): "services.versions.health.",
    ("read_ejection", "node"): "services.versions.ejection.",
    ("read_client_tls", "node"): "services.versions.tls.",  # and store.etcd.tls, kubernetes.tls, webhooks.tls, prometheus.tls
    ("read_webhook", "node"): "webhooks.",
    ("read_recording", "node"): "services.recording.",
    ("read_metric", "node"): "services.outcomes.",
    ("read_label_settings", "node"): "services.outcomes.labels.",
}
FUNCTION = re.compile(r"(?m)^[A-Za-z_][\w:<>,*& ]*? (\w+)\([^;{}]*\) \{$")
ALLOWED = re.compile(r"(\w+)(?:\.|->)allow_only\(\s*\{([^}]*)\}\)")


def readers_of_router_yaml():
    """{(function, the node it reads): keys}"""
    readers = {}
    for path in ROOT.glob("router/config/*.cc"):
        text = path.read_text()
        functions = [(match.start(), match[1]) for match in FUNCTION.finditer(text)]
        allowed = list(ALLOWED.finditer(text))
        assert len(allowed) == text.count("allow_only("), f"{path}: a list of keys that this test does not read"
        for match in allowed:
            function = [name for start, name in functions if start < match.start()][-1]
            readers.setdefault((function, match[1]), set()).update(re.findall(r'"([^"]+)"', match[2]))
    return readers


def test_every_key_of_router_yaml_has_its_heading():
    readers = readers_of_router_yaml()
    assert set(readers) == set(READERS), f"readers without a place: {set(readers) - set(READERS)}, places without a reader: {set(READERS) - set(readers)}"
    known = {READERS[reader] + key for reader, keys in readers.items() for key in keys}
    assert_same(CONFIG, set(sections(CONFIG)), known)


def test_the_ranges_of_limits_are_those_of_the_code():
    """The numbers of the largest table of one kind: least, most and default."""
    code = "".join(path.read_text() for path in sorted(ROOT.glob("router/config/*.cc")))
    page = sections(CONFIG)
    ranges = re.findall(r'size\("(\w+)", ([^,]+), ([^,]+), limits\.\w+\)', code)
    assert len(ranges) >= 7
    for key, least, most in ranges:
        most = int(re.search(r"kLargestBody = int64_t\{(\d+)\} << 30", code)[1]) << 30 if most == "kLargestBody" else shifted(most)
        assert f"Range: {shifted(least)} to {most}\n" in page[f"limits.{key}"], key
    defaults = dict(re.findall(r"size_t (\w+) = ([^;]+);", read("runtime/net/**/http.h")))
    for key, *_ in ranges:
        assert f"Default: `{shifted(defaults[key])}`" in page[f"limits.{key}"], key


def shifted(text):
    """'8 * 1024', 'size_t{64} << 20', "65'536" as a number"""
    value, operator, by = re.fullmatch(r"(?:size_t\{)?([\d']+)\}?(?: (<<|\*) (\d+))?", text.strip()).groups()
    value = int(value.replace("'", ""))
    return value << int(by) if operator == "<<" else value * int(by) if operator else value


# ---- specification ----

def keys_of(schema, definitions, path=""):
    """Every key that a document may have, as a path; lists add nothing to it."""
    if "$ref" in schema:
        yield from keys_of(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, path)
    for name, below in schema.get("properties", {}).items():
        yield path + name
        yield from keys_of(below, definitions, path + name + ".")
    for below in [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from keys_of(below, definitions, path)


def test_every_key_of_a_specification_has_its_heading():
    schema = json.loads(read("router/**/rollout.schema.json"))
    known = set(keys_of(schema, schema["$defs"]))
    assert len(known) > 60
    assert_same(SPECIFICATION, set(sections(SPECIFICATION)), known)


def facts_of(schema, definitions, path=""):
    """(key, its default, the words that it may be) where the schema has one or the other."""
    if "$ref" in schema and not {"default", "enum"} & set(schema):
        yield from facts_of(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, path)
    words = schema.get("enum", schema["items"].get("enum", []) if "items" in schema else [])
    if path and ("default" in schema or words):
        yield path, schema.get("default"), words
    for name, below in schema.get("properties", {}).items():
        yield from facts_of(below, definitions, f"{path}.{name}" if path else name)
    for below in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from facts_of(below, definitions, path)


def test_defaults_and_words_of_a_specification_are_those_of_the_schema():
    schema = json.loads(read("router/**/rollout.schema.json"))
    page = sections(SPECIFICATION)
    facts = [fact for fact in facts_of(schema, schema["$defs"]) if fact[0] in page]
    assert len(facts) > 20
    for key, default, words in facts:
        kind, usual = re.match(r"\n- Type: (.+)\n- Default: (.+)\n", page[key]).groups()
        if default is not None:
            written = f"{default:.5f}" if default == 1e-05 else str(default).lower() if isinstance(default, bool) else str(default)
            assert usual.startswith(f"`{written}`"), key
        assert all(f"`{word}`" in kind for word in words), key


def tables(page):
    """The first cell of every row of every table, as the list of words in backticks."""
    return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in page.read_text().splitlines() if line.startswith("| `")]


def test_every_phase_and_word_is_explained():
    phases = re.findall(r'"(\w+)"', re.search(r"kNames\[\] = \{([^}]*)\}", read("router/**/phase.cc"))[1])
    words = re.findall(r'"(\w+)"', re.search(r"standing_of\(.*?\n\}", read("router/**/gates.cc"), re.DOTALL)[0])
    explained = {word for row in tables(SPECIFICATION) for word in row}
    assert len(phases) == 7 and set(phases) <= explained
    assert set(words) == {"healthy", "insufficient_data", "rolled_back", "promoted"} and set(words) <= explained


# ---- admin API ----

def test_every_path_of_the_admin_api_has_its_heading():
    described = json.loads(read("router/**/openapi.json"))["paths"]
    known = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    assert_same(ADMIN, set(sections(ADMIN)), known)


def test_every_field_of_a_status_is_in_the_tables():
    schemas = json.loads(read("router/**/openapi.json"))["components"]["schemas"]
    known = set(schemas["Status"]["properties"]) | set(schemas["Rollout"]["properties"])
    told = {word for row in tables(ADMIN) for word in row}
    assert len(known) > 25 and known <= told, known - told


def test_every_command_names_the_role_that_it_needs():
    verbs = re.findall(r'\{"([a-z-]+)", Role::k(\w+)\}', read("router/**/admin_api.cc"))
    assert len(verbs) >= 7
    page = sections(ADMIN)
    for verb, role in verbs:
        assert page[f"POST /v1/rollouts/{{service}}:{verb}"].startswith(f"\nRole: `{role.lower()}`."), verb


def test_every_status_of_the_admin_api_is_in_the_table_of_errors():
    described = json.loads(read("router/**/openapi.json"))["paths"]
    errors = {int(code) for methods in described.values() for operation in methods.values() for code in operation["responses"]
              if int(code) >= 305} - {409}  # 304 is no error; 409 is a gate's no, too
    told = {int(code) for code in re.findall(r"(?m)^\| (\d{3}) \|", ADMIN.read_text())}
    assert errors <= told, errors - told


# ---- metrics ----

REGISTERED = re.compile(r'(counter_callback|counter|gauge_callback|gauge|histogram|stale_metric)(?:\(\s*| = )"((?:serin|process)_[a-z_]+)"')
SOURCES = ["router/**/*.cc", "runtime/cli/**/route.cc", "runtime/net/**/listener.cc", "runtime/net/**/tls_watch.cc", "runtime/base/process_metrics.cc"]
KINDS = {"counter_callback": "counter", "gauge_callback": "gauge", "stale_metric": "gauge"}


def test_every_metric_of_the_router_is_in_the_tables_with_its_type():
    known = {}
    offered = set()  # again, to autoscalers
    for path in {path for pattern in SOURCES for path in ROOT.glob(pattern)}:
        text = path.read_text()
        registered = REGISTERED.findall(text)
        names = set(re.findall(r'"(serin_(?:route|rollout|admin|webhook|http|tls)_[a-z_]+)"', text))
        if path.name == "load_metric.cc":
            offered |= names
            continue
        assert names == {name for _, name in registered if name.startswith("serin_")}, f"{path}: a metric whose type this test does not find"
        known |= {name: KINDS.get(kind, kind) for kind, name in registered}
    assert offered and offered <= set(known)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in METRICS.read_text().splitlines() if line.startswith(("| `serin_", "| `process_"))]
    told = {row[0].strip("`"): row[1] for row in rows}
    assert len(rows) == len(told) and all(len(row) == 4 and row[3] for row in rows)
    assert_same(METRICS, set(told), set(known))
    assert told == known


# ---- all of them ----

@pytest.mark.parametrize("page", [CONFIG, SPECIFICATION], ids=["config", "rollout"])
def test_every_key_has_a_type_and_a_default_and_an_example(page):
    for name, text in sections(page).items():
        assert re.match(r"\n- Type: .+\n- Default: .+\n", text), name
        assert re.search(r"```yaml\n.*\b" + re.escape(name.split(".")[-1]) + r"\b", text, re.DOTALL) or name.endswith("p99.9"), f"{name}: no example"


def anchors(page):
    """Of all headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [CONFIG, SPECIFICATION, ADMIN, METRICS, ROOT / "router/GUIDE.md", ROOT / "router/README.md"],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_the_pages_of_the_router_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if ROOT / "router" not in other.parents:
            continue
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), target
