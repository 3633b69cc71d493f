#!/usr/bin/env python3
"""Writes tests/data/keras/*.h5 with h5py, in both layouts of groups: .deps/venv/bin/python tests/runtime/formats/keras/make_weights.py"""

import pathlib

import h5py
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "data/keras"

FOLDER.mkdir(exist_ok=True)
for name, layout, layers in (("tables", "earliest", 12), ("links", "latest", 60)):
    with h5py.File(FOLDER / f"{name}.h5", "w", libver=layout) as file:
        file.create_dataset("layers/dense/vars/0", data=np.arange(6, dtype=np.float32).reshape(2, 3))
        for i in range(1, layers):
            file.create_dataset(f"layers/dense_{i}/vars/0", data=np.array([i], np.int64))
        file.create_dataset("layers/half/vars/0", data=np.array([0.5], np.float16))
        file.create_dataset("layers/rounded/vars/0", data=np.array([b"\x80\x3f"], "V2"))
        file.create_dataset("layers/text/vars/0", data="a text")
        file["layers/empty/vars"] = h5py.SoftLink("/layers/dense")
