"""The lines that `serin serve` prints to try it with: each is pasted as it stands, what the reader fills in aside, and gets an answer."""

import json
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from certificates import Authority
from conftest import DATA, MODELS, ON_FREE_PORTS, wait_until

TOKEN = "0123456789abcdef"


def save(path, nodes, kind, shape):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("y", kind, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def paragraphs(process):
    """[what is to be filled in, where something is,] the line for curl, the words before Python's, those."""
    wait_until(lambda: "get_response())\n\n" in process.log, what="the lines to try")
    return process.log.split("To try it:\n\n", 1)[1].split("get_response())\n")[0].split("\n\n")


def bash(script):
    return subprocess.run(["bash", "-c", script], capture_output=True, check=False, timeout=60)


def python_in_bash(program):
    return f"{sys.executable} - <<'END'\n{program}get_response())\nEND"


def check_answers(process, name, filled_in=None):
    """Both get one. `filled_in`: (words, what the reader puts in their place), which would be asked for."""
    *to_fill_in, curl, _, program = paragraphs(process)
    assert len(to_fill_in) == (filled_in is not None)
    exports = ""
    for text in to_fill_in:
        exports = text
        for place, value in filled_in:
            assert place in exports
            exports = exports.replace(place, value, 1)
    asked = bash(f"{exports}\n{curl}")
    answer = json.loads(asked.stdout or asked.stderr)
    assert answer["model_name"] == name and answer["outputs"]
    asked = bash(f"{exports}\n{python_in_bash(program)}")
    assert f"'model_name': '{name}'".encode() in asked.stdout, asked.stderr


def test_a_file_needs_nothing_else(start):
    process = start("serve", MODELS / "digits/1/model.onnx", "--name", "digits", *ON_FREE_PORTS)
    check_answers(process, "digits")


IDENTITY = [helper.make_node("Identity", ["x"], ["y"])]
POOLS = [helper.make_node("AveragePool", ["x"], ["pooled"], kernel_shape=[7, 7], strides=[7, 7]), helper.make_node("GlobalMaxPool", ["pooled"], ["y"])]


@pytest.mark.parametrize("name, nodes, kind, shape", [
    ("image", POOLS, TensorProto.FLOAT, ["n", 3, "h", "w"]), ("text", IDENTITY, TensorProto.STRING, ["n"]),
    ("brain", IDENTITY, TensorProto.BFLOAT16, ["n", 4]), ("half", IDENTITY, TensorProto.FLOAT16, ["n", 4]),
])
def test_sizes_and_types_are_the_models(start, tmp_path, name, nodes, kind, shape):
    check_answers(start("serve", save(tmp_path / f"{name}.onnx", nodes, kind, shape), *ON_FREE_PORTS), name)


@pytest.mark.parametrize("shape, why", [(["n", "k"], "with 1 for what is open, "), ([1, 2**25], "more than 4194304 elements")])
def test_a_model_without_lines_says_why(start, tmp_path, shape, why):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [299, 5], [0.5] * 1495)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])] if "k" in shape else IDENTITY
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight] if "k" in shape else [])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "wide.onnx")
    process = start("serve", tmp_path / "wide.onnx", *ON_FREE_PORTS)
    wait_until(lambda: "there is no line to try it with" in process.log)
    assert why in process.log and "To try it" not in process.log


def test_a_sequence_is_named_where_one_is_needed(start, repository):
    models = repository({"sum/1": DATA / "sequence_state/model.onnx"})
    (models / "sum/serin.yaml").write_text("sequences: {state: [{input: PAST, output: PRESENT}]}\n")
    check_answers(start("serve", models, *ON_FREE_PORTS), "sum")


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens.yaml"
    file.write_text(f"tokens: [{{name: me, role: infer, token: {TOKEN}}}]\n")
    file.chmod(0o600)
    return file


def test_a_token_is_asked_for_where_one_is_needed(start, tokens):
    process = start("serve", MODELS, *ON_FREE_PORTS, "--tokens", tokens)
    check_answers(process, "digits", [("TOKEN=...", f"TOKEN={TOKEN}")])


@pytest.fixture
def authority(tmp_path):
    """One that no machine trusts."""
    return Authority(tmp_path)


def tls(server, *more):
    return [*ON_FREE_PORTS, "--tls-cert", server.cert, "--tls-key", server.key, *more]


def test_a_server_with_a_certificate_of_its_owners_authority(start, authority):
    check_answers(start("serve", MODELS, *tls(authority.issue("server"))), "digits")


def test_a_server_whose_certificate_names_another_host(start, authority):
    check_answers(start("serve", MODELS, *tls(authority.issue("server", names="DNS:models.example"))), "digits")


@pytest.mark.parametrize("with_token", [False, True])
def test_a_clients_certificate_is_asked_for_where_one_is_needed(start, authority, tokens, with_token):
    ann = authority.issue("ann")
    process = start("serve", MODELS, *tls(authority.issue("server"), "--tls-client-ca", authority.ca), *(["--tokens", tokens] if with_token else []))
    token = [("TOKEN=...", f"TOKEN={TOKEN}")] if with_token else []
    check_answers(process, "digits", [*token, ("CERT=FILE", f"CERT={ann.cert}"), ("KEY=FILE", f"KEY={ann.key}")])
