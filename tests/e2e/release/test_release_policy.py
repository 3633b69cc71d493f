"""release.yaml: every key that is unknown, or contradicts another, is refused with its line, before anything happens."""

import re

import pytest

from conftest import MODELS, ROOT, serin

GOOD = """kind: Release
registry: .
slots:
  blue: {runtimes: ["http://127.0.0.1:8000"]}
  green: {runtimes: ["http://127.0.0.1:8010"]}
"""


def refusal(tmp_path, text):
    file = tmp_path / "release.yaml"
    file.write_text(text)
    done = serin("release", MODELS / "digits/2", "--service", "digits", "--policy", file, "--admin", "127.0.0.1:1")
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and done.stderr.startswith(f"serin release: {file}:") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.split(f"{file}:")[1]


@pytest.mark.parametrize("line, words", [
    ("stages: [eval]", "6:1: unknown key 'stages'; allowed: kind, registry"),
    ("registry: other", "6:1: key 'registry' given twice"),
    ("production: '7'", "must be a tag"), ("production: latest", "must be a tag"), ("production: blue", "slots.blue: is also the tag of 'production'"),
    ("model: a/b", "must be a name in the registry"),
    ("check: {contracts: any}", "6:9: unknown key 'contracts' under check; allowed: cases, contract"), ("check: {contract: other}", "same, any"),
    ("check: fast", "must be a map with the keys"), ("check: {cases: ''}", "must name a file"),
    ("plan: {memory: lots}", "plan.memory: must be bytes"), ("plan: {instances: 0}", "plan.instances: must be a whole number from 1"),
    ("plan: {instances: 2}", "'instances' needs 'memory' or 'device'"), ("plan: {ram: 1Gi}", "unknown key 'ram' under plan"),
    ("eval: {gate: 5}", "unknown key 'gate' under eval"), ("eval: {require: [top1]}", "'top1' must be METRIC >= NUMBER"), ("eval: {require: top1 >= 1}", "must be a list"),
    ("eval: {noWorseBy: -1}", "not negative"), ("eval: {confidence: 40%}", "from 50% to 99.99%"), ("eval: {task: guess}", "eval.task"), ("eval: {onError: ignore}", "stop, skip"),
    ("eval: {softmax: maybe}", "must be true or false"),
    ("notify: hook", "notify: must be a list"), ("notify: ['ftp://a/b']", "an entry that is no URL"), ("notify: ['http://']", "an entry that is no URL"),
    ("notify: [hook.url]", "hook.url: cannot be opened: No such file"),
    ("load: {wait: 1m}", "unknown key 'wait' under load"), ("load: {timeout: 5}", "must be a duration"), ("load: {timeout: 0}", "must be above 0"),
    ("rollout: {canary: green}", "6:11: unknown key 'canary' under rollout; allowed: steps, guard, certify, shield, capacity, dryRun"),
    ("rollout:\n  steps: [5, 5]", "7:14: rollout.steps[1]"), ("rollout: {guard: {errors: {max: 0}}}", "rollout.guard.errors.max"),
    ("timeout: 0", "must be above 0"), ("timeout: 5m\nrollout: {steps: [{setWeight: 5, until: {duration: 10m}}, 50]}", "6:10: timeout: the steps of the rollout alone take 10m"),
])
def test_a_bad_line_is_named(tmp_path, line, words):
    assert words in refusal(tmp_path, GOOD + line + "\n")


@pytest.mark.parametrize("text, words", [
    ("", "key 'registry' is missing (and 1 more)"), ("[1]", "must be a map"), ("kind: Rollout\n" + GOOD.split("\n", 1)[1], "1:7: kind"), (GOOD.replace("registry: .\n", ""), "key 'registry' is missing"),
    (GOOD[:GOOD.index("slots")], "key 'slots' is missing"), (GOOD[:GOOD.index("  green")], "must be two slots"), (GOOD.replace("green", "'7'"), "'7' is no name"),
    (GOOD.replace("8010", "8000"), "is named twice"), (GOOD.replace("http://127.0.0.1:8010", "localhost"), "must be http://HOST:PORT"),
    (GOOD.replace("http://127.0.0.1:8010", "http://127.0.0.1:8010/v2"), "must be http://HOST:PORT"), (GOOD.replace('["http://127.0.0.1:8010"]', "[]"), "must have 'runtimes'"),
    (GOOD.replace("green: {runtimes", "green: {urls"), "unknown key 'urls' under slots.green"), ("a: [", "1:"),
])
def test_a_bad_file_is_named(tmp_path, text, words):
    assert words in refusal(tmp_path, text)


def test_all_faults_are_counted(tmp_path):
    assert "(and 2 more)" in refusal(tmp_path, GOOD + "stages: 1\nplan: {ram: 1}\nload: {timeout: 5}\n")


def test_a_file_that_is_not_there(tmp_path):
    done = serin("release", MODELS / "digits/2", "--service", "digits", "--policy", tmp_path / "no.yaml")
    assert done.returncode == 2 and "no.yaml" in done.stderr


def test_the_page_has_every_key(tmp_path):
    """runtime/cli/release/README.md has a heading for each key that is allowed, and for no other."""
    page = (ROOT / "runtime/cli/release/README.md").read_text()
    headings = set(re.findall(r"^### `([\w.]+)`", page, re.M))
    allowed = set()
    for owner in "", "slots.blue", "check", "plan", "eval", "load", "notify":
        line = {"": "nothing: 1", "slots.blue": "", "notify": "notify: [{nothing: 1}]"}.get(owner, f"{owner}: {{nothing: 1}}")
        text = (GOOD.replace("blue: {runtimes", "blue: {nothing: 1, runtimes") if owner == "slots.blue" else GOOD) + line + "\n"
        keys = re.search(r"unknown key 'nothing'.*; allowed: ([\w, ]+)", refusal(tmp_path, text))[1].strip().split(", ")
        allowed |= {f"{owner.removesuffix('.blue')}.{key}".lstrip(".") for key in keys}
    assert headings == allowed
