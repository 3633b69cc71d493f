"""What tells two answers to one exchange apart: by aspect, Triton's and Serin's.

status    of HTTP, or the code of gRPC
type      Content-Type
headers   the others that matter
words     the text of an error
json      everything else, without what no two servers share: versions, times, counts
"""

import struct

STATISTICS = ("stats", "ModelStatistics")


def aspects_of(exchange, answer):
    if "ended" in answer or "broken" in answer:
        return {"status": "none"}
    json = answer.get("json")
    aspects = {"status": answer.get("status", answer.get("code"))}
    if "headers" in answer:
        aspects["type"] = answer["headers"].get("content-type", "")
        aspects["headers"] = {name: value for name, value in answer["headers"].items() if name != "content-type"}
    if "message" in answer:
        aspects["words"] = answer["message"]
    elif isinstance(json, dict) and set(json) == {"error"}:
        aspects["words"] = json["error"]
    else:
        shown = _as_single(_without_versions(json))
        if any(word in exchange.get("path", "") + exchange.get("call", "") for word in STATISTICS):
            shown = _without_counts(shown)
        aspects["json"] = (shown, answer.get("text"), answer.get("tensors"))
    return aspects


def _without_versions(json):
    if isinstance(json, dict) and "extensions" in json:
        return {**json, "version": ""}
    return [_without_versions(item) for item in json] if isinstance(json, list) else json


def _as_single(json, single=False):
    """Floats of FP32 as such: Triton prints the double that is nearest to each, Serin the shortest text."""
    if isinstance(json, dict):
        return {key: _as_single(value, single or json.get("datatype") == "FP32") for key, value in json.items()}
    if isinstance(json, list):
        return [_as_single(item, single) for item in json]
    return struct.unpack("f", struct.pack("f", json))[0] if single and isinstance(json, float) else json


def _without_counts(json):
    """Numbers, of which protobuf's JSON leaves out those that are 0, and writes those of 64 bits as text."""
    if isinstance(json, dict):
        return {key: _without_counts(value) for key, value in json.items()}
    if isinstance(json, list):
        return [_without_counts(item) for item in json][:1]
    return 0 if not isinstance(json, str) or json.isdigit() else json


def differences(exchange, triton, serin):
    """(aspect, Triton's, Serin's). Where one answers well and the other does not, that is told by the status alone."""
    ours, theirs = aspects_of(exchange, serin), aspects_of(exchange, triton)
    if ours["status"] != theirs["status"]:
        yield "status", theirs["status"], ours["status"]
        if ("words" in ours) != ("words" in theirs):
            return
    for aspect in ("type", "headers", "words", "json"):
        mine, its = ours.get(aspect), theirs.get(aspect)
        if repr(mine) != repr(its) and mine != its:
            yield aspect, its, mine
