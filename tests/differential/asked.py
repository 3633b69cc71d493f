"""What is asked over REST: good requests in all their forms, then what PROTOCOLS' authors, fuzzers and tired people send.

Each is a dict {name, method, path, headers, body}; names are groups, a slash, and what is special: differences.py speaks of them by pattern.
"""

import gzip
import json
import struct
import zlib

import numpy as np

from models import COUNTED, DATATYPES, IDENTITIES

LENGTH = "Inference-Header-Content-Length"
FAR = 10**21
VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
NUMPY = {"BOOL": np.bool_, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64, **{f"{sign}{bits}": np.dtype(f"{sign.lower()}{bits}")
         for sign in ("INT", "UINT") for bits in (8, 16, 32, 64)}}  # fmt: skip
SAMPLES = {"BOOL": [True, False, True], "BYTES": ["one", "", "drei \u00e4\u4e09"], "FP16": [0.5, -2.0, 65504.0], "FP32": [0.1, -2.5, 3e38],
           "FP64": [0.1, -2.5, 1e300], "INT8": [-128, 0, 127], "INT16": [-32768, 0, 32767], "INT32": [-(2**31), 0, 2**31 - 1],
           "INT64": [-(2**63), 0, 2**63 - 1], "UINT8": [0, 1, 255], "UINT16": [0, 1, 65535], "UINT32": [0, 1, 2**32 - 1],
           "UINT64": [0, 1, 2**64 - 1]}  # fmt: skip
BODIES = []  # in the order asked


def ask(name, method, path, body=b"", **headers):
    body = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    BODIES.append({"name": name, "method": method, "path": path, "headers": {key.replace("_", "-"): value for key, value in headers.items()}, "body": body})


def tensor(data, shape=None, datatype="FP32", name="INPUT0", **more):
    return {"name": name, "shape": shape or [1, len(data)], "datatype": datatype, "data": data, **more}


def infer(name, body, model="identity", tail=b"", version="", **headers):
    text = body if isinstance(body, (bytes, str)) else json.dumps(body)
    raw = text if isinstance(text, bytes) else text.encode()
    if tail:
        headers.setdefault(LENGTH, str(len(raw)))
    ask(f"infer/{name}", "POST", f"/v2/models/{model}{version}/infer", raw + tail, **headers)


def raw_bytes(data, datatype):
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in data)
    return np.array(data, NUMPY[datatype]).tobytes()


def simple(a=None, b=None, **more):
    return {"inputs": [tensor(a or list(range(16)), datatype="INT32"), tensor(b or [1] * 16, datatype="INT32", name="INPUT1")], **more}


def servers_and_models():
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/identity", "/v2/models/identity/ready", "/v2/models/identity/config",
                 "/v2/models/identity/stats", "/v2/models/stats", "/v2/repository/index", "/v2/models/identity/infer", "/v2/nothing",
                 "/v2/models/identity/versions/1/ready"):  # fmt: skip
        for verb in VERBS:
            ask(f"verbs{path}", verb, path)
    for path in ("/", "/v1", "/v2/", "/v2/health", "/v2/health/", "/v2/models/", "/v2/models", "/v2/models/identity/", "/v2/models/identity/versions",
                 "/v2/models/identity/versions/", "/v2/models/identity/versions/1/", "/v2/models/identity/versions/1/nothing", "/v2/models/identity/nothing",
                 "/v2/models//ready", "//v2", "/v2//health/live", "/V2", "/v2/health/LIVE", "/v2?x=1", "/v2/health/live?x=1", "/v2/repository",
                 "/v2/models/identity/ready/more", "/v2/health/live/more"):  # fmt: skip
        ask(f"paths{path}", "GET", path)
    for model in [*IDENTITIES, "simple"]:
        ask(f"metadata/{model}", "GET", f"/v2/models/{model}")
        ask(f"metadata/{model}/1", "GET", f"/v2/models/{model}/versions/1")
        ask(f"config/{model}", "GET", f"/v2/models/{model}/config")
        ask(f"ready/{model}", "GET", f"/v2/models/{model}/ready")
    for version in ("1", "2", "0", "-1", "01", "00001", FAR, "latest", "1.0", "1%2F", "%31", "1/..", " 1", "+1", "1e0", ""):
        for action in ("", "/ready", "/config", "/stats"):
            ask(f"versions/{version}{action}", "GET", f"/v2/models/identity/versions/{str(version).replace(' ', '%20')}{action}")
    for model in ("nope", "Identity", "identity%00", "identity%20", "%20", "..", "%2e%2e", "a%2Fb", "..%2Fidentity", ".git", "CON", "identity;x", "x" * 300,
                  "%C3%A4", "%FF", "identity%0d%0a"):  # fmt: skip
        for action in ("", "/ready", "/config", "/stats"):
            ask(f"names/{model[:12]}{action}", "GET", f"/v2/models/{model}{action}")
        infer(f"names/{model[:12]}", {"inputs": [tensor([1.0])]}, model=model)
    for name, body in {"empty": "", "object": "{}", "ready": '{"ready":true}', "not-ready": '{"ready":false}', "wrong-kind": '{"ready":1}', "array": "[]",
                       "broken": "{", "unknown": '{"more":1}', "null": "null", "text": '"x"'}.items():  # fmt: skip
        ask(f"index/{name}", "POST", "/v2/repository/index", body)


def good_tensors():
    for model, datatype in IDENTITIES.items():
        data, raw = SAMPLES[datatype], raw_bytes(SAMPLES[datatype], datatype)
        size = {"binary_data_size": len(raw)}
        bare = {key: value for key, value in tensor(data, datatype=datatype).items() if key != "data"}
        wanted = {"outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}
        infer(f"json/{datatype}", {"inputs": [tensor(data, datatype=datatype)]}, model)
        infer(f"json/{datatype}/nested", {"inputs": [tensor([data], shape=[1, 3], datatype=datatype)]}, model)
        infer(f"json/{datatype}/rows", {"inputs": [tensor([[value] for value in data], shape=[3, 1], datatype=datatype)]}, model)
        infer(f"json/{datatype}/version", {"inputs": [tensor(data, datatype=datatype)], "id": "7"}, model, version="/versions/1")
        infer(f"binary/{datatype}", {"inputs": [{**bare, "parameters": size}], **wanted}, model, raw)
        infer(f"binary/{datatype}/in", {"inputs": [{**bare, "parameters": size}]}, model, raw)
        infer(f"binary/{datatype}/out", {"inputs": [tensor(data, datatype=datatype)], **wanted}, model)
        infer(f"binary/{datatype}/all-out", {"inputs": [tensor(data, datatype=datatype)], "parameters": {"binary_data_output": True}}, model)
        infer(f"raw/{datatype}", b"", model, raw, **{LENGTH: "0"})
        infer(f"raw/{datatype}/odd", b"", model, raw + b"x", **{LENGTH: "0"})
    infer("json/simple", simple(), "simple")
    infer("json/simple/8", {"inputs": [tensor(list(range(128)), [8, 16], "INT32"), tensor([2] * 128, [8, 16], "INT32", "INPUT1")]}, "simple")
    infer("json/simple/swapped", {"inputs": simple()["inputs"][::-1]}, "simple")
    infer("json/simple/one-output", simple(outputs=[{"name": "OUTPUT1"}]), "simple")
    infer("json/simple/outputs-swapped", simple(outputs=[{"name": "OUTPUT1"}, {"name": "OUTPUT0"}]), "simple")
    infer("json/simple/no-outputs", simple(outputs=[]), "simple")
    ones, half = np.ones(16, np.int32).tobytes(), {"name": "INPUT1", "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": 64}}
    infer("binary/simple/mixed", {"inputs": [simple()["inputs"][0], half]}, "simple", ones)
    infer("binary/simple/one-output", simple(outputs=[{"name": "OUTPUT0", "parameters": {"binary_data": True}}, {"name": "OUTPUT1"}]), "simple")
    infer("binary/simple/but-one", simple(outputs=[{"name": "OUTPUT0", "parameters": {"binary_data": False}}, {"name": "OUTPUT1"}],
                                          parameters={"binary_data_output": True}), "simple")  # fmt: skip
    infer("raw/simple", b"", "simple", ones, **{LENGTH: "0"})
    infer("raw/empty", b"", "identity", b"", **{LENGTH: "0"})


def numbers():
    for name, text in {"nan": "NaN", "infinity": "Infinity", "minus-infinity": "-Infinity", "1e400": "1e400", "1e39": "1e39", "1e-400": "1e-400",
                       "minus-zero": "-0.0", "minus-zero-integer": "-0", "thirty-digits": "1" * 30, "leading-zero": "01", "plus": "+1", "dot": ".5",
                       "dot-behind": "1.", "hex": "0x10", "text": '"1"', "true": "true", "null": "null", "object": "{}", "list": "[]"}.items():  # fmt: skip
        infer(f"numbers/FP32/{name}", '{"inputs":[{"name":"INPUT0","shape":[1,1],"datatype":"FP32","data":[' + text + "]}]}")
        infer(f"numbers/INT64/{name}", '{"inputs":[{"name":"INPUT0","shape":[1,1],"datatype":"INT64","data":[' + text + "]}]}", "identity_int64")
    for datatype, values in {"INT8": (128, -129, 1.0, 1.5), "UINT8": (256, -1), "INT16": (32768,), "UINT16": (65536,), "INT32": (2**31, -(2**31) - 1, 0.5),
                             "UINT32": (2**32, -1), "INT64": (2**63,), "UINT64": (2**64, -1), "FP16": (65520.0, 1e10), "BOOL": (2, 0, 1, -1, 0.5, "true"),
                             "BYTES": (1, True, None, ["a"])}.items():  # fmt: skip
        for value in values:
            infer(f"numbers/{datatype}/{value!r}", {"inputs": [tensor([value], datatype=datatype)]}, f"identity_{datatype.lower()}")


def bodies_and_fields():
    good = json.dumps({"inputs": [tensor([1.0, 2.0])]})
    for name, text in {"empty": "", "word": "hello", "broken": '{"inputs":[', "trailing": good + "x", "bom": "\ufeff" + good, "array": "[]", "null": "null",
                       "string": '"x"', "number": "1", "object": "{}", "keys-twice": good[:-1] + ',"inputs":[]}', "spaces": "  " + good + " \n",
                       "depth-50": '{"x":' + "[" * 48 + "]" * 48 + "," + good[1:], "depth-101": '{"x":' + "[" * 101 + "]" * 101 + "," + good[1:],
                       "depth-5000": '{"x":' + "[" * 5000 + "]" * 5000 + "," + good[1:], "not-utf8": good.replace("INPUT0", "INPUT0\udc80"),
                       "lone-surrogate": '{"id":"\\ud800",' + good[1:], "nul": '{"id":"a\\u0000b",' + good[1:], "unknown-key": '{"more":1,' + good[1:],
                       "comment": "/* x */" + good, "single-quotes": good.replace('"', "'"), "trailing-comma": good[:-1] + ",}"}.items():  # fmt: skip
        infer(f"body/{name}", text.encode("utf-8", "surrogateescape"))
    whole = tensor([1.0, 2.0])
    for field in ("name", "shape", "datatype", "data"):
        infer(f"fields/{field}/missing", {"inputs": [{key: value for key, value in whole.items() if key != field}]})
        for name, value in {"null": None, "number": 1, "text": "x", "list": [], "object": {}, "true": True}.items():
            infer(f"fields/{field}/{name}", {"inputs": [{**whole, field: value}]})
    for name, value in {"null": None, "number": 1, "text": "x", "object": {}, "empty": [], "of-null": [None], "of-text": ["x"], "of-lists": [[]]}.items():
        infer(f"fields/inputs/{name}", {"inputs": value})
        infer(f"fields/outputs/{name}", {"inputs": [whole], "outputs": value})
        infer(f"fields/parameters/{name}", {"inputs": [whole], "parameters": value})
        infer(f"fields/id/{name}", {"inputs": [whole], "id": value})
    infer("fields/id/good", {"inputs": [whole], "id": "a-1"})
    infer("fields/id/unicode", {"inputs": [whole], "id": "\u00e4\u4e09\n"})
    infer("fields/id/long", {"inputs": [whole], "id": "x" * 1500})
    infer("fields/input-twice", {"inputs": [whole, whole]})
    infer("fields/input-unknown", {"inputs": [tensor([1.0], name="nope")]})
    infer("fields/input-more", {"inputs": [whole, tensor([1.0], name="nope")]})
    infer("fields/input-less", {"inputs": simple()["inputs"][:1]}, "simple")
    infer("fields/output-unknown", {"inputs": [whole], "outputs": [{"name": "nope"}]})
    infer("fields/output-twice", {"inputs": [whole], "outputs": [{"name": "OUTPUT0"}, {"name": "OUTPUT0"}]})
    infer("fields/output-nameless", {"inputs": [whole], "outputs": [{}]})
    for datatype in (*DATATYPES, "BF16", "FLOAT", "fp32", "", "TYPE_FP32"):
        if datatype != "FP32":
            infer(f"datatypes/{datatype}", {"inputs": [tensor([1.0, 2.0], datatype=datatype)]})


def shapes():
    for name, shape in {"none": [], "one": [2], "three": [1, 1, 2], "zero": [0, 2], "zero-inside": [1, 0], "minus-one": [-1, 2], "minus-two": [1, -2],
                        "batch-9": [9, 1], "batch-huge": [2**31, 1], "2^32": [2**32, 2**32], "2^62": [2**62, 4], "2^63": [2**63, 1], "overflow": [2**33, 2**33],
                        "text": ["1", "2"], "fraction": [1.5, 2], "one-as-float": [1.0, 2], "null": [None, 2], "nested": [[1, 2]],
                        "rank-65": [1] * 65}.items():  # fmt: skip
        infer(f"shapes/{name}", {"inputs": [{**tensor([1.0, 2.0]), "shape": shape}]})
    infer("shapes/not-the-models", {"inputs": [tensor([1] * 15, datatype="INT32"), tensor([1] * 15, datatype="INT32", name="INPUT1")]}, "simple")
    infer("shapes/batches-differ", {"inputs": [simple()["inputs"][0], tensor([1] * 32, [2, 16], "INT32", "INPUT1")]}, "simple")
    for name, data, shape in (("shorter", [1.0], [1, 2]), ("longer", [1.0, 2.0, 3.0], [1, 2]), ("empty", [], [1, 2]), ("ragged", [[1.0, 2.0], [3.0]], [2, 2]),
                              ("deeper", [[[1.0, 2.0]]], [1, 2]), ("mixed", [1.0, [2.0]], [1, 2]), ("transposed", [[1.0], [2.0]], [1, 2]),
                              ("scalar", 1.0, [1, 1]), ("text", "1.0", [1, 1]), ("object", {"0": 1.0}, [1, 1]), ("nested-twice", [[1.0, 2.0], [3.0, 4.0]], [2, 2]),
                              ("some-null", [1.0, None], [1, 2])):  # fmt: skip
        infer(f"data/{name}", {"inputs": [{**tensor([1.0]), "shape": shape, "data": data}]})


def binary():
    bare = {"name": "INPUT0", "shape": [1, 2], "datatype": "FP32"}
    eight = np.array([1, 2], np.float32).tobytes()

    def framed(name, size, tail=eight, **headers):
        infer(f"framing/{name}", {"inputs": [{**bare, "parameters": {"binary_data_size": size}}]}, "identity", tail, **headers)

    framed("good", 8)
    text = len(json.dumps({"inputs": [{**bare, "parameters": {"binary_data_size": 8}}]}))
    for name, value in {"missing": "", "negative": "-1", "hex": "0x10", "text": "x", "plus": f"+{text}", "short": str(text - 1), "long": str(text + 1),
                        "over-body": "100000", "huge": str(FAR), "spaces": f" {text} ", "fraction": f"{text}.0"}.items():  # fmt: skip
        framed(f"header/{name}", 8, **{LENGTH: value})
    infer("framing/no-header", json.dumps({"inputs": [{**bare, "parameters": {"binary_data_size": 8}}]}).encode() + eight)
    for name, size, tail in (("short", 7, eight), ("over-tail", 9, eight), ("odd", 7, eight[:7]), ("less-than-shape", 4, eight[:4]), ("more-than-shape", 12, eight + eight[:4]),
                             ("zero", 0, eight), ("negative", -8, eight), ("text", "8", eight), ("fraction", 8.0, eight), ("huge", 2**63, eight), ("null", None, eight),
                             ("trailing", 8, eight + b"more"), ("true", True, eight)):  # fmt: skip
        framed(f"size/{name}", size, tail)
    infer("framing/data-too", {"inputs": [{**tensor([1.0, 2.0]), "parameters": {"binary_data_size": 8}}]}, "identity", eight)
    for name, raw in {"length-past-end": struct.pack("<I", 99) + b"abc", "cut-length": b"\x01\0", "trailing": struct.pack("<I", 1) + b"ab", "too-few": struct.pack("<I", 1) + b"a",
                      "too-many": (struct.pack("<I", 1) + b"a") * 3, "2^31": struct.pack("<I", 2**31) + b"a", "empty-ones": struct.pack("<II", 0, 0),
                      "not-utf8": struct.pack("<I", 1) + b"\xff" + struct.pack("<I", 0)}.items():  # fmt: skip
        infer(f"bytes/{name}", {"inputs": [{"name": "INPUT0", "shape": [1, 2], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}]},
              "identity_bytes", raw)  # fmt: skip
    for name, value in {"text": "x", "number": 1, "null": None}.items():
        infer(f"framing/binary_data/{name}", {"inputs": [tensor([1.0])], "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": value}}]})
        infer(f"framing/binary_data_output/{name}", {"inputs": [tensor([1.0])], "parameters": {"binary_data_output": value}})


def parameters():
    data = [0.25, 4.0, -1.0, 2.0]
    for k in (1, 2, 4, 5, 100, 0, -1, 2**31, 2**63 - 1, "2", 1.5, True, None):
        infer(f"classification/{k!r}", {"inputs": [tensor(data)], "outputs": [{"name": "OUTPUT0", "parameters": {"classification": k}}]})
    infer("classification/batch", {"inputs": [tensor(data, [2, 2])], "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]})
    infer("classification/integers", simple(outputs=[{"name": "OUTPUT0", "parameters": {"classification": 2}}]), "simple")
    infer("classification/binary", {"inputs": [tensor(data)], "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 2, "binary_data": True}}]})
    infer("classification/text", {"inputs": [tensor(["a", "b"], datatype="BYTES")], "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]}, "identity_bytes")
    for name in ("timeout", "priority", "sequence_id", "sequence_start", "custom", "triton_enable_empty_final_response", "headers"):
        for value in (0, 1, 10**9, -1, 2**64, 1.5, "text", True, None, {}, []):
            if name == "timeout" and value == 1:
                continue  # a microsecond: either answer is right
            infer(f"parameters/{name}/{value!r}", {"inputs": [tensor([1.0])], "parameters": {name: value}})
    for name in ("shared_memory_region", "shared_memory_byte_size", "custom"):
        infer(f"parameters/input/{name}", {"inputs": [{**tensor([1.0]), "parameters": {name: "x"}}]})
        infer(f"parameters/output/{name}", {"inputs": [tensor([1.0])], "outputs": [{"name": "OUTPUT0", "parameters": {name: "x"}}]})


def generated():
    """Triton's generate extension."""

    def generate(name, body, model="identity", verb="generate", **options):
        ask(f"{verb}/{name}", "POST", f"/v2/models/{model}/{verb}", body, **options)

    for verb in ("generate", "generate_stream"):
        for model, datatype in IDENTITIES.items():
            generate(f"{datatype}/one", {"INPUT0": SAMPLES[datatype][0]}, model, verb)
            generate(f"{datatype}/three", {"INPUT0": SAMPLES[datatype]}, model, verb)
        generate("simple", {"INPUT0": list(range(16)), "INPUT1": [1] * 16}, "simple", verb)
        generate("missing", {}, "identity", verb)
        generate("unknown-model", {"INPUT0": 1.0}, "nope", verb)
        ask(f"{verb}/version", "POST", f"/v2/models/identity/versions/1/{verb}", {"INPUT0": 1.0})
        ask(f"{verb}/unknown-version", "POST", f"/v2/models/identity/versions/9/{verb}", {"INPUT0": 1.0})
        ask(f"{verb}/verb", "GET", f"/v2/models/identity/{verb}")
        ask(f"{verb}/more", "POST", f"/v2/models/identity/{verb}/more", {"INPUT0": 1.0})
    generate("rows", {"INPUT0": list(range(32)), "INPUT1": [1] * 32}, "simple")
    generate("too-many-rows", {"INPUT0": [1] * 160, "INPUT1": [1] * 160}, "simple")
    generate("not-the-width", {"INPUT0": [1] * 15, "INPUT1": [1] * 16}, "simple")
    generate("half", {"INPUT0": [1] * 16}, "simple")
    generate("id", {"INPUT0": 1.0, "id": "a-1"})
    generate("in-parameters", {"parameters": {"INPUT0": [1.0, 2.0]}, "id": "a"})
    generate("twice", {"INPUT0": 1.0, "parameters": {"INPUT0": 2.0}})
    generate("key-twice", '{"INPUT0": 1.0, "INPUT0": 2.0}')
    generate("depth-101", '{"INPUT0": 1.0, "x": ' + "[" * 101 + "]" * 101 + "}")
    for name, text in {"number": "1", "text": '"x"', "true": "true", "fraction": "1.5", "wide": str(2**64), "nan": "NaN", "null": "null", "list": "[1]", "object": '{"a":1}'}.items():
        generate(f"parameter/{name}", '{"INPUT0": 1.0, "more": ' + text + "}")
        generate(f"parameter/{name}/nested", '{"INPUT0": 1.0, "parameters": {"more": ' + text + "}}")
        generate(f"parameters/{name}", '{"INPUT0": 1.0, "parameters": ' + text + "}")
        generate(f"id/{name}", '{"INPUT0": 1.0, "id": ' + text + "}")
        generate(f"FP32/{name}", '{"INPUT0": ' + text + "}")
        generate(f"BYTES/{name}", '{"INPUT0": ' + text + "}", "identity_bytes")
    for name, text in {"empty": "[]", "nested": "[[1.0, 2.0]]", "nested-ones": "[[1.0], [2.0]]", "mixed": "[1.0, [2.0]]", "some-null": "[1.0, null]", "thirty-digits": "1" * 30,
                       "1e400": "1e400", "infinities": "[Infinity, -Infinity]"}.items():  # fmt: skip
        generate(f"values/{name}", '{"INPUT0": ' + text + "}")
    for name, text in {"empty": "", "word": "hello", "broken": '{"INPUT0":', "trailing": '{"INPUT0":1.0}x', "array": "[]", "null": "null", "not-utf8": b'{"INPUT0":"\xff"}'}.items():
        generate(f"body/{name}", text, "identity_bytes" if name == "not-utf8" else "identity")
    for name, value in (("range", 128), ("fraction", 1.5)):
        generate(f"INT8/{name}", {"INPUT0": value}, "identity_int8")
    generate("coding/gzip", gzip.compress(b'{"INPUT0": 1.0}', mtime=0), **{"Content-Encoding": "gzip"})


def codings():
    body = json.dumps({"inputs": [tensor([float(i) for i in range(400)])]}).encode()
    packed = {"gzip": gzip.compress(body, mtime=0), "deflate": zlib.compress(body)}
    for name, raw in packed.items():
        infer(f"coding/{name}", raw, **{"Content-Encoding": name})
        infer(f"coding/{name}/truncated", raw[:-20], **{"Content-Encoding": name})
        infer(f"coding/{name}/not-packed", body, **{"Content-Encoding": name})
        infer(f"coding/{name}/nested", gzip.compress(raw, mtime=0), **{"Content-Encoding": f"{name}, gzip"})
    for name in ("identity", "", "br", "zstd", "compress", "x", "GZIP"):
        infer(f"coding/{name}", packed["gzip"] if name == "GZIP" else body, **{"Content-Encoding": name})
    for name in ("gzip", "deflate", "br", "identity", "*", "gzip, deflate", "gzip;q=0", "gzip;q=0.5, deflate;q=0.9", "br, gzip", "", "identity;q=0"):
        infer(f"accept/{name}", body, Accept_Encoding=name)
    bare = {"name": "INPUT0", "shape": [1, 400], "datatype": "FP32", "parameters": {"binary_data_size": 1600}}
    text = json.dumps({"inputs": [bare], "parameters": {"binary_data_output": True}}).encode()
    infer("coding/gzip/binary", gzip.compress(text + bytes(1600), mtime=0), **{LENGTH: str(len(text)), "Content-Encoding": "gzip", "Accept-Encoding": "gzip"})
    for kind in ("application/octet-stream", "text/plain", "application/x-www-form-urlencoded", ""):
        infer(f"content-type/{kind}", {"inputs": [tensor([1.0])]}, **{"Content-Type": kind})


def versioned():
    """What Triton's patterns of paths let pass behind a version, and behind a repository's name."""
    for path in ("/v2/models/identity/trace/setting", "/v2/models/identity/versions/1/trace/setting", "/v2/models/identity/versions/9/trace/setting",
                 "/v2/models/identity/versions/x/trace/setting", "/v2/trace/setting", "/v2/models/trace/setting"):  # fmt: skip
        ask(f"versioned{path}", "GET", path)
        ask(f"versioned{path}", "POST", path, {"trace_rate": "7"})
    for path in ("/v2/repository/models/identity/load", "/v2/repository/r/models/identity/load", "/v2/repository/r/models/identity/unload", "/v2/repository/r/index",
                 "/v2/repository/models/index", "/v2/repository/models/models/identity/load"):  # fmt: skip
        ask(f"versioned{path}", "POST", path, {})
    for path in ("/v2/systemsharedmemory/region/r/status", "/v2/cudasharedmemory/region/r/status", "/v2/cudasharedmemory/status", "/v2/systemsharedmemory/status"):
        ask(f"versioned{path}", "GET", path)


def counts():
    """Of requests that nothing else asks a model: one row, four, a wrong one."""
    for i in range(3):
        infer("counted/one", {"inputs": [tensor([1.0])], "id": str(i)}, COUNTED)
    infer("counted/four", {"inputs": [tensor([1.0, 2.0, 3.0, 4.0], [4, 1])]}, COUNTED)
    infer("counted/wrong", {"inputs": [tensor([1], datatype="INT8")]}, COUNTED)
    for path in ("", "/versions/1"):
        ask(f"counted/stats{path}", "GET", f"/v2/models/{COUNTED}{path}/stats")


def all_asked():
    BODIES.clear()
    for group in (servers_and_models, good_tensors, numbers, bodies_and_fields, shapes, binary, parameters, generated, versioned, codings, counts):
        group()
    return BODIES
