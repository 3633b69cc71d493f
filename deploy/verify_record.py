#!/usr/bin/python3
"""Verifies records of `serin release` without Serin: nothing but Python's standard library, and no code in common.

    deploy/verify_record.py registry/.releases/digits/records.jsonl [--registry registry] [--public-key key.pem]

Per record: its place in the chain, its signature (Ed25519), its digests, and whether its outcome follows from what it contains: the evaluation from its numbers,
the rollback from its events, the tag from both. With --registry also the files of the model. Exit code 1: something is wrong.
"""
import argparse
import base64
import hashlib
import json
import math
import pathlib
import re
import sys

P, TYPE = 2**255 - 19, "application/vnd.in-toto+json"
ORDER, D = 2**252 + 27742317777372353535851937790883648493, -121665 * pow(121666, -1, P) % P  # RFC 8032, 5.1


def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def point(raw):
    y, sign = int.from_bytes(raw, "little") & (2**255 - 1), raw[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = next((x for x in (pow(square, (P + 3) // 8, P) * root % P for root in (1, pow(2, (P - 1) // 4, P))) if (x * x - square) % P == 0), 0)
    return (x if x & 1 == sign else P - x, y) if y < P and (x * x - square) % P == 0 else None


def add(a, b):
    product = D * a[0] * b[0] * a[1] * b[1]
    return (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P) % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P) % P


def times(k, a):
    total = (0, 1)
    while k:
        total, a, k = add(total, a) if k & 1 else total, add(a, a), k >> 1
    return total


def signed(public, message, signature):
    key, nonce, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    return key and nonce and s < ORDER and times(s, point(bytes([0x58] + 31 * [0x66]))) == add(nonce, times(h, key))


def evaluation_faults(said, policy):
    report, code = json.loads(said["report"]), 0
    if "sha256:" + sha256(said["report"]) != said["sha256"]:
        yield "the evaluation is not the one of its digest"
    for each in report.get("requirements", []):
        relation, bound = re.search(r"(>=|<=|>|<)\s*(.+?)\s*$", each["text"]).groups()
        value, bound = each["value"], float(bound.rstrip("%")) / (100 if bound.endswith("%") else 1)
        holds = value is not None and {">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound}[relation]
        code = code if holds else 1
        if holds != each["holds"] or each["text"] not in policy:
            yield f"'{each['text']}' does not fit its number, or the policy"
    if (compared := report.get("comparison")) and compared["gate"]:
        lost = (compared["high"], compared["low"]) if compared["metric"] in ("log_loss", "ece", "rmse", "mae", "wer", "cer") else (-compared["low"], -compared["high"])
        verdict = "no worse" if lost[0] <= compared["margin"] else "worse" if lost[1] > compared["margin"] else "inconclusive"
        code = code or {"no worse": 0, "worse": 1, "inconclusive": 4}[verdict]
        if verdict != compared["verdict"]:
            yield f"the comparison says '{compared['verdict']}', and its interval '{verdict}'"
    if code != said["exit_code"]:
        yield f"the evaluation ended with {said['exit_code']}, and its numbers say {code}"


def bits_again(record):
    """The evidence after the last event, for guards that ask whose the bad answers are: a mixture of likelihood ratios over change points."""
    tolerated, bets, unused, count = record["tolerated_ratio"], list(record["worse"]["mixture"]), record["worse"]["unused_mass"], record["worse"]["count"]
    for event in (event for event in record["events"] if event["bad"] and event["units"]):
        canary, share = (event["arm"] == "canary") != record["mirrored"], 1 - event["share"] if record["mirrored"] else event["share"]
        started = min(unused, 0.5 if count == 0 else 0.5 / 2.1097 / ((count + 1) * math.log(count + 1) ** 2))
        unused, count = unused - started, count + 1
        for j in range(8):
            ratio = (1 - share + tolerated * share) / (1 - share + tolerated * 2 ** (j + 1) * share) * (2 ** (j + 1) if canary else 1)
            bets[j] = min(1e200, (bets[j] + started) * ratio ** event["units"])
    return math.log2(sum(bets) / 8 + unused)


def rollout_faults(rollout, outcome):
    verdict, before = json.loads(rollout["verdict"]), None
    phase, record, last = verdict["phase"], verdict.get("record"), rollout["history"][-1]["event"]
    for entry in rollout["history"]:
        fields = (entry["previous"], verdict["service"], entry["rollout"], entry["event"], entry["actor"], entry["detail"])
        text = "".join(f"{len(field.encode())}:{field}," for field in fields) + f"{entry['wall_ms']},{entry['weight_ppm']}"
        if entry["digest"] != sha256(text) or entry["rollout"] != rollout["id"] or before not in (None, entry["previous"]):
            yield f"entry {entry['id']} of the router's log was changed, or follows another one"
        before = entry["digest"]
    if verdict["id"] != rollout["id"] or (outcome == "promoted") != (phase == "Succeeded") or last != {"Succeeded": "promoted", "RolledBack": "rolled_back"}.get(phase):
        yield f"the router's verdict is {phase}, its log ends with '{last}', and the outcome is {outcome}"
    if phase == "RolledBack" and record and record["guard"] == verdict["cause"]:
        limit = record["trip_value"] if record["question"] in ("silence", "samples") else math.log2(record["trip_value"])
        bits = bits_again(record) if record["question"] == "worse" else record["events"][-1]["bits"]
        if abs(bits - record["events"][-1]["bits"]) > 1e-6 or bits < limit - 1e-9:
            yield f"{bits:.3f} of {limit:.3f} are no reason for a rollback"


def faults(statement, registry, ended):
    said = statement["predicate"]
    model, outcome, rollout, evaluation, tag = said["model"], said["outcome"], said.get("rollout"), said.get("evaluation"), said.get("tag")
    if ["sha256:" + statement["subject"][0]["digest"]["sha256"], "sha256:" + sha256(said["policy"])] != [model["content"], said["policy_sha256"]]:
        yield "its subject or its policy is not the one of its digest"
    yield from evaluation_faults(evaluation, said["policy"]) if evaluation else ()
    yield from rollout_faults(rollout, outcome) if rollout and rollout["verdict"] else ()
    promoted = (not evaluation or evaluation["exit_code"] == 0) and rollout and tag and tag["version"] == model["version"]
    ended_else = not tag and said["reason"] and not (outcome == "refused" and rollout)
    if not (promoted if outcome == "promoted" else ended_else):
        yield f"'{outcome}' does not fit its evaluation, its rollout, its tag or its reason"
    if ended.get(model["content"]) == "rolled_back" and rollout and not said["again"]:
        yield "these contents were rolled back before, and nobody insisted"
    for file in model.get("files", []) if registry else []:
        blob = pathlib.Path(registry) / model["name"] / "blobs/sha256" / file["digest"].removeprefix("sha256:")
        if not blob.is_file() or "sha256:" + sha256(blob.read_bytes()) != file["digest"]:
            yield f"{blob} is not what it was"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    _ = [parser.add_argument(flag) for flag in ("records", "--registry", "--public-key")]
    given = parser.parse_args()
    pem = pathlib.Path(given.public_key).read_text() if given.public_key else ""
    public, before, ended, bad = base64.b64decode(re.sub("-----[^-]*-----", "", pem))[-32:], "", {}, 0
    for number, line in enumerate(pathlib.Path(given.records).read_bytes().splitlines(), 1):
        name = f"line {number}"
        try:
            envelope = json.loads(line)
            payload = base64.b64decode(envelope["payload"], validate=True)
            statement, message = json.loads(payload), f"DSSEv1 {len(TYPE)} {TYPE} {len(payload)} ".encode() + payload
            said, name = statement["predicate"], f"{name}, {statement['predicate']['id']}, {statement['predicate']['outcome']}"
            found = list(faults(statement, given.registry, ended))
            if said["previous"] != before or envelope["payloadType"] != TYPE:
                found.append("it does not follow the record before it")
            if public and not any(signed(public, message, base64.b64decode(each["sig"])) for each in envelope["signatures"]):
                found.append("it is not signed by that key")
            if said["outcome"] in ("promoted", "rolled_back"):
                ended[said["model"]["content"]] = said["outcome"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            found = [f"it cannot be read: {error!r}"]
        before, bad = "sha256:" + sha256(line), bad + bool(found)
        print(f"{name}: " + ("; ".join(found) or "verified" + (", signed" if public else "")))
    print(f"{bad} faults; the digest of the last record: {before}")
    return bool(bad)


sys.exit(main())
