#!/usr/bin/env python3
"""Serin's tokenisers and the Rust library of Hugging Face, on one thread, in one run.

    cmake --build build --target tokenize
    python3 bench/tokenizers_bench.py            # a Python that has the package tokenizers
    python3 bench/tokenizers_bench.py --file FILE   # a tokenizer of yours, too

The vocabularies are trained when the script runs, on the texts of Python's standard library, as are the texts to encode: other files of it. The peer
encodes each text by itself, or all as one batch on one thread, which spares it calls from Python; the better one counts. It finds offsets, too, and
cannot be told not to. In every round each measures once. The ids of all texts are compared first.
"""

import os
import pathlib
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"300 bytes": 300, "3 KB": 3_000, "100 KB": 100_000}


def library():
    """Texts to train with, and one text to encode."""
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = [path.read_text("utf8", errors="ignore") for path in files]
    return texts[::2], "\n".join(texts[1::2])[:2_000_000]


def bert(texts):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=20000, special_tokens=SPECIAL, show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def gpt2(texts):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=20000, initial_alphabet=alphabet, show_progress=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(file, texts, folder, rounds):
    """Seconds of Serin, and of the peer's two ways."""
    peer = tokenizers.Tokenizer.from_file(str(file))
    peer.no_padding()
    peer.no_truncation()
    packed = folder / "texts"
    packed.write_bytes(b"".join(struct.pack("<I", len(text)) + text for text in (one.encode() for one in texts)))
    command = [ROOT / "build/tokenize", file, packed]
    said = subprocess.run([*command, "ids", str(2**40)], capture_output=True, text=True, check=True).stdout.splitlines()
    different = sum(" ".join(map(str, peer.encode(text).ids)) != line for text, line in zip(texts, said, strict=True))
    if different:
        sys.exit(f"{file.name}: {different} of {len(texts)} texts have other ids")
    times = {"Serin": [], "each": [], "batch": []}
    with subprocess.Popen([*command, "time"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        for _ in range(rounds + 1):
            child.stdin.write("\n")
            child.stdin.flush()
            times["Serin"].append(float(child.stdout.readline()))
            times["each"].append(seconds(lambda: [peer.encode(text) for text in texts]))
            times["batch"].append(seconds(lambda: peer.encode_batch(texts)))
        child.stdin.close()
    return {name: statistics.median(all_[1:]) for name, all_ in times.items()}


def main():
    parser = table.parser_for("tokenizers_bench.py", "Serin's tokenisers and tokenizers' on one thread.", __doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[], help="a tokenizer.json of yours")
    options = parser.parse_args()
    train, text = library()
    results = table.Table([f"tokenizers {tokenizers.__version__}"], f"{table.machine()}, one thread, MB/s")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = {"BERT WordPiece": folder / "bert.json", "GPT-2 BPE": folder / "gpt2.json", **{file.parent.name: file for file in options.file}}
        bert(train).save(str(folder / "bert.json"))
        gpt2(train).save(str(folder / "gpt2.json"))
        for what, file in files.items():
            for size_name, size in SIZES.items():
                texts = [text[i : i + size] for i in range(0, len(text), size)]
                times = measure(file, texts, folder, options.rounds)
                rate = {way: len(text.encode()) / 1e6 / spent for way, spent in times.items()}
                peer = max(rate["each"], rate["batch"])
                note = f"each text: {rate['each']:.1f}, one batch: {rate['batch']:.1f}"
                results.add(table.Row(f"{what}, texts of {size_name}", "MB/s", rate["Serin"], dict.fromkeys(results.peers, peer), less_is_better=False, note=note))
    results.geometric_mean("all rows", lambda row: True)
    if options.json:
        results.save(options.json, table.machine())


if __name__ == "__main__":
    main()
