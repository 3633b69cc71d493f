"""Texts in, and texts and vectors out: tokenizers in front of a model, pooling and CTC behind it."""

import json
import re

import numpy as np
import pytest
import tritonclient.http as triton
from conftest import call, serin
from onnx import TensorProto, helper
from test_steps import save

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "how", "##ever", "你", "好", "!"]
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": i, "content": WORDS[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                     for i in range(4)],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                  {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                       "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                                {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
                       "special_tokens": {word: {"id": word, "ids": [i], "tokens": [word]} for i, word in ((2, "[CLS]"), (3, "[SEP]"))}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {word: i for i, word in enumerate(WORDS)}},
}
TABLE = np.random.default_rng(5).standard_normal((len(WORDS), 4)).astype(np.float32)
NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def save_echo(folder, settings, length="seq", dtype=TensorProto.INT64):
    """Answers what it is asked."""
    save(folder / "1/model.onnx", [helper.make_node("Identity", [name], [f"of_{name}"]) for name in NAMES],
         [(name, dtype, ["n", length]) for name in NAMES], [(f"of_{name}", dtype, ["n", length]) for name in NAMES])
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "serin.yaml").write_text(settings)


def save_encoder(folder, settings):
    table = helper.make_tensor("table", TensorProto.FLOAT, TABLE.shape, TABLE.tobytes(), raw=True)
    save(folder / "1/model.onnx", [helper.make_node("Gather", ["table", "input_ids"], ["hidden"]), helper.make_node("Identity", ["attention_mask"], ["mask"])],
         [(name, TensorProto.INT64, ["n", "seq"]) for name in NAMES[:2]],
         [("hidden", TensorProto.FLOAT, ["n", "seq", 4]), ("mask", TensorProto.INT64, ["n", "seq"])], [table])
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "serin.yaml").write_text(settings)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory, start_once):
    models = tmp_path_factory.mktemp("models")
    save_echo(models / "echo", "pre: [{text: sentence, tokenizer: tokenizer.json, max_length: 8}]")
    save_echo(models / "pair", "pre: [{text: question, pair: answer, tokenizer: vocab.txt, pad_to: [4, 12]}]")
    save_echo(models / "fixed", "pre: [{text: sentence, tokenizer: tokenizer.json, truncate: false}]", 6, TensorProto.INT32)
    encode = "pre: [{text: sentence, tokenizer: tokenizer.json, pad_to: 16}]\npost: [{embedding: hidden, pooling: %s, normalize: %s, name: vector}]"
    for pooling, normalize in (("mean", "true"), ("cls", "false"), ("max", "false")):
        save_encoder(models / pooling, encode % (pooling, normalize))
    save(models / "line/1/model.onnx", [helper.make_node("Identity", ["x"], ["p"])], [("x", TensorProto.FLOAT, ["n", "t", 5])], [("p", TensorProto.FLOAT, ["n", "t", 5])])
    (models / "line/keys.txt").write_text("a\n书\nc\n")
    (models / "line/serin.yaml").write_text("post: [{ctc: p, dictionary: keys.txt}]")
    return start_once("serve", "--models", models, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 0)


def infer(runtime, model, **texts):
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        inputs = []
        for name, values in texts.items():
            inputs.append(triton.InferInput(name, [len(values)], "BYTES"))
            inputs[-1].set_data_from_numpy(np.array([value if isinstance(value, bytes) else value.encode() for value in values], dtype=object))
        return client.infer(model, inputs)


def test_a_sentence_becomes_ids(runtime):
    answer = infer(runtime, "echo", sentence=["Hello, 你好"])
    assert answer.as_numpy("of_input_ids").tolist() == [[2, 4, 1, 8, 9, 3]]
    assert answer.as_numpy("of_attention_mask").tolist() == [[1] * 6]
    assert answer.as_numpy("of_token_type_ids").tolist() == [[0] * 6]


def test_long_sentences_are_cut(runtime):
    assert infer(runtime, "echo", sentence=["hello " * 50]).as_numpy("of_input_ids").tolist() == [[2] + [4] * 6 + [3]]


def test_a_pair_of_texts_is_padded(runtime):
    answer = infer(runtime, "pair", question=["hello", "how"], answer=["however world", "hello world!"])
    assert answer.as_numpy("of_input_ids").tolist() == [[2, 4, 3, 6, 7, 5, 3, 0, 0, 0, 0, 0], [2, 6, 3, 4, 5, 10, 3, 0, 0, 0, 0, 0]]
    assert answer.as_numpy("of_token_type_ids").tolist() == [[0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0]] * 2
    assert answer.as_numpy("of_attention_mask").sum() == 14
    assert infer(runtime, "pair", question=["hello"], answer=[""]).as_numpy("of_input_ids").tolist() == [[2, 4, 3, 3]]


def test_a_fixed_length_is_filled_or_refused(runtime):
    answer = infer(runtime, "fixed", sentence=["hello"])
    assert answer.as_numpy("of_input_ids").tolist() == [[2, 4, 3, 0, 0, 0]]
    assert answer.as_numpy("of_input_ids").dtype == np.int32
    with pytest.raises(triton.InferenceServerException, match="input 'sentence'.*6"):
        infer(runtime, "fixed", sentence=["hello world hello world hello"])


def vectors_of(ids):
    return TABLE[np.array(ids)]


def test_texts_become_vectors(runtime):
    texts, ids = ["hello world", "how", "你好!"], [[2, 4, 5, 3], [2, 6, 3], [2, 8, 9, 10, 3]]
    mean = np.array([vectors_of(each).mean(0) for each in ids])
    np.testing.assert_allclose(infer(runtime, "mean", sentence=texts).as_numpy("vector"), mean / np.linalg.norm(mean, axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(infer(runtime, "max", sentence=texts).as_numpy("vector"), [vectors_of(each).max(0) for each in ids], rtol=1e-6)
    np.testing.assert_allclose(infer(runtime, "cls", sentence=texts).as_numpy("vector"), [TABLE[2]] * 3, rtol=1e-6)


def test_a_body_is_a_sentence(runtime):
    answer = call(f"{runtime.url}/v2/models/cls/infer", "how hello", {"Content-Type": "text/plain"})
    assert answer.status == 200
    assert next(output for output in answer.json["outputs"] if output["name"] == "vector")["shape"] == [1, 4]
    predicted = call(f"{runtime.url}/v1/models/cls:predict", {"instances": ["how hello", "world"]})
    assert predicted.status == 200 and len(predicted.json["predictions"]) == 2


def test_bytes_that_are_no_text(runtime):
    with pytest.raises(triton.InferenceServerException, match="UTF-8"):
        infer(runtime, "echo", sentence=[b"hello \xff"])


def test_a_text_of_a_megabyte_ends_and_a_longer_one_is_refused(runtime):
    assert infer(runtime, "echo", sentence=["hello world " * 80_000]).as_numpy("of_input_ids").shape == (1, 8)
    with pytest.raises(triton.InferenceServerException, match="1048576"):
        infer(runtime, "echo", sentence=["hello world " * 90_000])


def test_lines_become_text(runtime):
    steps = np.eye(5, dtype=np.float32)[[[1, 1, 0, 1, 2, 2], [4, 0, 3, 3, 0, 2]]] * 0.75
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("x", list(steps.shape), "FP32")
        tensor.set_data_from_numpy(steps)
        answer = client.infer("line", [tensor])
    assert [text.decode() for text in answer.as_numpy("text")] == ["aa书", " c书"]
    np.testing.assert_allclose(answer.as_numpy("score"), [0.75, 0.75])


def test_each_step_is_measured(runtime):
    infer(runtime, "echo", sentence=["hello"])
    assert runtime.metric("serin_step_seconds_count", model="echo", step="tokenize") >= 1
    infer(runtime, "mean", sentence=["hello"])
    assert runtime.metric("serin_step_seconds_count", model="mean", step="embedding") >= 1


WRONG = {
    "pre: [{text: sentence}]": "tokenizer",
    "pre: [{text: sentence, tokenizer: none.json}]": "none.json",
    "pre: [{text: sentence, tokenizer: bad.json}]": "bad.json",
    "pre: [{text: sentence, tokenizer: ../x.json}]": "must lie in the model's folder",
    "pre: [{text: sentence, tokenizer: tokenizer.json, max_length: 0}]": "max_length",
    "pre: [{text: sentence, tokenizer: tokenizer.json, pad_to: [4, 4]}]": "lengths must rise",
    "pre: [{text: sentence, tokenizer: tokenizer.json, to: {mask: attention_mask}}]": "ids",
    "pre: [{text: sentence, tokenizer: tokenizer.json, to: {ids: tokens}}]": "no input 'tokens'",
    "pre: [{text: sentence, tokenizer: tokenizer.json, style: gpt}]": "style",
    "post: [{embedding: hidden}]": "no such output",
    "post: [{embedding: of_input_ids, pooling: sum}]": "pooling",
    "post: [{ctc: of_input_ids, dictionary: keys.txt}]": r"\[steps, classes\]",
}


@pytest.mark.parametrize("settings, said", WRONG.items())
def test_bad_settings_are_refused_by_name(tmp_path, settings, said):
    save_echo(tmp_path / "echo", settings)
    (tmp_path / "echo/bad.json").write_text('{"model": {"type": "Magic"}}')
    (tmp_path / "echo/keys.txt").write_text("a\nb\n")
    ran = serin("serve", "--check", "--models", tmp_path)
    assert ran.returncode != 0 and re.search(said, ran.stdout + ran.stderr), ran.stdout + ran.stderr
