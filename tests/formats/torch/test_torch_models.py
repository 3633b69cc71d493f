"""Programs of torch.export, in both spellings, answer as torch did."""

import os

import pytest
import stored
import torch_recipe

LONG = os.environ.get("SERIN_LONG") == "1"
# Those that run in every test: each has operators that no other has, or is a network that everybody serves.
ALWAYS = {"bert_tiny_sdpa", "convnext_tiny", "gpt2_past", "llama", "lstm_tagger", "mobilenet_v3_small", "resnet18", "swin_small", "t5_encoder", "unet", "vit_small", "yolo"}
CASES = [(name, spelling) for name in torch_recipe.NAMES for spelling in ("aten", "core")]


def skip_long(name, spelling):
    if not LONG and not (name in ALWAYS and (spelling == "aten" or name in {"bert_tiny_sdpa", "mobilenet_v3_small", "swin_small"})):
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
