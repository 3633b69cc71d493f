#!/usr/bin/env python3
"""Makes runtime/steps/text/unicode_differences.h: where the tables of the Rust library differ from utf8proc's. Run with utf8proc 2.8 (Unicode 15) and
tokenizers==0.23.3. `tests/checks/format --fix` then breaks the lines.
"""

import ctypes
import pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parents[4] / "runtime/steps/text/unicode_differences.h"
HEAD = """// unicode_differences.h: code points that the Rust library tokenizers 0.23.3 puts into other classes than utf8proc 2.8 (Unicode 15) does. Its crates have tables of several
// versions, from 8 on. Written by tests/runtime/steps/text/make_unicode.py.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/steps/text/char_class.h"

namespace serin::steps::text {

struct UnicodeDifference {
  char32_t first, last;
  uint16_t classes;  ///< bits of CharClass that are the other way round
};

inline constexpr std::array<UnicodeDifference, %d> kUnicodeDifferences = {{
"""
CLEAN = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
ACCENTS = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
MARKS, NFKD = normalizers.StripAccents(), normalizers.NFKD()
PUNCTUATION, WORDS = pre_tokenizers.Punctuation(), pre_tokenizers.Whitespace()
LETTERS, NUMBERS = (pre_tokenizers.Split(Regex(rf"\p{{{name}}}"), "isolated") for name in "LN")


UTF8PROC = ctypes.CDLL("libutf8proc.so.2")
UTF8PROC.utf8proc_category_string.restype = ctypes.c_char_p
UTF8PROC.utf8proc_NFKD.restype = ctypes.c_char_p


def parts(pre_tokenizer, text):
    return len(pre_tokenizer.pre_tokenize_str(text))


def enclosed_letter(code):
    return any(first <= code <= last for first, last in ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)))


def by_utf8proc(char):
    code = ord(char)
    category = UTF8PROC.utf8proc_category_string(code).decode()
    symbol = code < 128 and category[0] == "S"
    return {
        "kControl": category in ("Cc", "Cf", "Co") and char not in "\t\n\r",
        "kNonspacing": category == "Mn",
        "kMark": category[0] == "M",
        "kPunctuation": category[0] == "P" or symbol,
        "kLetter": category[0] == "L",
        "kNumber": category[0] == "N",
        "kWord": category[0] in "LM" or category in ("Nd", "Nl", "Pc") or enclosed_letter(code) or code in (0x200C, 0x200D),
        "kDecomposes": code != 0 and UTF8PROC.utf8proc_NFKD(char.encode()).decode() != char,
    }


def by_the_peer(char, ours):
    return {
        "kControl": ours["kControl"] if char in "\0\ufffd" else CLEAN.normalize_str(char) == "",
        "kNonspacing": ACCENTS.normalize_str(char) == "",
        "kMark": MARKS.normalize_str(char) == "",
        "kPunctuation": parts(PUNCTUATION, f"a{char}b") == 3,
        "kLetter": parts(LETTERS, f"-{char}-") == 3,
        "kNumber": parts(NUMBERS, f"-{char}-") == 3,
        "kWord": parts(WORDS, f"a{char}b") == 1,
        "kDecomposes": NFKD.normalize_str(char) != char,
    }


def main():
    ranges = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        ours = by_utf8proc(chr(code))
        theirs = by_the_peer(chr(code), ours)
        classes = " | ".join(name for name in ours if ours[name] != theirs[name])
        if not classes:
            continue
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == classes:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, classes])
    rows = "".join(f"{{0x{first:X}, 0x{last:X}, {classes}}}," for first, last, classes in ranges)
    HERE.write_text(HEAD % len(ranges) + rows + "\n}};\n\n}  // namespace serin::steps::text\n")


if __name__ == "__main__":
    main()
