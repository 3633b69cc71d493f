#!/usr/bin/env python3
"""Makes tests/data/text: small tokenizers, and what the Python packages say about drawn texts. Run with Python 3.11 and tokenizers==0.23.3,
transformers==5.24.0, sentencepiece==0.2.3, jieba==0.42.1 (for Chinese words) and scikit-learn==1.9.1 (for English ones).

cases.txt of a folder has blocks: a line "KIND FIRST COUNT pairs|single MAX_LENGTH", then COUNT hashes. A hash is FNV-1a over the ids, and of pairs over the
types behind them, four bytes each. A pair is the texts N and N + 1. MAX_LENGTH 0: none.
"""

import importlib.util
import io
import itertools
import json
import pathlib
import re
import shutil
import struct

import jieba
import sentencepiece
import tokenizers
import transformers
from drawn_text import Alphabets
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parents[3] / "data/text"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def english():
    """Sentences of scikit-learn's descriptions of data sets."""
    text = "\n".join(path.read_text("utf8") for path in sorted((pathlib.Path(importlib.util.find_spec("sklearn").origin).parent / "datasets/descr").glob("*.rst")))
    return [line.strip() for line in re.split(r"\n\s*\n", text) if line.strip()]


def chinese_words():
    """The most frequent words of jieba's dictionary."""
    lines = (pathlib.Path(jieba.__file__).parent / "dict.txt").read_text("utf8").splitlines()
    counted = sorted(((int(line.split()[1]), line.split()[0]) for line in lines), reverse=True)
    return [word for _, word in counted if all("\u4e00" <= c <= "\u9fff" for c in word)][:6000]


def write_alphabets():
    common = list(dict.fromkeys("".join(chinese_words())))[:2500]
    words = [word for word in dict.fromkeys(re.findall(r"[A-Za-z]{2,}", " ".join(english()))) if len(word) < 16][:600]
    codes = [f"{ord(c):X}" for c in common]
    latin = ["C0-17F", "1E00-1EFF", "180-24F"]
    marks = ["65.301", "75.308", "49.307", "131", "130", "1C5", "3A3", "3C2", "41.30A", "1E9B.323", "6F.328.304", "212B", "FB01", "DF", "1E9E", "300-33F"]
    emoji = ["1F600-1F64F", "1F468.200D.1F469.200D.1F467", "2764.FE0F", "1F1E9.1F1EA", "1F44D.1F3FD", "1F3F4.E0067.E0062.E007F", "2600-26FF", "30.20E3"]
    others = ["5D0-5EA", "5B0-5BD", "621-64A", "64B-652", "904-939", "93E-94D", "E01-E3A", "AC00-D7A3", "1100-1112", "1161-1175", "3042-3093", "30A2-30F3", "410-44F", "391-3A1", "3B1-3C9"]
    spaces = ["20", "20.20", "9", "A", "D.A", "A0", "2003", "3000", "2028", "85", "B", "1680", "200B", "FEFF"]
    controls = ["0", "1-8", "E-1F", "7F", "80-9F", "AD", "200C-200F", "202A-202E", "E000-E010", "FFFD", "FFFE", "378", "10FFFD"]
    wide = ["FF01-FF5E", "FF65-FF9F", "3300-33FE", "2460-2473", "2070.2071.2074", "BC-BE", "2160-216B", "1D400-1D433"]
    signs = ["21-2F", "3A-40", "5B-60", "7B-7E", "A1-BF", "2010-2027", "2030-205E", "20A0-20B0", "2190-21FF", "3001-3011", "FE30-FE4F"]
    tokens = ['"[MASK]', '"[SEP]', '"[CLS]', '"[PAD]', '"<mask>', '"</s>', '"<|endoftext|>', '"Yesterday', '"yes', '"[unk]', '"##ing']
    lines = {
        "chinese": [(60, codes), (6, ["4E00-9FA5"]), (8, ["FF0C", "3002", "FF01", "FF1F", "3001", "FF1B", "FF1A", "201C", "201D", "300A", "300B", "2026", "2014"]),
                    (5, [f'"{word}' for word in words]), (5, ["30-39"]), (5, ["FF10-FF5A"]), (4, spaces[:6]), (3, ["3400-4DB5", "20000-20100", "F900-F96A", "2F800-2F810"]),
                    (2, ["3042-3093", "30A2-30F3"]), (1, emoji), (1, tokens[:4])],
        "english": [(40, [f'"{word}' for word in words]), (40, ["20"]), (6, ["2C.20", "2E.20", "2E", "3F", "21", "27.73.20", "27.6C.6C", "27", "2D", "28", "29", "22"]),
                    (5, ["30-39"]), (3, ["41-5A", "61-7A"]), (2, spaces), (2, ["E9", "EF", "2019.73", "2014", "FC"])],
        "mixed": [(14, latin), (10, marks), (10, emoji), (14, others), (12, spaces), (8, controls), (10, wide), (12, signs), (10, codes[:300]),
                  (14, [f'"{word}' for word in words[:200]]), (6, ["30-39"]), (6, tokens), (4, ["20-7E"])],
    }
    HERE.mkdir(parents=True, exist_ok=True)
    with (HERE / "alphabets.txt").open("w") as file:
        for kind, weighted in lines.items():
            for weight, items in weighted:
                file.write(f"{kind} {weight} {' '.join(items)}\n")


def corpus(kinds):
    """Texts to train with: English descriptions, Chinese words, and drawn ones."""
    alphabets = Alphabets()
    yield from english()
    words = chinese_words()
    yield from ("".join(words[i : i + 8]) for i in range(0, 3000, 8))
    for kind in kinds:
        yield from (alphabets.text(kind, 10**6 + number) for number in range(3000))


def trained(tokenizer, trainer, kinds=("english", "mixed")):
    tokenizer.train_from_iterator(corpus(kinds), trainer)
    return tokenizer


def word_piece(size, **normalizing):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**normalizing)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False, limit_alphabet=2600), ("chinese", "english"))


def bert_folder(name, **settings):
    folder = HERE / name
    folder.mkdir()
    vocabulary = word_piece(4000, lowercase=settings.get("do_lower_case", True), strip_accents=settings.get("strip_accents")).get_vocab()
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in sorted(vocabulary, key=vocabulary.get)), "utf8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}) + "\n")
    peer = transformers.BertTokenizer.from_pretrained(str(folder), **({} if settings else {"do_lower_case": True}))
    return folder, peer._tokenizer


def byte_level(size, pre_tokenizer, **options):
    tokenizer = tokenizers.Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False, **{key: options[key] for key in ("end_of_word_suffix",) if key in options},
    )
    return trained(tokenizer, trainer)


def gpt2():
    tokenizer = byte_level(1500, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta():
    tokenizer = byte_level(1200, pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def llama3():
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    tokenizer = byte_level(1200, pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True)
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def clip():
    split = pre_tokenizers.Split(Regex(CLIP), "removed", invert=True)
    steps = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer = byte_level(1200, steps, unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False, trim_offsets=False)
    return tokenizer


def falcon():
    """ByteLevel in the middle, so that later steps see its spelling."""
    steps = [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(individual_digits=False),
             pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]
    return byte_level(1000, pre_tokenizers.Sequence(steps))


def llama2():
    """BPE over the whole text, with bytes for what is unknown."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trained(tokenizer, trainers.BpeTrainer(vocab_size=1600, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False, limit_alphabet=300))
    tokenizer.pre_tokenizer = None
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def old_bpe():
    """Characters with prefixes, unknown ones one by one, and all kinds of added tokens."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
    trained(tokenizer, trainers.BpeTrainer(vocab_size=1000, special_tokens=SPECIAL, show_progress=False, limit_alphabet=200, continuing_subword_prefix="##"))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens([AddedToken("[MASK]", rstrip=True, lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("yes", single_word=True, normalized=False), AddedToken("Yesterday", normalized=True), AddedToken("</s>", normalized=False)])
    return tokenizer


def unigram_model(**options):
    out = io.BytesIO()
    rules = ["FB01\t66 69", "65 301\tE9", "212B\tC5", "3000\t20", "A0\t20", "9\t20", "A\t20", "2460\t31", "AD\t", "200B\t", "FEFF\t"]
    rules += [f"{0xFF01 + i:X}\t{0x21 + i:X}" for i in range(94)]
    (HERE / "rules.tsv").write_text("\n".join(rules) + "\n")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line.replace("\0", "") for line in corpus(("english", "mixed"))), model_writer=out, hard_vocab_limit=False, num_threads=1,
        character_coverage=0.98, normalization_rule_tsv=str(HERE / "rules.tsv"), minloglevel=2, **options,
    )
    (HERE / "rules.tsv").unlink()
    return out.getvalue()


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def xlm_roberta():
    """A Unigram model of SentencePiece as transformers converts it."""
    model = unigram_model(model_type="unigram", vocab_size=2200)
    normalizer = dict(fields(next(value for number, value in fields(model) if number == 3)))
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces = [dict(fields(value)) for number, value in fields(model) if number == 1][3:]
    vocabulary += [(piece[1].decode(), struct.unpack("<f", piece[2])[0]) for piece in pieces] + [("<mask>", 0.0)]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(normalizer[2]), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens([*("<s>", "<pad>", "</s>", "<unk>"), AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def t5():
    tokenizer = xlm_roberta()
    vocabulary = [(token, score) for token, score in json.loads(tokenizer.to_str())["model"]["vocab"]][:700]
    vocabulary += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    made = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    made.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    return made


def fnv1a(numbers):
    value = 0x811C9DC5
    for byte in struct.pack(f"<{len(numbers)}i", *numbers):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


class Cases:
    """Of one folder: blocks of hashes."""

    def __init__(self, folder, encode):
        self.folder, self.encode, self.alphabets, self.lines = folder, encode, Alphabets(), []

    def add(self, kind, first, count, pairs=False, max_length=0):
        texts = [self.alphabets.text(kind, number) for number in range(first, first + count + pairs)]
        hashes = []
        for text, pair in itertools.zip_longest(texts[:count], texts[1:] if pairs else []):
            ids, types = self.encode(text, pair if pairs else None, max_length)
            hashes.append(fnv1a([*ids, *types] if pairs else ids))
        self.lines.append(f"{kind} {first} {count} {'pairs' if pairs else 'single'} {max_length}")
        self.lines += [" ".join(hashes[i : i + 16]) for i in range(0, count, 16)]

    def usual(self):
        self.add("mixed", 0, 800)
        self.add("english", 0, 200)
        self.add("chinese", 0, 200)
        self.add("mixed", 2000, 60, pairs=True)
        self.add("english", 2000, 60, pairs=True, max_length=13)
        self.add("english", 3000, 60, max_length=8)

    def write(self):
        (self.folder / "cases.txt").write_text("\n".join(self.lines) + "\n")


def fast(tokenizer):
    def encode(text, pair, max_length):
        tokenizer.no_padding()
        if max_length:
            tokenizer.enable_truncation(max_length)
        else:
            tokenizer.no_truncation()
        encoding = tokenizer.encode(text, pair)
        return encoding.ids, encoding.type_ids

    return encode


def sentencepiece_folder(name, style, before, behind, **options):
    folder = HERE / name
    folder.mkdir()
    model = unigram_model(**options)
    (folder / "spiece.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    (folder / "style").write_text(f"{style}\n")

    def encode(text, pair, max_length):
        assert not max_length
        ids = before + processor.encode(text) + behind
        second = [] if pair is None else before + processor.encode(pair) + behind
        return ids + second, [0] * len(ids) + [1 if style == "llama" else 0] * len(second)

    cases = Cases(folder, encode)
    for kind, count in (("mixed", 800), ("english", 200), ("chinese", 200)):
        cases.add(kind, 0, count)
    cases.write()


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    write_alphabets()
    for name, settings in (("bert", {}), ("bert_cased", {"do_lower_case": False, "strip_accents": None, "tokenize_chinese_chars": True})):
        folder, peer = bert_folder(name, **settings)
        cases = Cases(folder, fast(peer))
        cases.usual()
        cases.add("chinese", 10000, 10000 if name == "bert" else 500)
        cases.write()
    for make in (gpt2, roberta, llama3, clip, falcon, llama2, old_bpe, xlm_roberta, t5):
        folder = HERE / make.__name__
        folder.mkdir()
        tokenizer = make()
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        cases = Cases(folder, fast(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))))
        cases.usual()
        cases.write()
    sentencepiece_folder("sp_unigram", "t5", [], [2], model_type="unigram", vocab_size=2200)
    sentencepiece_folder("sp_bpe", "llama", [1], [], model_type="bpe", vocab_size=2200, byte_fallback=True, split_digits=True, user_defined_symbols=["<mask>", "##ing"])


if __name__ == "__main__":
    main()
