"""Programs of torch.export, in both spellings, answer as torch did."""

import os
import subprocess

import materialise
import pytest
import stored
import structure
import torch_recipe

LONG = os.environ.get("SERIN_LONG") == "1"
# Those that run in every test: each has operators that no other has, or is a network that everybody serves.
LAYERS = {"cells", "choices", "complexes", "diagonals", "distances", "fourier", "functions", "orders", "quantiles", "scans", "scatters", "signals", "windows"}  # torch_layers.py
ALWAYS = LAYERS | {"bert_tiny_sdpa", "complex_rotary", "convnext_tiny", "gpt2_past", "llama", "log_mel_encoder", "lstm_tagger", "mobilenet_v3_small", "resnet18", "swin_small", "t5_encoder", "unet", "vit_small", "yolo"}
CORE = {"bert_tiny_sdpa", "complex_rotary", "complexes", "fourier", "log_mel_encoder", "mobilenet_v3_small", "scatters", "signals", "swin_small", "windows"}
CASES = [(name, spelling) for name in torch_recipe.NAMES for spelling in ("aten", "core")]


def skip_long(name, spelling):
    if not LONG and not (name in ALWAYS and (spelling == "aten" or name in CORE)):
        pytest.skip("runs with SERIN_LONG=1")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("torch")


@pytest.mark.parametrize(("name", "spelling"), CASES)
def test_it_answers_as_torch_did(name, spelling, folder):
    skip_long(name, spelling)
    what, answers = torch_recipe.read(name), stored.read_answers(torch_recipe.answers_path(name))
    stored.assert_spread(answers)
    model = torch_recipe.materialise(what, name, spelling, folder / f"{name}-{spelling}.pt2")
    data = stored.write_data_set(folder / f"{name}-{spelling}", torch_recipe.make_inputs(name, what), answers.values())
    stored.assert_agrees(model, data)
    model.unlink()


def test_an_archive_as_torch_writes_it(tmp_path):
    arrays = stored.read_answers(torch_recipe.answers_path("as_written"))
    data = stored.write_data_set(tmp_path, [arrays.pop("input")], arrays.values())
    stored.assert_agrees(torch_recipe.HERE / "as_written.pt2", data)


def inspect(model):
    return subprocess.run([stored.SERIN, "inspect", model], capture_output=True, text=True, timeout=170, check=True).stdout


def pt2(name, spelling, folder):
    return torch_recipe.materialise(torch_recipe.read(name), name, spelling, folder / f"{name}-{spelling}.pt2")


@pytest.mark.parametrize(("name", "spelling", "onnx"), [("resnet50", "aten", "resnet50"), ("resnet50", "core", "resnet50"), ("bert_tiny_sdpa", "aten", "bert_tiny_dynamo")])
def test_the_same_graph_comes_out_as_of_onnx(name, spelling, onnx, folder):
    mine, its = (structure.describe(inspect(each)) for each in (pt2(name, spelling, folder), materialise.materialise(onnx)))
    missing = [line for key, line in its[1].items() if key not in mine[1]]
    assert mine[0] == its[0], "\n".join(missing[:10])


def test_a_network_of_other_layers_is_another_graph(folder):
    a, b = (structure.describe(inspect(pt2(name, "aten", folder))) for name in ("mobilenet_v3_small", "resnet18"))
    assert a[0] != b[0]


@pytest.mark.parametrize("name", ["resnet18", "bert_tiny_sdpa", "vit_small", "llama", "complex_rotary", "log_mel_encoder"])
def test_an_open_batch_is_one(name, folder):
    assert "batchable: yes" in inspect(pt2(name, "aten", folder))
