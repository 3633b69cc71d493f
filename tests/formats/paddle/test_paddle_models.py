"""Whole models of Paddle, in both formats: Serin answers like paddle.inference, and takes requests in batches (README.md)."""

import os
import pathlib
import subprocess

import pytest

import paddle_recipe
import stored
import structure
from materialise import materialise as materialise_onnx

HERE = pathlib.Path(__file__).resolve().parent
NAMES = sorted(path.name.removesuffix(".xz") for path in (HERE / "recipes").glob("*.xz"))
LONG = {line.split()[0] for line in (HERE / "long.txt").read_text().splitlines() if line and not line.startswith("#")}
UNBATCHED = {line.split()[0] for line in (HERE / "unbatched.txt").read_text().splitlines() if line and not line.startswith("#")}


@pytest.fixture(params=NAMES)
def name(request):
    if request.param in LONG and not os.environ.get("SERIN_LONG"):
        pytest.skip("long: runs with SERIN_LONG=1")
    return request.param


def materialise(name, folder):
    model = name.rsplit(".", 1)[0]
    document = paddle_recipe.read(HERE / f"recipes/{name}.xz")
    path = paddle_recipe.write_model(document, model, folder)
    inputs = paddle_recipe.inputs_of(document, model)
    answers = stored.read_answers(HERE / f"answers/{name}.xz")
    return path, stored.write_data_set(folder / "data", list(inputs.values()), list(answers.values())), answers


def test_answers_like_paddle(name, tmp_path):
    path, data, answers = materialise(name, tmp_path)
    stored.assert_agrees(path, data)
    report = subprocess.run([stored.SERIN, "inspect", path], capture_output=True, text=True, check=True).stdout
    outputs = report.split("outputs\n")[1].split("\nparameters")[0].splitlines()
    assert [line.split(":")[0].strip().strip('"') for line in outputs if line] == list(answers)
    batchable = [line for line in report.splitlines() if line.startswith("batchable")]
    assert batchable and ("yes" in batchable[0]) == (name not in UNBATCHED), batchable


@pytest.mark.parametrize("files", [("__model__", ""), ("__model__", "__params__"), ("model.pdmodel", "model.pdiparams")])
def test_other_names_of_files(files, tmp_path):
    """Parameters in a file each, and the names that PaddleDetection and PaddleNLP give."""
    document = paddle_recipe.read(HERE / "recipes/mobilenet_v2.desc.xz")
    document["program"]["file"], document["parameters"]["file"] = files
    path = paddle_recipe.write_model(document, "mobilenet_v2", tmp_path)
    answers = stored.read_answers(HERE / "answers/mobilenet_v2.desc.xz")
    data = stored.write_data_set(tmp_path / "data", list(paddle_recipe.inputs_of(document, "mobilenet_v2").values()), list(answers.values()))
    stored.assert_agrees(path, data)


def inspect(path):
    return subprocess.run([stored.SERIN, "inspect", path], capture_output=True, text=True, check=True).stdout


def test_open_lengths_of_inputs_that_meet_are_one(tmp_path):
    """Each open size of each input has its own symbol in a program. With one for all three, attention is recognised."""
    report = inspect(materialise("bert_open.pir", tmp_path)[0])
    kinds = [kind for _, kind in structure.last_graph(report)]
    assert [kind for kind in kinds[:3]] == ["", "", ""] and report.count(": i64[batch,input_ids_d1]") >= 3 and "token_type_ids_d1" not in report
    assert report[report.index("after the passes") :].count(" = Attention(") == 2


def test_resnet50_is_the_graph_of_torchs_export(tmp_path):
    """Up to names, and to the last product, whose weight is of other classes and lies the other way."""
    mine = structure.describe(inspect(materialise("resnet50.pir", tmp_path)[0]))
    its = structure.describe(inspect(materialise_onnx("resnet50")))
    others = [[line for key, line in one[1].items() if key not in other[1]] for one, other in ((mine, its), (its, mine))]
    assert [[line.split()[0] for line in lines] for lines in others] == [["FusedMatMul"], ["FusedMatMul"]], others
    assert len(mine[1]) == len(its[1]) > 50


def test_listed_names_exist():
    assert (LONG | UNBATCHED) - set(NAMES) == set()


def test_a_weight_counts(tmp_path):
    """A changed weight changes the answers: the comparison is not empty."""
    document = paddle_recipe.read(HERE / "recipes/lenet.pir.xz")
    path, data, _ = materialise("lenet.pir", tmp_path)
    weight = next(tensor for tensor in document["parameters"]["tensors"] if tensor[0] == "conv2d_0.w_0")
    weight[3:] = [0, 0]
    paddle_recipe.write_model(document, "lenet", tmp_path)
    assert stored.check(path, data).returncode != 0
