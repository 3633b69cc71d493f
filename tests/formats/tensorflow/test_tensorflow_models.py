"""SavedModels of TensorFlow and Keras, with the answers of TensorFlow.

The weights are drawn again, and the model is written as its users have it. Requests run in batches, except for the models that are listed
below with the reason.
"""

import json
import os
import subprocess

import numpy as np
import pytest
import stored
import tensorflow_recipe

LONG = os.environ.get("SERIN_LONG") == "1"
# Models of many weights, which take seconds each.
LARGE = {"vgg16", "resnet50", "resnet50v2", "inception_v3", "inception_resnet_v2", "xception", "densenet121", "nasnet_mobile", "efficientnet_v2_b0",
         "convnext_tiny", "mobilenet_v3_large"}
LOOP = "a Loop, whose rows no proof covers"
ALONE = {
    "branches": "its condition is the mean of the batch",
    "conv_lstm": LOOP,
    "detection": "its batch is one image",
    "gru_bidirectional": LOOP,
    "loops": LOOP,
    "lstm": LOOP,
    "movements": "its sizes are fixed",
    "rnn_with_states": LOOP,
    "wide_and_deep": "counts whose length depends on the data",
}
NAMES = tensorflow_recipe.names()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tensorflow")


def chosen(names):
    return [pytest.param(name, marks=pytest.mark.skipif(name in LARGE and not LONG, reason="large: SERIN_LONG=1")) for name in names]


def prepared(name, folder):
    path, head = tensorflow_recipe.materialise(name, folder / name)
    answers = stored.read_answers(tensorflow_recipe.answers_of(name))
    inputs = tensorflow_recipe.inputs_of(head, name)
    return path, inputs, answers, stored.write_data_set(folder / name / "data", list(inputs.values()), list(answers.values()))


@pytest.mark.parametrize("name", chosen(NAMES))
def test_answers_like_tensorflow(name, folder):
    path, _, answers, data = prepared(name, folder)
    stored.assert_agrees(path, data)
    for value in answers.values():
        assert value.dtype == object or np.isfinite(np.asarray(value, np.float64)).all()
    floats = [value for value in answers.values() if np.issubdtype(value.dtype, np.floating) and value.size > 1]
    assert not floats or any(stored.SPREAD[0] <= value.std() <= stored.SPREAD[1] for value in floats)


@pytest.mark.parametrize("name", chosen(NAMES))
def test_rows_are_independent(name, folder):
    path, _ = tensorflow_recipe.materialise(name, folder / name)
    done = subprocess.run([stored.SERIN, "inspect", path, "--json"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    batchable = json.loads(done.stdout)["batchable"]
    assert batchable == (name not in ALONE), ALONE.get(name, "its rows are not proven independent")
