"""`serin compare --recording`: the requests that a router has recorded, of every protocol, are the inputs of both versions."""

import gzip
import json
import shutil

import numpy as np
import pytest
import tritonclient.grpc as triton

from conftest import ON_FREE_PORTS, Process, call, run_client, serin, wait_until
from routers import QUICK_HEALTH, Router, write_config
from test_compare import WEIGHTS, net

KEY = "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
ROWS = np.random.default_rng(8).normal(size=(2, 8)).astype(np.float32)
JSON = {"Content-Type": "application/json"}
OIP = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 8], "data": ROWS.ravel().tolist()}]}
# Of a service of that name: where its endpoint is in the runtime, and more of its recording.
SERVICES = {"oip": ("http", "/v2/models/net", {}), "tensorflow": ("http", "/v1/models/net", {}), "paddle": ("http", "/net", {}),
            "GeneralModelService": ("http", "", {}), "calls": ("grpc", "/v2/models/net", {}), "predictions": ("grpc", "/v1/models/net", {}),
            "users": ("http", "/v2/models/net", {"redact": ["/parameters/user"]}), "secret": ("http", "/v2/models/net", {"redact": ["/inputs/0/data/3"]})}


def binary():
    head = json.dumps({"id": "binary", "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 8], "parameters": {"binary_data_size": ROWS.nbytes}}]}).encode()
    return head + ROWS.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


def ask_all(router):
    """Every protocol once; each must be answered, for only then it is recorded."""
    def post(path, body, headers=JSON):
        answer = call(router.url + path, body, headers)
        assert answer.status == 200, (path, answer.body)

    for each in ("users", "secret"):
        post(f"/v2/models/{each}/infer", {**OIP, "parameters": {"user": "ada"}})
    post("/v2/models/oip/infer", {"id": "first", **OIP})
    post("/v2/models/oip/infer", *binary())
    post("/v2/models/oip/infer", gzip.compress(json.dumps(OIP).encode()), {**JSON, "Content-Encoding": "gzip"})
    post("/v2/models/oip/generate", {"x": ROWS[1].tolist()})
    post("/v1/models/tensorflow:predict", {"instances": ROWS.tolist()})
    post("/v1/models/tensorflow:predict", {"inputs": {"x": ROWS.tolist()}})
    post("/v1/models/tensorflow:classify", {"examples": [{"x": row.tolist()} for row in ROWS]})
    post("/paddle/prediction", {"key": ["x"], "value": [json.dumps(ROWS.tolist())]})
    post("/GeneralModelService/inference", {"tensor": [{"name": "x", "elem_type": 1, "shape": [2, 8], "float_data": ROWS.ravel().tolist()}]})
    with triton.InferenceServerClient(f"127.0.0.1:{router.ports['http']}") as client:
        tensor = triton.InferInput("x", [2, 8], "FP32").set_data_from_numpy(ROWS)
        client.infer("calls", [tensor], request_id="call")
    asked = [{"method": method, "model": "predictions", "input": "x", "rows": ROWS.tolist()} for method in ("Predict", "Classify")]
    answers = run_client("tfserving_rows.py", f"127.0.0.1:{router.ports['http']}", json.dumps(asked))
    assert [each.get("versions") for each in answers] == [{"1": 1}] * 2, answers


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with {service}.recording, their key, and stable.onnx, canary.onnx."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "models/net/1").mkdir(parents=True)
    net(folder / "stable.onnx")
    changed = WEIGHTS["w2"].copy()
    changed[3, 5] += 2
    net(folder / "canary.onnx", w2=changed)
    shutil.copy(folder / "stable.onnx", folder / "models/net/1/model.onnx")
    (folder / "recording.key").write_text(KEY)
    (folder / "recording.key").chmod(0o600)
    with Process(folder, "serve", "--models", folder / "models", *ON_FREE_PORTS) as runtime:
        services = [{"name": name, "initial_stable": "1",
                     "recording": {"file": str(folder / f"{name}.recording"), "key": str(folder / "recording.key"), **more},
                     "versions": [{"name": "1", "endpoints": [{"url": f"{scheme if scheme == 'grpc' else 'http'}://127.0.0.1:{runtime.ports[scheme]}{mount}"}],
                                   "health": {**QUICK_HEALTH, "path": "/v2/health/ready"} if scheme == "http" else QUICK_HEALTH}]}
                    for name, (scheme, mount, more) in SERVICES.items()]
        with Router(folder, "route", "--drain-seconds", 0, "--config", write_config(folder, *services)) as router:
            wait_until(lambda: all(router.healthy("1", name) == 1 for name in SERVICES), 20, "healthy")
            ask_all(router)
            assert router.end() == 0
    return folder


def compare(folder, name, *more, code=1, canary="canary.onnx"):
    done = serin("compare", folder / "stable.onnx", folder / canary, "--recording", folder / f"{name}.recording", "--key", folder / "recording.key", "--json", *more)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code < 2 else done.stderr


def found(one):
    return one["origins"][0]["node"], round(one["outputs"][0]["relative_l2_error"], 6)


@pytest.fixture(scope="module")
def expected(recorded):
    """Of the same rows from files."""
    (recorded / "case").mkdir()
    np.save(recorded / "case/input_0.npy", ROWS)
    done = serin("compare", recorded / "stable.onnx", recorded / "canary.onnx", "--data", recorded / "case", "--json")
    return found(json.loads(done.stdout)["data_sets"][0])


@pytest.mark.parametrize("name, count", [("oip", 4), ("tensorflow", 3), ("paddle", 1), ("GeneralModelService", 1), ("calls", 1), ("predictions", 2), ("users", 1)])
def test_requests_of_every_protocol_are_the_inputs(recorded, expected, name, count):
    sets = compare(recorded, name)["data_sets"]
    assert len(sets) == count
    whole = [one for one in sets if one["outputs"][0]["mismatches"] > 0]
    assert all(one["origins"][0]["node"] == "product2" and one["origins"][0]["weights"][0]["name"] == "w2" for one in whole)
    assert [found(one) for one in whole if found(one) != expected] == [found(one) for one in whole][:1] * (name == "oip"), "only generate has one row of the two"


def test_one_request_by_its_id(recorded, expected):
    sets = compare(recorded, "oip", "--request", "first")["data_sets"]
    assert [found(one) for one in sets] == [expected] and sets[0]["inputs"].startswith("request first of 20")
    assert compare(recorded, "calls", "--request", "call")["data_sets"][0]["inputs"].startswith("request call of 20")
    nameless = compare(recorded, "paddle")["data_sets"][0]["inputs"].split()[1]
    assert found(compare(recorded, "paddle", "--request", nameless)["data_sets"][0]) == expected, "an ID made of its contents"
    assert len(compare(recorded, "oip", "--latest", 2)["data_sets"]) == 2


def test_the_text_shows_the_worst_first(recorded):
    done = serin("compare", recorded / "stable.onnx", recorded / "canary.onnx", "--recording", recorded / "oip.recording", "--key", recorded / "recording.key")
    assert done.returncode == 1 and "4 of 4 recorded requests have other outputs" in done.stdout and "node 'product2' (MatMul)" in done.stdout
    errors = [float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines() if line.startswith("output 'y'")]
    assert len(errors) == 4 and errors == sorted(errors, reverse=True)
    same = serin("compare", recorded / "stable.onnx", recorded / "stable.onnx", "--recording", recorded / "oip.recording", "--key", recorded / "recording.key")
    assert same.returncode == 0 and "0 of 4 recorded requests have other outputs" in same.stdout


def test_a_request_that_fails_to_run_is_counted(recorded):
    """Versions that both answer batches of two rows only: that of generate has one."""
    from onnx import helper, numpy_helper, save

    for name in "first", "second":
        nodes = [helper.make_node("Gather", ["x", "one"], ["row"], axis=0), helper.make_node("Identity", ["row"], ["y"])]
        width = ROWS.shape[1]
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", 1, ["N", width])], [helper.make_tensor_value_info("y", 1, [1, width])],
                                  [numpy_helper.from_array(np.array([1]), "one")])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), recorded / f"{name}.onnx")
    done = serin("compare", recorded / "first.onnx", recorded / "second.onnx", "--recording", recorded / "oip.recording", "--key", recorded / "recording.key")
    assert done.returncode == 0 and "0 of 3 recorded requests have other outputs" in done.stdout, done.stdout + done.stderr
    assert "1 recorded requests do not fit" in done.stdout and "out of range" in done.stdout, done.stdout


def test_inputs_that_were_redacted_are_named(recorded):
    said = compare(recorded, "secret", code=3)
    assert "'/inputs/0/data/3' is a part of its inputs, and `redact` of router.yaml removed it" in said


def test_requests_that_do_not_fit_are_counted_or_refused(recorded):
    """A model with another input: no request fits. One whose batch is one row: only that of generate does."""
    from onnx import helper, save

    def identity(path, name, dims):
        graph = helper.make_graph([helper.make_node("Relu", [name], ["y"])], "other", [helper.make_tensor_value_info(name, 1, dims)],
                                  [helper.make_tensor_value_info("y", 1, dims)])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path

    def run(model):
        return serin("compare", model, model, "--recording", recorded / "oip.recording", "--key", recorded / "recording.key", "--json")

    refused = run(identity(recorded / "other.onnx", "pixels", ["n", 8]))
    assert refused.returncode == 2 and "none of 4 recorded requests fits: request" in refused.stderr and "pixels" in refused.stderr
    one = json.loads(run(identity(recorded / "one.onnx", "x", [1, 8])).stdout)
    assert len(one["data_sets"]) == 1 and len(one["unfit"]) == 3
    assert all("[2,8]" in request["why"] for request in one["unfit"])


def damage(file, edit):
    content = bytearray(file.read_bytes())
    edit(content)
    other = file.with_suffix(".damaged")
    other.write_bytes(content)
    return other


def cut(content):
    del content[-40:]


def flip(content):
    content[len(content) // 2] ^= 1


def swap_magic(content):
    content[:5] = b"SERIN"


@pytest.mark.parametrize("edit", [cut, flip, swap_magic])
def test_a_damaged_recording_is_refused(recorded, edit):
    done = serin("compare", recorded / "stable.onnx", recorded / "canary.onnx", "--recording", damage(recorded / "oip.recording", edit), "--key", recorded / "recording.key",
                 "--service", "oip")
    assert done.returncode == 3 and "oip.damaged: damaged, or written with another key or for another service" in done.stderr and done.stdout == ""


def test_what_is_wrong_with_the_flags(recorded, tmp_path):
    other = tmp_path / "other.key"
    other.write_text(KEY.replace("AQID", "AQIE"))
    other.chmod(0o600)
    open_key = tmp_path / "open.key"
    open_key.write_text(KEY)
    open_key.chmod(0o644)
    file, key = recorded / "oip.recording", recorded / "recording.key"
    for args, code, complaint in ((["--recording", file], 2, "--recording needs --key"), (["--recording", file, "--key", tmp_path / "none.key"], 2, "none.key"),
                                  (["--recording", file, "--key", open_key], 3, "open.key"), (["--recording", file, "--key", other], 3, "other.key for service 'oip'"),
                                  (["--recording", tmp_path / "no.recording", "--key", key], 2, "no.recording"),
                                  (["--recording", file, "--key", key, "--service", "net"], 3, "for service 'net'; --service names another"),
                                  (["--recording", file, "--key", key, "--request", "nobody"], 2, "has no request 'nobody' among 4; the newest are"),
                                  (["--recording", file, "--key", key, "--request", "first", "--latest", 3], 2, "excludes"),
                                  (["--recording", file, "--key", key, "--data", tmp_path], 2, "excludes"), (["--key", key], 2, "requires"),
                                  (["--recording", file, "--key", key, "--latest", 0], 2, "--latest")):
        done = serin("compare", recorded / "stable.onnx", recorded / "canary.onnx", *args)
        assert done.returncode == code and complaint in done.stderr, (args, done.returncode, done.stderr)
