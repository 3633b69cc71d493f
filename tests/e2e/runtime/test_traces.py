"""Triton's extension "trace": when single requests got where, in the file that its trace_summary.py reads."""

import contextlib
import json

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from conftest import MODELS, ON_FREE_PORTS, call, serin, wait_until
from test_scheduling import DATA, PIPE, column
from tritonclient.utils import InferenceServerException

BODY = {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.0] * 64}]}
INFER = "/v2/models/digits/infer"
ANY_PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
COMPUTED = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
            "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
DOORS = {"HTTP": ["HTTP_RECV_START", "HTTP_RECV_END", *COMPUTED, "HTTP_SEND_START", "HTTP_SEND_END"],
         "GRPC": ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", *COMPUTED, "GRPC_SEND_START", "GRPC_SEND_END"]}


def traces(file):
    """What is told of each traced request, by its id; the file is whole between two writes."""
    found = {}
    for entry in json.loads(file.read_text()) if file.exists() else []:
        held = found.setdefault(entry["id"], {"times": []})
        if "timestamps" in entry:
            held["times"] += [(time["name"], time["ns"]) for time in entry["timestamps"]]
        else:
            held.update(entry)
    return found


def wait_for(file, count):
    def there():
        with contextlib.suppress(json.JSONDecodeError):  # a write is under way
            return len(traces(file)) >= count
        return False
    wait_until(there, what=f"{count} traces")
    return traces(file)


def check_times(trace, names):
    assert [name for name, _ in trace["times"]] == names
    times = [time for _, time in trace["times"]]
    assert times == sorted(times) and times[-1] - times[0] < 60e9


@pytest.fixture
def runtime(start, tmp_path):
    """Traces nothing yet."""
    def begin(*arguments, models=MODELS):
        return start("serve", "--as", "tritonserver", f"--model-repository={models}", *ANY_PORTS, *arguments)
    return begin


def test_requests_by_http_and_grpc(start, tmp_path):
    file = tmp_path / "trace.json"
    runtime = start("serve", MODELS, *ON_FREE_PORTS, "--trace-file", file, "--trace-rate", 1)
    assert traces(file) == {} and call(runtime.url + "/v2").json["extensions"].count("trace") == 1
    assert call(runtime.url + INFER, {**BODY, "id": "mine-1"}).status == 200
    (first,) = wait_for(file, 1).values()
    assert (first["model_name"], first["model_version"], first["request_id"]) == ("digits", 5, "mine-1") and "parent_id" not in first
    check_times(first, DOORS["HTTP"])
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        tensor = triton_grpc.InferInput("pixels", [1, 64], "FP32")
        tensor.set_data_from_numpy(np.zeros([1, 64], "float32"))
        client.infer("digits", [tensor], model_version="1")
    second = wait_for(file, 2)[2]
    assert second["model_version"] == 1 and "request_id" not in second
    check_times(second, DOORS["GRPC"])
    assert call(runtime.url + INFER, {**BODY, "parameters": {"timeout": 1}}).status in (200, 504)
    assert call(runtime.url + INFER, BODY, {"x-serin-shadow": "1"}).status == 200, "which is not traced"
    assert runtime.end() == 0
    assert len(traces(file)) == 3, "what was collected at the end is not lost"


def test_steps_of_an_ensemble_name_their_parent(start, repository, tmp_path):
    file = tmp_path / "trace.json"
    models = repository({"sum/1": DATA / "sequence_state/model.onnx"})
    (models / "pipe/1").mkdir(parents=True)
    (models / "pipe/serin.yaml").write_text(PIPE)
    runtime = start("serve", models, *ON_FREE_PORTS, "--trace-file", file, "--trace-rate", 1)
    assert call(runtime.url + "/v2/models/pipe/infer", column("a", 1)).status == 200
    found = wait_for(file, 3)
    (whole,) = [trace for trace in found.values() if trace["model_name"] == "pipe"]
    steps = [trace for trace in found.values() if trace["model_name"] == "sum"]
    assert len(steps) == 2 and all(step["parent_id"] == whole["id"] for step in steps)
    for step in steps:
        check_times(step, COMPUTED)
    assert not any(name.startswith("COMPUTE") for name, _ in whole["times"]), "its steps may compute at once"
    check_times(whole, [name for name in DOORS["HTTP"] if name not in COMPUTED[2:-1]])


def test_settings_over_the_network(runtime, tmp_path):
    file = tmp_path / "trace.json"
    server = runtime(f"--trace-config=triton,file={file}", "--trace-config=rate=2")
    everywhere, digits = server.url + "/v2/trace/setting", server.url + "/v2/models/digits/trace/setting"
    asleep = {"trace_file": str(file), "trace_level": ["OFF"], "trace_rate": "2", "trace_count": "-1", "log_frequency": "0", "trace_mode": "triton"}
    assert call(everywhere).json == call(digits).json == asleep
    assert call(server.url + INFER, BODY).status == 200
    assert call(digits, {"trace_level": ["TIMESTAMPS"], "trace_count": "2"}).json == {**asleep, "trace_level": ["TIMESTAMPS"], "trace_count": "2"}
    assert call(everywhere).json == asleep, "that of one model is its own"
    for _ in range(7):
        assert call(server.url + INFER, BODY).status == 200
    assert call(digits).json["trace_count"] == "0", "of seven requests two are traced: the second and the fourth"
    assert call(digits, {"trace_count": None, "trace_rate": 3}).json["trace_count"] == "-1"
    for _ in range(3):
        assert call(server.url + INFER, BODY).status == 200
    assert call(digits, {"trace_rate": None}).json["trace_rate"] == "2", "that of all"
    assert call(everywhere, {"trace_rate": 9}).json["trace_rate"] == call(digits).json["trace_rate"] == "9", "which may change"
    assert call(everywhere, {"trace_rate": None}).json == asleep
    assert call(digits, {}).json == asleep, "a model of which nothing is said is as all are"
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}") as client:
        told = client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}).settings
        assert list(told["trace_level"].value) == ["TIMESTAMPS"] and list(told["trace_rate"].value) == ["1"]
        assert call(server.url + INFER, BODY).status == 200
        assert list(client.update_trace_settings(settings={"trace_level": None, "trace_rate": None}).settings["trace_rate"].value) == ["2"]
    assert call(server.url + INFER, BODY).status == 200
    assert server.end() == 0
    assert len(traces(file)) == 2 + 1 + 1


def test_a_new_file_every_so_many(runtime, tmp_path):
    file = tmp_path / "trace.json"
    server = runtime(f"--trace-file={file}", "--trace-level=TIMESTAMPS", "--trace-rate=1", "--trace-log-frequency=2", "--trace-count=5")
    for _ in range(7):
        assert call(server.url + INFER, BODY).status == 200
    wait_for(tmp_path / "trace.json.1", 2)
    assert server.end() == 0
    assert [len(traces(tmp_path / f"trace.json.{number}")) for number in range(4)] == [2, 2, 1, 0]
    assert not file.exists()


def test_what_cannot_be_traced_is_said(runtime, tmp_path):
    server = runtime()
    for path in ("/v2/trace/setting", "/v2/models/digits/trace/setting"):
        url = server.url + path
        assert call(url, {"trace_level": ["OFF"], "trace_rate": None}).status == 200
        for body, text in (({"trace_level": ["TIMESTAMPS"]}, "without a file for traces"), ({"trace_level": "TENSORS"}, "TIMESTAMPS only"),
                           ({"trace_level": []}, "trace_level"), ({"trace_level": "LOUD"}, "LOUD"), ({"trace_rate": "0"}, "trace_rate"),
                           ({"trace_rate": "1e3"}, "trace_rate"), ({"trace_rate": ""}, "trace_rate"), ({"trace_count": "-2"}, "trace_count"),
                           ({"log_frequency": True}, "log_frequency"), ({"trace_mode": "opentelemetry"}, "mode triton"), ({"loud": "1"}, "'loud'"),
                           ({"trace_file": "/etc/passwd"}, "trace_file"), ({"trace_rate": "5", "trace_count": "x"}, "trace_count")):
            answer = call(url, body)
            assert answer.status >= 400 and text in answer.error, body
        assert call(url).json["trace_rate"] == "1000", "all of them or none"
    assert call(server.url + "/v2/models/nope/trace/setting").status == 404
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}") as client:
        assert list(client.get_trace_settings("digits").settings["trace_level"].value) == ["OFF"]
        with pytest.raises(InferenceServerException, match="TENSORS"):
            client.update_trace_settings(settings={"trace_level": ["TENSORS"]})


@pytest.mark.parametrize("arguments, text", [
    (["--trace-file", "{folder}/nowhere/trace.json"], "nowhere/trace.json: No such file or directory"),
    (["--trace-file", "{folder}"], "Is a directory"),
    (["--trace-rate", "0"], "--trace-rate"),
    (["--as", "tritonserver", "--trace-config", "rate"], "no setting=value"),
    (["--as", "tritonserver", "--trace-config", "rate=x"], "x is no whole number of at least 1"),
    (["--as", "tritonserver", "--trace-config", "count=0x10"], "0x10 is no whole number of at least -1"),
    (["--as", "tritonserver", "--trace-config", "rate=99999999999999999999"], "no whole number"),
    (["--as", "tritonserver", "--trace-config", "triton,speed=1"], "speed is none of"),
    (["--as", "tritonserver", "--trace-config", "level=LOUD"], "LOUD is none of"),
    (["--as", "tritonserver", "--trace-config", "mode=zipkin"], "zipkin is none of"),
])
def test_bad_flags(tmp_path, arguments, text):
    models = ["--model-repository", MODELS, *ANY_PORTS] if "--as" in arguments else ["--models", MODELS, *ON_FREE_PORTS]
    done = serin("serve", *[argument.format(folder=tmp_path) for argument in arguments], *models)
    assert done.returncode != 0 and text in done.stderr



def test_a_start_that_fails_takes_no_traces_away(runtime, tmp_path):
    file = tmp_path / "trace.json"
    server = runtime(f"--trace-file={file}", "--trace-level=TIMESTAMPS", "--trace-rate=1")
    assert call(server.url + INFER, BODY).status == 200
    wait_for(file, 1)
    done = serin("serve", MODELS, "--port", server.ports["http"], "--grpc-port", "off", "--metrics-port", "off", "--trace-file", file)
    assert done.returncode != 0 and "already" in done.stderr.lower() and len(traces(file)) == 1
    assert call(server.url + INFER, BODY).status == 200 and len(wait_for(file, 2)) == 2
    assert server.end() == 0


def test_an_old_file_is_replaced_whole(runtime, tmp_path):
    file = tmp_path / "trace.json"
    file.write_text("[" + "0," * 10_000 + "0]")
    server = runtime(f"--trace-file={file}", "--trace-level=TIMESTAMPS", "--trace-rate=1", "--trace-log-frequency=9")
    assert call(server.url + "/v2/trace/setting", {"log_frequency": "0"}).status == 200
    assert call(server.url + INFER, BODY).status == 200
    wait_until(lambda: file.stat().st_size < 10_000, what="the first write")
    assert len(wait_for(file, 1)) == 1 and server.end() == 0


def test_flags_of_tritonserver_that_were_refused_once(runtime):
    server = runtime("--log-verbose=true", "--cache-config=local,size=1048576", "--cache-config=redis,host=x", "--response-cache-byte-size=2097152",
                     "--allow-vertex-ai=false", "--allow-sagemaker=false", "--trace-level=MAX")
    assert "redis,host=x is ignored" in server.log and "--allow-vertex-ai" in server.log
    assert call(server.url + "/v2/logging").json["log_verbose_level"] == 1


def test_a_level_without_a_file_is_said_at_the_start(runtime):
    server = runtime("--trace-config=level=TIMESTAMPS", "--trace-config=mode=opentelemetry")
    assert "no file for traces is named" in server.log and "mode=opentelemetry is ignored" in server.log
    assert call(server.url + "/v2/trace/setting", {"trace_rate": "7"}).json["trace_level"] == ["OFF"]


def test_a_file_that_was_moved_away_is_begun_again(runtime, tmp_path):
    file, kept = tmp_path / "trace.json", tmp_path / "kept.json"
    server = runtime(f"--trace-file={file}", "--trace-level=TIMESTAMPS", "--trace-rate=1")
    assert call(server.url + INFER, BODY).status == 200
    wait_for(file, 1)
    file.rename(kept)
    assert call(server.url + INFER, BODY).status == 200
    assert list(wait_for(file, 1)) == [2] and list(traces(kept)) == [1]
    assert server.end() == 0


def test_a_disk_that_takes_no_more_costs_traces_and_nothing_else(runtime, tmp_path):
    file = tmp_path / "trace.json"
    server = runtime(f"--trace-file={file}", "--trace-level=TIMESTAMPS", "--trace-rate=1")
    assert call(server.url + INFER, BODY).status == 200
    wait_for(file, 1)
    file.unlink()
    file.mkdir()  # which cannot be written to
    assert call(server.url + INFER, BODY).status == 200
    wait_until(lambda: "traces are lost" in server.log, what="a warning")
    assert call(server.url + INFER, BODY).status == 200 and server.end() == 0
