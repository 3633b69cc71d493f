"""Models of Paddle, TensorFlow, PyTorch and tree libraries in the two situations that a model file can bring about in a server: M13, M16."""

import concurrent.futures
import lzma
import pathlib
import shutil
import sys

import pytest

from conftest import DATA, MODELS, call, infer_body, wait_until
from test_device import NEEDS, ON_CUDA
from test_repository_control import EXPLICIT

FORMATS = pathlib.Path(DATA).parent / "formats"
sys.path += [str(DATA.parent / "models"), *(str(FORMATS / name) for name in ("paddle", "tensorflow", "torch"))]

import paddle_recipe  # noqa: E402
import tensorflow_recipe  # noqa: E402
import torch_recipe  # noqa: E402

ZEROS = infer_body([[0.0] * 64])


def write_paddle(folder):
    paddle_recipe.write_model(paddle_recipe.read(FORMATS / "paddle/recipes/lenet.pir.xz"), "lenet", folder)


def write_tensorflow(folder):
    tensorflow_recipe.materialise("mlp", folder)


def write_torch(folder):
    folder.mkdir(parents=True)
    torch_recipe.materialise(torch_recipe.read("perceptron"), "perceptron", "aten", folder / "model.pt2")


def write_trees(folder):
    folder.mkdir(parents=True)
    (folder / "model.json").write_bytes(lzma.decompress((FORMATS / "trees/models/xgb_squared.json.xz").read_bytes()))


WRITERS = {"paddle": write_paddle, "tensorflow": write_tensorflow, "torch": write_torch, "trees": write_trees}


def body_for(runtime, model):
    """Zeros for every input, two rows."""
    inputs = call(f"{runtime.url}/v2/models/{model}").json["inputs"]
    tensors = []
    for tensor in inputs:
        shape = [2 if size < 0 else size for size in tensor["shape"]]
        count = 1
        for size in shape:
            count *= size
        tensors.append({"name": tensor["name"], "datatype": tensor["datatype"], "shape": shape, "data": [0] * count})
    return {"inputs": tensors}


def outputs_of(runtime, model):
    answer = call(f"{runtime.url}/v2/models/{model}/infer", body_for(runtime, model))
    assert answer.status == 200, answer.body
    return [output["data"] for output in answer.json["outputs"]]


@pytest.mark.parametrize("name", list(WRITERS))
def test_m13_a_plan_that_does_not_fit_the_device_is_refused_with_the_numbers(name, serve, repository, emulated):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text("device: cpu\n")
    WRITERS[name](models / name / "1")
    probe = serve(models, *ON_CUDA, env=emulated().env)
    expected = outputs_of(probe, name)
    needed = int(probe.metric("serin_model_device_bytes", model=name))
    assert needed > 0

    short = serve(models, *ON_CUDA, env=emulated(memory=needed - 1).env)
    refused = call(f"{short.url}/v2/models/{name}/infer", body_for(probe, name))
    assert refused.status == 503
    total, weights, arena, _, free, capacity = map(int, NEEDS.search(refused.error).groups())
    assert total == weights + arena == needed and free == capacity == needed - 1
    assert call(f"{short.url}/v2/models/digits/infer", ZEROS).status == 200, "others are not disturbed"

    exact = serve(models, *ON_CUDA, env=emulated(memory=needed).env)
    assert outputs_of(exact, name) == expected


def test_m16_a_storm_of_loads_and_unloads_of_every_format(start, tmp_path):
    models = tmp_path / "models"
    for name, write in WRITERS.items():
        write(models / name / "1")
    runtime = start(*EXPLICIT, "--model-repository", models)
    names = list(WRITERS)

    def order(i):
        name, action = names[i % 4], "load" if i // 4 % 2 else "unload"
        return call(f"{runtime.url}/v2/repository/models/{name}/{action}", "{}", timeout=60).status

    for name in names:
        assert call(f"{runtime.url}/v2/repository/models/{name}/load", "{}", timeout=60).status == 200
    expected = {name: outputs_of(runtime, name) for name in names}
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        assert set(pool.map(order, range(200))) == {200}
    for name in names:
        assert call(f"{runtime.url}/v2/repository/models/{name}/load", "{}", timeout=60).status == 200
        assert outputs_of(runtime, name) == expected[name]
        assert call(f"{runtime.url}/v2/repository/models/{name}/unload", "{}", timeout=60).status == 200
    assert wait_until(lambda: runtime.metric("serin_model_weight_bytes") == 0, 5, "nothing is held")
    assert runtime.end() == 0


def test_m16_a_file_that_comes_back_damaged_is_refused_and_then_served_again(start, tmp_path):
    models, kept = tmp_path / "models", tmp_path / "kept"
    for name, write in WRITERS.items():
        write(kept / name / "1")
    shutil.copytree(kept, models)
    runtime = start(*EXPLICIT, "--model-repository", models)
    for name in WRITERS:
        program = max((models / name / "1").iterdir(), key=lambda file: file.suffix in {".json", ".pb", ".pt2"})
        whole = program.read_bytes()
        program.write_bytes(whole[: len(whole) // 2])
        refused = call(f"{runtime.url}/v2/repository/models/{name}/load", "{}", timeout=60)
        assert refused.status >= 400 and program.name in refused.error, refused.body
        program.write_bytes(whole)
        assert call(f"{runtime.url}/v2/repository/models/{name}/load", "{}", timeout=60).status == 200
        outputs_of(runtime, name)
