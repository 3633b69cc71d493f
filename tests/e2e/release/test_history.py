"""The records of releases: shown, verified by the program and by deploy/verify_record.py, and judged again; a changed one shows."""

import base64
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, serin
from release_loop import DIGITS, RULES

SCRIPT = ROOT / "deploy/verify_record.py"


def key_pair(folder, name="release"):
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True, capture_output=True)
    private.chmod(0o600)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


def verify_both(loop, *, key=None, code=0):
    """What the program and the script say about all records; both end with that code."""
    flags = ["--public-key", key] if key else []
    by_program = serin("history", "verify", loop.registry, *flags)
    command = [sys.executable, SCRIPT, records_file(loop), "--registry", loop.registry, *flags]
    by_script = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (by_program.returncode, by_script.returncode) == (code, code), by_program.stdout + by_program.stderr + by_script.stdout + by_script.stderr
    return by_program.stdout + by_program.stderr, by_script.stdout


def records_file(loop):
    return loop.registry / ".releases/digits/records.jsonl"


def by_script_alone(loop, *flags):
    done = subprocess.run([sys.executable, SCRIPT, records_file(loop), *map(str, flags)], capture_output=True, text=True, check=False)
    assert done.stderr == "", done.stderr
    return done


@pytest.fixture
def history(loop, clients):
    """A promoted release, one stopped by its evaluation, and one that was rolled back; all signed."""
    private, loop.public = key_pair(loop.folder)
    assert loop.outcome(DIGITS / "2", "--sign", private)["outcome"] == "promoted"
    assert loop.outcome(DIGITS / "3", "--sign", private, code=3)["stage"] == "eval"
    loop.policy(eval=None, check={"contract": "any"}, rollout={**RULES, "steps": [20]})
    assert loop.outcome(DIGITS / "5", "--sign", private, code=3)["outcome"] == "rolled_back"
    return loop


def test_records_are_shown_verified_and_reproduced(history):
    listed = json.loads(serin("history", "list", history.registry, "digits", "--json").stdout)
    assert [(each["outcome"], each["stage"], each["signed"]) for each in listed] == [("promoted", "tag", True), ("refused", "eval", True), ("rolled_back", "canary", True)]
    assert [each["model"] for each in listed] == ["digits:2", "digits", "digits:3"]
    lines = serin("history", "list", history.registry).stdout.splitlines()
    assert len(lines) == 3 and all(each["id"] in line for each, line in zip(listed, lines)) and "0.2185" in lines[1]

    shown = serin("history", "show", history.registry, listed[0]["id"]).stdout
    for words in ("promoted at tag", "model      digits:2 sha256:", "compared   digits:1 sha256:", "top1 0.9963", "rollout    digits-1", f"digest     {listed[0]['digest']}", "not worse"):
        assert words in shown, shown
    statement = json.loads(serin("history", "show", history.registry, listed[0]["digest"], "--json").stdout)
    assert statement["_type"] == "https://in-toto.io/Statement/v1" and statement["subject"][0]["name"] == "digits:2"
    assert statement["subject"][0]["digest"]["sha256"] == statement["predicate"]["model"]["content"].removeprefix("sha256:")

    program, script = verify_both(history, key=history.public)
    assert "3 records, none changed, none missing between them; all signed by this key" in program
    assert script.count("verified, signed") == 3 and listed[-1]["digest"] in script and listed[-1]["digest"] in program
    verify_both(history, key=key_pair(history.folder, "other")[1], code=1)
    assert serin("history", "verify", history.registry, "--noted", listed[0]["digest"]).returncode == 0
    assert serin("history", "verify", history.registry, "--noted", "sha256:" + 64 * "0").returncode == 1
    # The signature is one that OpenSSL's own tool accepts.
    line = json.loads(records_file(history).read_text().splitlines()[0])
    payload = base64.b64decode(line["payload"])
    (history.folder / "message").write_bytes(f"DSSEv1 {len(line['payloadType'])} {line['payloadType']} {len(payload)} ".encode() + payload)
    (history.folder / "signature").write_bytes(base64.b64decode(line["signatures"][0]["sig"]))
    checked = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", history.public, "-rawin", "-in", history.folder / "message", "-sigfile", history.folder / "signature"],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_an_evaluation_is_made_again(history, tmp_path):
    promoted, refused, rolled_back = (record["id"] for record in history.records())
    again = serin("history", "reproduce", history.registry, promoted)
    assert again.returncode == 0 and "the same to the last digit" in again.stdout, again.stderr
    assert "name its files with --model" in serin("history", "reproduce", history.registry, refused).stderr
    assert serin("history", "reproduce", history.registry, refused, "--model", DIGITS / "3").returncode == 0
    wrong = serin("history", "reproduce", history.registry, refused, "--model", DIGITS / "4")
    assert wrong.returncode == 2 and "its contents are sha256:" in wrong.stderr
    assert "has no evaluation" in serin("history", "reproduce", history.registry, rolled_back).stderr
    # Other data give other numbers, which are named.
    with np.load(DIGITS / "eval.npz") as data:
        np.savez(tmp_path / "eval.npz", pixels=data["pixels"], label=(data["label"] + (np.arange(540) == 7)) % 10)
    other = serin("history", "reproduce", history.registry, promoted, "--data", tmp_path / "eval.npz")
    assert other.returncode == 1 and "/data/sha256: recorded" in other.stderr and "gives other numbers in" in other.stderr
    missing = serin("history", "reproduce", history.registry, "nothing")
    assert missing.returncode == 2 and "has no record 'nothing'" in missing.stderr


def rewritten(loop, number, change):
    """The file with one statement changed, and the chain computed anew from there, as somebody does who may write to the folder but has no key."""
    lines, before = [], ""
    for i, line in enumerate(records_file(loop).read_text().splitlines()):
        envelope = json.loads(line)
        statement = json.loads(base64.b64decode(envelope["payload"]))
        statement["predicate"]["previous"] = before
        if i == number:
            change(statement["predicate"])
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
        lines.append(json.dumps(envelope))
        before = "sha256:" + hashlib.sha256(lines[-1].encode()).hexdigest()
    records_file(loop).write_text("".join(line + "\n" for line in lines))


def change_report(change):
    """Of the evaluation, with its digest computed anew."""
    def apply(predicate):
        report = json.loads(predicate["evaluation"]["report"])
        change(report, predicate)
        predicate["evaluation"]["report"] = json.dumps(report)
        predicate["evaluation"]["sha256"] = "sha256:" + hashlib.sha256(predicate["evaluation"]["report"].encode()).hexdigest()
    return apply


def change_verdict(change):
    def apply(predicate):
        verdict = json.loads(predicate["rollout"]["verdict"])
        change(verdict)
        predicate["rollout"]["verdict"] = json.dumps(verdict)
    return apply


def better_metric(report, predicate):
    report["requirements"][0]["value"] = 0.99


def wider_interval(report, predicate):
    report["comparison"]["low"] = -0.2


def fewer_events(verdict):
    verdict["record"]["events"] = verdict["record"]["events"][:1]


def other_share(verdict):
    for event in verdict["record"]["events"]:
        event["share"] = 0.9


TAMPERED = [  # the record, what is changed in it, what the script says
    (0, lambda p: p.update(outcome="refused"), "does not fit its evaluation"), (1, lambda p: p.update(outcome="promoted"), "'promoted' does not fit"),
    (1, change_report(better_metric), "does not fit its number"), (0, change_report(wider_interval), "the comparison says 'no worse'"),
    (1, lambda p: p["evaluation"].update(exit_code=0), "and its numbers say 1"), (0, lambda p: p["evaluation"].update(report=p["evaluation"]["report"] + " "), "is not the one of its digest"),
    (0, lambda p: p.update(policy=p["policy"].replace("95%", "15%")), "its subject or its policy"), (0, lambda p: p["model"].update(content="sha256:" + 64 * "1"), "its subject or its policy"),
    (0, lambda p: p["tag"].update(version=7), "does not fit its evaluation"), (2, lambda p: p["rollout"]["history"][-1].update(detail="all is well"), "was changed, or follows another one"),
    (2, lambda p: p["rollout"]["history"].pop(), "its log ends with 'started'"), (2, change_verdict(lambda v: v.update(phase="Succeeded")), "the router's verdict is Succeeded"),
    (2, change_verdict(fewer_events), "are no reason for a rollback"), (2, change_verdict(other_share), "are no reason for a rollback"), (2, lambda p: p.update(reason=""), "does not fit"),
    (2, lambda p: p["model"]["files"][0].update(digest="sha256:" + 64 * "2"), "is not what it was"),
]


def test_a_changed_record_shows(history):
    whole = records_file(history).read_bytes()
    for number, change, words in TAMPERED:
        records_file(history).write_bytes(whole)
        rewritten(history, number, change)
        unsigned = by_script_alone(history, "--registry", history.registry)
        assert unsigned.returncode == 1 and words in unsigned.stdout, (words, unsigned.stdout)
        signed = by_script_alone(history, "--public-key", history.public)
        assert f"line {number + 1}, " in signed.stdout and "it is not signed by that key" in signed.stdout
        assert serin("history", "verify", history.registry, "--public-key", history.public).returncode == 1
    records_file(history).write_bytes(whole)
    verify_both(history, key=history.public)


def test_a_changed_file_shows(history):
    whole = records_file(history).read_bytes()
    lines = whole.splitlines(keepends=True)
    for damaged in (lines[0] + lines[2], lines[1] + lines[0] + lines[2], whole.replace(b'"payload":"ey', b'"payload":"eZ', 1), b"{}\n" + whole, whole[:-400]):
        records_file(history).write_bytes(damaged)
        verify_both(history, code=1)
        # Nothing is released upon records that were changed.
        refused = history.release(DIGITS / "1", code=1)
        assert "records.jsonl: line" in refused.stderr
    records_file(history).write_bytes(lines[0] + lines[1])  # cut off at the end: only a noted digest shows it
    last = serin("history", "verify", history.registry, "--noted", "sha256:" + hashlib.sha256(lines[2].rstrip()).hexdigest())
    assert last.returncode == 1 and "was removed" in last.stderr


@pytest.mark.parametrize("arguments, words", [
    (["list", "REGISTRY/nothing"], "there is no such registry"), (["list", "REGISTRY", "cats"], "no record of a release of 'cats'"),
    (["show", "REGISTRY", "digits-1"], "has no record 'digits-1'"), (["verify", "REGISTRY", "--public-key", "REGISTRY/index"], "no such file"),
])
def test_wrong_questions(tmp_path, arguments, words):
    registry = tmp_path / "registry"
    assert serin("registry", "add", registry, "digits", DIGITS / "1").returncode == 0
    done = serin("history", *[word.replace("REGISTRY", str(registry)) for word in arguments])
    assert done.returncode == 2 and words in done.stderr.lower() or words in done.stderr, done.stderr


def test_keys_that_are_none(loop, tmp_path):
    rsa, readable = tmp_path / "rsa.pem", tmp_path / "open.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out", rsa], check=True, capture_output=True)
    rsa.chmod(0o600)
    private, _ = key_pair(tmp_path)
    readable.write_bytes(private.read_bytes())
    readable.chmod(0o644)
    assert "contains no private Ed25519 key" in loop.release(DIGITS / "2", "--sign", rsa, code=2).stderr
    assert "open.pem" in loop.release(DIGITS / "2", "--sign", readable, code=2).stderr
