"""Inputs and outputs for each version in models/digits: the first rows of its held-out set, three at once and one alone."""

import pathlib

import numpy as np

from .common import reference, write_data_sets

MODELS = pathlib.Path(__file__).resolve().parents[3] / "models/digits"


def write(out):
    pixels = np.load(MODELS / "eval.npz")["pixels"]
    for version in sorted(path.parent.name for path in MODELS.glob("*/model.onnx")):
        model = MODELS / version / "model.onnx"
        row_shape = reference(model).get_inputs()[0].shape[1:]
        rows = pixels.reshape(-1, *row_shape)
        write_data_sets(out / f"digits_{version}", model, [{"pixels": rows[:3]}, {"pixels": rows[3:4]}])
