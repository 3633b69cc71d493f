"""Numbers, texts, sizes and times that no model can take (rows P3 to P23 of what bad input there is): each is 400, 413 or 504 with the reason, the server's
memory stays where it was, and the next client is answered."""

import json
import socket
import struct
import threading
import time

import numpy as np
import onnx
import pytest
from conftest import ON_FREE_PORTS, Process, call, resident_mb, wait_until
from onnx import TensorProto, helper
from slow_model import save_slow, turns

KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "half": TensorProto.FLOAT16, "text": TensorProto.STRING, "flag": TensorProto.BOOL,
         "long": TensorProto.INT64, "float": TensorProto.FLOAT, "natural": TensorProto.UINT64}  # fmt: skip
WORDS = {"int8": "INT8", "uint8": "UINT8", "half": "FP16", "text": "BYTES", "flag": "BOOL", "long": "INT64", "float": "FP32", "natural": "UINT64"}


def save(folder, name, nodes, inputs, outputs, initializers=(), settings=None):
    (folder / name / "1").mkdir(parents=True)
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / name / "1" / "model.onnx")
    if settings:
        (folder / name / "serin.yaml").write_text(settings)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Identities of every kind, one model that makes a tensor of a size that the client names, and one that takes its time."""
    folder = tmp_path_factory.mktemp("odd")
    for name, kind in KINDS.items():
        save(folder, name, [helper.make_node("Identity", ["x"], ["y"])], [helper.make_tensor_value_info("x", kind, ["n", "m"])],
             [helper.make_tensor_value_info("y", kind, ["n", "m"])], settings="max_batch: 4\n")
    save(folder, "sized", [helper.make_node("ConstantOfShape", ["sizes"], ["y"])], [helper.make_tensor_value_info("sizes", TensorProto.INT64, [2])],
         [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])])
    save_slow(folder)
    process = Process(tmp_path_factory.mktemp("odd_log"), "serve", "--models", folder, *ON_FREE_PORTS, "--threads", 1, "--max-body-bytes", 72_000_000)
    yield process
    assert process.end() == 0


@pytest.fixture
def ask(odd):
    """ask("int8", [1, 2]) or with raw data as text: the answer; all is well before and after."""
    def infer(model, data, shape=None, datatype=None, **extra):
        shape = shape or [1, len(data)]
        text = data if isinstance(data, str) else json.dumps(data)
        body = json.dumps({"inputs": [{"name": "x", "shape": shape, "datatype": datatype or WORDS[model], "data": "@"}], **extra}).replace('"@"', text)
        return call(f"{odd.url}/v2/models/{model}/infer", body.encode("utf-8", "surrogateescape"))

    yield infer
    assert infer("float", [1.5]).json["outputs"][0]["data"] == [1.5]


def assert_refused(answer, *words, status=400):
    assert answer.status == status, (answer.status, answer.body[:300])
    assert all(word in answer.error for word in words), answer.error
    assert answer.headers["x-serin-code"] and answer.headers["x-serin-batch"]


@pytest.mark.parametrize("model, number", [
    ("int8", "128"), ("int8", "-129"), ("uint8", "256"), ("uint8", "-1"), ("half", "65536"), ("half", "1e400"), ("long", "9223372036854775808"),
    ("natural", "18446744073709551616"), ("natural", "-1"), ("long", "1.5"), ("long", "123456789012345678901234567890"), ("float", "1e39"),
    ("float", "1" + "0" * 39), ("float", "9" * 400), ("flag", "18446744073709551616"), ("text", "18446744073709551616"),
])
def test_p3_numbers_that_do_not_fit_name_their_element(ask, model, number):
    answer = ask(model, f"[[1, {number}]]", [1, 2])
    assert_refused(answer, "input 'x'")
    element = 0 if model == "text" else 1  # which is the first that is none
    assert f"element {element} is" in answer.error or "/inputs/0/data/0/1 is" in answer.error, answer.error


def test_p3_a_number_that_nothing_holds_is_named_at_every_door(odd):
    for path, body, place in (("/v2/models/float/infer", {"inputs": [{"data": [0.5, "@"], "shape": [1, 2], "datatype": "FP32", "name": "x"}]}, "input 'x': /inputs/0/data/1"),
                              ("/v2/models/float/generate", {"x": [0.5, "@"]}, "/x/1"),
                              ("/v1/models/float:predict", {"instances": [[0.5, "@"]]}, "/instances/0/1"),
                              ("/v1/models/float:predict", {"inputs": {"x": [[0.5, "@"]]}}, "/inputs/x/0/1")):  # fmt: skip
        text = json.dumps(body).replace('"@"', "1e400")
        answer = call(odd.url + path, text)
        assert_refused(answer, f"{place} is 1e400, more than a number of any datatype, at {text.index('1e400')}")


def test_p3_numbers_at_the_edge_are_taken(ask):
    for model, numbers in {"int8": [-128, 127], "natural": [0, 2**64 - 1], "long": [-(2**63), 2**63 - 1], "half": [65504, -65504]}.items():
        assert ask(model, numbers).json["outputs"][0]["data"] == numbers
    wide = ask("float", "[[18446744073709551616, -123456789012345678901234567890]]", [1, 2])
    assert wide.json["outputs"][0]["data"] == [1.8446744e19, -1.2345679e29]
    answer = ask("float", "[[-0.0, 1e-400]]", [1, 2])
    assert answer.status == 200 and b"-0" in answer.body


@pytest.mark.parametrize("text", ['"\xff"', '"\\ud800"', '"\\x"', '"a\nb"', '"unended'], ids=repr)
def test_p4_texts_that_are_none(ask, text):
    assert_refused(ask("text", f"[[{text}]]".encode("latin-1").decode("utf-8", "surrogateescape"), [1, 1]))


def test_p4_texts_that_are_odd_come_back_as_they_went(ask):
    for text in ("", "\0", "a\0b", "ä€𝄞", "\\\"\n", "x" * 1_000_000):
        assert ask("text", [text]).json["outputs"][0]["data"] == [text]


def test_p4_a_text_over_the_limit_of_bodies(ask):
    answer = ask("text", '[["' + "x" * 72_000_000 + '"]]', [1, 1])
    assert answer.status == 413 and answer.headers["x-serin-batch"]


@pytest.mark.parametrize("rows, status", [(0, 400), (4096, 400), (2**31, 413), (2**62, 413)])
def test_p8_batches_of_no_rows_or_of_more_than_came(ask, rows, status):
    assert_refused(ask("float", [1.0] * min(rows, 5), [rows, 1]), status=status)


@pytest.mark.parametrize("model, datatype, data", [
    ("float", "FP31", [1]), ("float", "INT32", [1]), ("float", "BYTES", ["1"]), ("text", "FP32", [1]), ("flag", "BOOL", [2]), ("float", "fp32", [1]),
    ("float", "FP32", [True]), ("text", "BYTES", [1]),
])
def test_p9_datatypes_that_are_not_the_models(ask, model, datatype, data):
    assert_refused(ask(model, data, datatype=datatype))


@pytest.mark.parametrize("data", ["[[1,2],[3]]", "[[1,2],3,4]", "[[[1,2]],[[3,4]]]", "[1,2,3,[4]]", "[[1,2],[3,4],[]]"])
def test_p10_lists_that_are_no_tensor(ask, data):
    assert_refused(ask("float", data, [2, 2]))


@pytest.mark.parametrize("tail", [
    struct.pack("<I", 5) + b"abc", struct.pack("<I", 2**31) + b"x", struct.pack("<I", 1) + b"a" + b"x", struct.pack("<I", 1) + b"a" + struct.pack("<I", 0), b"",
    b"\1\0\0",
], ids=repr)
def test_p12_texts_whose_lengths_are_wrong(odd, ask, tail):
    head = json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": len(tail)}}]}).encode()
    assert_refused(call(f"{odd.url}/v2/models/text/infer", head + tail, {"Inference-Header-Content-Length": str(len(head))}))


def test_p13_a_list_that_widens_beyond_the_limit_costs_no_memory(odd, ask):
    before = resident_mb(odd.process)
    shape = [4, 8_500_000]  # 272 MB of INT64 in 68 MB of text
    assert_refused(ask("long", "[" + "0," * (shape[0] * shape[1] - 1) + "0]", shape), "limit of 268435456 bytes", status=413)
    assert_refused(ask("long", "[0]", [4, 1 << 40]), status=413)
    wait_until(lambda: resident_mb(odd.process) < before + 1200, what="memory given back")


@pytest.mark.parametrize("extra", [
    {"id": "x" * (1 << 20)}, {"id": 5}, {"parameters": []}, {"parameters": {"timeout": -1}}, {"parameters": {"timeout": "soon"}},
    {"parameters": {"timeout": 2**64}}, {"parameters": {"timeout": 1.5}}, {"parameters": {"priority": -1}}, {"parameters": {"binary_data_output": "yes"}},
], ids=lambda extra: str(extra)[:40])
def test_p15_ids_and_parameters_that_are_none(ask, extra):
    assert_refused(ask("float", [1.0], **extra))


def test_p15_parameters_that_nobody_knows_change_nothing(ask):
    assert ask("float", [1.0], parameters={"colour": "red", "depth": 3, "deep": True}, id="ä").json["id"] == "ä"


def test_p19_who_leaves_or_is_late_at_any_stage_frees_its_place(odd, ask):
    """Queued behind a slow request, running, and being written: each of them left by some clients and timed out by others."""
    slow = f"{odd.url}/v2/models/slow/infer"
    holder = threading.Thread(target=call, args=(slow, turns(30_000)))
    holder.start()

    def leave(after, body=turns(2_000_000)):
        with socket.create_connection(("127.0.0.1", odd.ports["http"])) as client:
            client.sendall(f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            time.sleep(after)

    leavers = [threading.Thread(target=leave, args=(after / 50,)) for after in range(20)]
    for leaver in leavers:
        leaver.start()
    late = call(slow, turns(5), {"x-serin-timeout-ms": "1"})
    assert_refused(late, status=504)
    for thread in [*leavers, holder]:
        thread.join()
    wait_until(lambda: odd.metric("nv_inference_pending_request_count", model="slow") == 0, 20, "nobody waits any more")
    assert call(slow, turns(3)).status == 200
    late = call(slow, turns(50_000_000), {"x-serin-timeout-ms": "100"})
    assert_refused(late, "deadline", status=504)
    assert call(slow, turns(3)).status == 200, "the run was ended, too"


def test_p20_the_same_request_again_and_again_takes_no_more_memory(odd, ask):
    for _ in range(1500):  # sanitizers keep back what was freed, up to a limit
        ask("float", [1.0, 2.0])
    before = resident_mb(odd.process)
    for _ in range(3000):
        ask("float", [1.0, 2.0])
    assert resident_mb(odd.process) < before + 8


def test_p22_numbers_that_are_none_are_computed_like_others(odd, ask):
    values = np.array([[np.nan, np.inf, -np.inf, -0.0]], np.float32)
    answer = call(f"{odd.url}/v2/models/float/infer", (head := json.dumps({
        "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()) + values.tobytes(), {"Inference-Header-Content-Length": str(len(head))})
    assert answer.body.endswith(values.tobytes())


@pytest.mark.parametrize("sizes", [[1 << 20, 1 << 20], [2**62, 2**62], [-1, 5], [1 << 40, 1]])
def test_p23_outputs_beyond_all_measure_are_refused_before_they_are_made(odd, ask, sizes):
    before = resident_mb(odd.process)
    body = {"inputs": [{"name": "sizes", "shape": [2], "datatype": "INT64", "data": sizes}]}
    answer = call(f"{odd.url}/v2/models/sized/infer", body)
    assert 400 <= answer.status < 500, (answer.status, answer.body[:300])
    assert resident_mb(odd.process) < before + 64
