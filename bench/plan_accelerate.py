"""Bytes that accelerate counts for models of tests/models.txt, as `accelerate estimate-memory` prints them for fp32. bench/plan --peers --accelerate runs this.

    python3 -m venv V && V/bin/pip install -r deploy/requirements-models.txt accelerate
    V/bin/python bench/plan_accelerate.py resnet50 bert_base

The command itself takes names of the Hugging Face Hub only. Its figure is that of `calculate_maximum_sizes`, which is called here with the torch module of
the suite (tests/models/zoo). Prints one JSON object: {"version": "...", "bytes": {name: bytes}}.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/models"))

import accelerate  # noqa: E402
from accelerate.utils import calculate_maximum_sizes  # noqa: E402
from zoo import exporters  # noqa: E402


class Made(Exception):
    """The module that was to be exported."""


def keep(module, *_, **__):
    raise Made(module)


exporters.torchscript = exporters.dynamo = keep  # before the zoo takes these names

from zoo import dense, sequence, text, vision  # noqa: E402


def module_of(make):
    try:
        make()
    except Made as made:
        return made.args[0]
    raise ValueError("it is not exported from a module of torch")


def main():
    zoo = {**vision.MODELS, **dense.MODELS, **text.MODELS, **sequence.MODELS}
    sizes = {name: calculate_maximum_sizes(module_of(zoo[name]))[0] for name in sys.argv[1:] if name in zoo}
    print(json.dumps({"version": accelerate.__version__, "bytes": sizes}))


if __name__ == "__main__":
    main()
