"""Models of LightGBM and XGBoost answer as their libraries did."""

import lzma
import pathlib

import numpy as np
import pytest
import stored

HERE = pathlib.Path(__file__).resolve().parent
MODELS = sorted((HERE / "models").glob("*.xz"))
CLASSIFIERS = {"lgb_binary", "lgb_binary_steep", "lgb_multiclass", "lgb_one_versus_all", "lgb_categories", "lgb_forest_binary", "xgb_logistic"}
CLASSIFIERS |= {"xgb_logistic_binary", "xgb_softprob", "xgb_softprob_binary", "xgb_categories", "xgb_dart_classes"}


def name_of(path):
    return path.name.split(".")[0]


@pytest.mark.parametrize("path", MODELS, ids=map(name_of, MODELS))
def test_it_answers_as_its_library_did(path, tmp_path):
    arrays = stored.read_answers(HERE / "answers" / f"{name_of(path)}.npz.xz")
    if name_of(path) != "lgb_stump":  # a model without a split
        stored.assert_spread({"output": arrays["output"]})
    model = tmp_path / path.name.removesuffix(".xz")
    model.write_bytes(lzma.decompress(path.read_bytes()))
    data = stored.write_data_set(tmp_path / "data", [arrays["input"]], [arrays["output"]])
    done = stored.check(model, data)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    assert ("probabilities" if name_of(path) in CLASSIFIERS else "prediction") in done.stdout


def test_another_leaf_is_another_answer(tmp_path):
    path = HERE / "models" / "lgb_binary.txt.xz"
    arrays = stored.read_answers(HERE / "answers" / "lgb_binary.npz.xz")
    model = tmp_path / "model.txt"
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("leaf_value="))
    lines[at] = "leaf_value=" + " ".join(str(float(value) + 0.05) for value in lines[at].removeprefix("leaf_value=").split())
    model.write_text("\n".join(lines) + "\n")
    data = stored.write_data_set(tmp_path / "data", [arrays["input"]], [arrays["output"]])
    assert stored.check(model, data).returncode == 1


def test_rows_of_a_batch_are_independent(tmp_path):
    path = HERE / "models" / "xgb_logistic.json.xz"
    arrays = stored.read_answers(HERE / "answers" / "xgb_logistic.npz.xz")
    model = tmp_path / "model.json"
    model.write_bytes(lzma.decompress(path.read_bytes()))
    for rows in (slice(0, 1), slice(3, 20)):
        folder = tmp_path / f"data-{rows.start}"
        stored.assert_agrees(model, stored.write_data_set(folder, [arrays["input"][rows]], [np.ascontiguousarray(arrays["output"][rows])]))
