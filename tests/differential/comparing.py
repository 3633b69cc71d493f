"""What tells two answers to one exchange apart: by aspect, Triton's and Serin's.

status    of HTTP, or the code of gRPC
type      Content-Type
headers   the others that matter
words     the text of an error
json      everything else, without what no two servers share: versions and times
json.*    of what servers say of themselves and of models (metadata, config, statistics) each field apart: json.input.0.dims
"""

import re
import struct
from json import loads

from models import COUNTED, IDENTITIES

ABSENT = "absent"
TIMES = {"ns", "last_inference", "byte_size"}  # of statistics, which no two runs share
COUNTS = {"count", "inference_count", "execution_count", "batch_stats"}  # and those that depend on how many of the requests before were taken
EVENTS = re.compile(r"data: (.*)\n\n")  # of a stream that has one
DESCRIBING = re.compile(r"/v2(\?.*)?|/v2/models/[^/]*(/versions/[^/]*)?(/config|/stats)?|ServerMetadata|ModelMetadata|ModelConfig|ModelStatistics")


def aspects_of(exchange, answer):
    if "ended" in answer or "broken" in answer:
        return {"status": "none"}
    text = answer.get("text")
    events = EVENTS.fullmatch(text) if text else None
    json = loads(events[1]) if events else answer.get("json")
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
        if DESCRIBING.fullmatch(exchange.get("path", exchange.get("call"))) and isinstance(shown, (dict, list)):
            aspects.update(_fields("json", shown, TIMES if COUNTED in str(exchange.get("path", exchange.get("messages"))) else TIMES | COUNTS))
        else:
            aspects["json"] = (shown, None if events else text, answer.get("tensors"))
    return aspects


def _fields(name, json, without):
    """Leaf by leaf; without those that have their default, which protobuf's JSON leaves out, and which it writes as text where they have 64 bits."""
    if isinstance(json, dict):
        for key, value in json.items():
            if key not in without:
                yield from _fields(f"{name}.{key}", value, without)
    elif isinstance(json, list) and any(isinstance(item, dict) for item in json):
        for i, item in enumerate(json):
            yield from _fields(f"{name}.{i}", item, without)
    elif json not in (0, "0", "", False, [], None):
        yield name, str(json)


def _without_versions(json):
    if isinstance(json, dict) and "extensions" in json:
        return {**json, "version": ""}
    return [_without_versions(item) for item in json] if isinstance(json, list) else json


def _as_single(json, single=False):
    """Floats of FP32 as such: Triton prints the double that is nearest to each, Serin the shortest text."""
    if isinstance(json, dict):
        single = single or json.get("datatype") == "FP32" or ("outputs" not in json and IDENTITIES.get(json.get("model_name")) == "FP32")  # the latter: of generate
        return {key: _as_single(value, single) for key, value in sorted(json.items())}
    if isinstance(json, list):
        return [_as_single(item, single) for item in json]
    return struct.unpack("f", struct.pack("f", json))[0] if single and isinstance(json, float) else json


def differences(exchange, triton, serin):
    """(aspect, Triton's, Serin's). Where one answers well and the other does not, that is told by the status alone."""
    ours, theirs = aspects_of(exchange, serin), aspects_of(exchange, triton)
    if ours["status"] != theirs["status"]:
        yield "status", theirs["status"], ours["status"]
        if ("words" in ours) != ("words" in theirs):
            return
    for aspect in sorted({*ours, *theirs} - {"status"}):
        mine, its = ours.get(aspect, ABSENT), theirs.get(aspect, ABSENT)
        if repr(mine) != repr(its) and mine != its:
            yield aspect, its, mine
