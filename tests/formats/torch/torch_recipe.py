"""Programs of torch.export without their weights.

A recipe is JSON, xz-compressed:

    programs   {spelling: what torch.export.save wrote as models/model.json}; "aten" is torch.export's own, "core" that of run_decompositions()
    weights    {spelling: data/weights/model_weights_config.json}, and constants likewise
    payloads   {spelling: {path in the archive: {"uniform": [low, high], "count": n} or {"raw": base64}}}; a draw is seeded by name and path
    inputs     {input: [shape, dtype, kind]}, as tests/models/listing.py draws them
"""

import base64
import json
import lzma
import pathlib
import zipfile

import numpy as np

import listing
import recipe

HERE = pathlib.Path(__file__).resolve().parent
NAMES = sorted(path.name.removesuffix(".json.xz") for path in (HERE / "recipes").glob("*.json.xz"))


def recipe_path(name):
    return HERE / "recipes" / f"{name}.json.xz"


def answers_path(name):
    return HERE / "answers" / f"{name}.npz.xz"


def read(name):
    return json.loads(lzma.decompress(recipe_path(name).read_bytes()))


def write(name, what):
    recipe_path(name).parent.mkdir(exist_ok=True)
    text = json.dumps(what, separators=(",", ":"))
    recipe_path(name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def payload(name, path, how):
    if "raw" in how:
        return base64.b64decode(how["raw"])
    return recipe.draw(f"{name}/{how['seed']}", [how["count"]], *how["uniform"]).tobytes()


def materialise(what, name, spelling, path):
    """Writes the archive as torch.export.save does, at `path`. In place of the weights are the draws."""
    folder = path.stem
    entries = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        "byteorder": b"little",
        "models/model.json": json.dumps(what["programs"][spelling]).encode(),
        "data/weights/model_weights_config.json": json.dumps(what["weights"][spelling]).encode(),
        "data/constants/model_constants_config.json": json.dumps(what["constants"][spelling]).encode(),
        "data/sample_inputs/model.pt": b"\x80\x02a pickle, which is never read",
    }
    for entry, how in what["payloads"][spelling].items():
        entries[entry] = payload(name, entry, how)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(f"{folder}/{entry}"), content)
    return path


def make_inputs(name, what):
    return [
        listing.looks_like(f"{name}/inputs/{key}", kind, shape, np.dtype(dtype).type) for key, (shape, dtype, kind) in what["inputs"].items()
    ]
