"""The lines that `serin serve` prints to try it with: each is pasted as it stands, and gets an answer."""

import json
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from conftest import DATA, MODELS, ON_FREE_PORTS, wait_until

TOKEN = "0123456789abcdef"


def save(path, nodes, kind, shape):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("y", kind, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def paragraphs(process):
    """The line for curl, the words before Python's, those."""
    wait_until(lambda: "get_response())\n\n" in process.log, what="the lines to try")
    return process.log.split("To try it:\n\n", 1)[1].split("get_response())\n")[0].split("\n\n")


def bash(script):
    return subprocess.run(["bash", "-c", script], capture_output=True, check=False, timeout=60)


def python_in_bash(program):
    return f"{sys.executable} - <<'END'\n{program}get_response())\nEND"


def check_answers(process, name, exports=""):
    """Both get one."""
    curl, _, program = paragraphs(process)
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
    check_answers(process, "digits", f"export TOKEN={TOKEN}")
