"""Texts that are drawn from tests/data/text/alphabets.txt. drawn_text.h draws the same ones in C++.

A line of that file is a kind of text, a weight, and items: code points as FROM-TO, characters as 4F60.597D, or "word. A text of a kind has 1 to 24 items,
each from a line that is drawn by its weight. The numbers come from xorshift64*, whose state begins with the number of the text.
"""

import pathlib

ALPHABETS = pathlib.Path(__file__).resolve().parents[3] / "data/text/alphabets.txt"
MASK = 2**64 - 1


class Random:
    def __init__(self, number):
        self.state = (number + 1) * 0x9E3779B97F4A7C15 & MASK

    def below(self, limit):
        self.state ^= self.state >> 12
        self.state = (self.state ^ self.state << 25) & MASK
        self.state ^= self.state >> 27
        return ((self.state * 0x2545F4914F6CDD1D & MASK) >> 33) % limit


class Alphabets:
    def __init__(self, path=ALPHABETS):
        self.kinds = {}
        for line in path.read_text("ascii").splitlines():
            kind, weight, *items = line.split()
            self.kinds.setdefault(kind, []).append((int(weight), items))

    def text(self, kind, number):
        random, lines = Random(number), self.kinds[kind]
        total = sum(weight for weight, _ in lines)
        return "".join(self.item(random, lines, total) for _ in range(1 + random.below(24)))

    @staticmethod
    def item(random, lines, total):
        at = random.below(total)
        for weight, items in lines:
            if at < weight:
                item = items[random.below(len(items))]
                if item[0] == '"':
                    return item[1:]
                if "-" in item:
                    first, last = (int(code, 16) for code in item.split("-"))
                    return chr(first + random.below(last - first + 1))
                return "".join(chr(int(code, 16)) for code in item.split("."))
            at -= weight
        raise AssertionError("weights")
