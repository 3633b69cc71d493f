"""Draws pages of text that a detector and a recognizer are trained and measured with: words, numbers, dates, addresses, in many fonts.

Fonts: the one that Pillow brings, and those of Debian's fonts-liberation, fonts-dejavu-core and fonts-lato.
Words: those of the help texts that come with Python. One in five is held out: only pages that measure contain it.

    python3 services/ocr/pages.py     # writes the sample pages and their texts again
"""

import dataclasses
import functools
import json
import pathlib
import random
import re
import zlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from pydoc_data import topics

HERE = pathlib.Path(__file__).resolve().parent
CHARACTERS = "".join(map(chr, range(33, 127)))  # classes 1 to 94; class 0 is the blank, class 95 the space
FONTS = pathlib.Path("/usr/share/fonts/truetype")
FAMILIES = {
    "liberation": ["LiberationSans-Regular", "LiberationSans-Bold", "LiberationSerif-Regular", "LiberationMono-Regular"],
    "dejavu": ["DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono"],
    "lato": ["Lato-Regular", "Lato-Bold"],
}
FILES = [""] + [str(FONTS / folder / f"{name}.ttf") for folder, names in FAMILIES.items() for name in names]  # "": Pillow's own
ALIKE = set("Il|`")  # equal in some fonts: only words tell them apart


@functools.cache
def font_of(file, size):
    return ImageFont.truetype(file, size) if file else ImageFont.load_default(size=size)


@functools.cache
def words(held_out):
    found = sorted(set(re.findall(r"\b[a-z]{2,12}\b", " ".join(topics.topics.values()).lower())))
    return [word for word in found if (zlib.crc32(word.encode()) % 5 == 0) == held_out]


def token(rng, held_out):
    word = lambda: rng.choice(words(held_out))
    digits = lambda low, high: "".join(rng.choice("0123456789") for _ in range(rng.randint(low, high)))
    kind = rng.random()
    if kind < 0.50:
        return word()
    if kind < 0.64:
        return word().capitalize()
    if kind < 0.70:
        return word().upper()
    if kind < 0.76:
        return digits(1, 6)
    if kind < 0.88:
        return word() + rng.choice(",.;:!?,.")
    return rng.choice([
        lambda: f"${digits(1, 3)}.{digits(2, 2)}", lambda: f"{digits(1, 3)},{digits(2, 2)}", lambda: f"{digits(1, 2)}%",
        lambda: f"20{digits(2, 2)}-{digits(2, 2)}-{digits(2, 2)}", lambda: f"{digits(2, 2)}.{digits(2, 2)}.{digits(4, 4)}",
        lambda: f"{digits(2, 2)}:{digits(2, 2)}", lambda: f"{digits(1, 2)}/{digits(1, 2)}", lambda: f"#{digits(2, 5)}",
        lambda: "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(rng.randint(2, 3))) + "-" + digits(2, 5),
        lambda: f"{word()}@{word()}.org", lambda: f"({word()})", lambda: f'"{word()}"', lambda: f"'{word()}'", lambda: f"[{word()}]",
        lambda: f"{{{word()}}}", lambda: f"<{word()}>", lambda: f"{word()}_{word()}", lambda: f"{word()}-{word()}",
        lambda: f"{word()}/{word()}", lambda: f"{word()}+{digits(1, 2)}={digits(1, 2)}", lambda: f"{digits(1, 2)}*{digits(1, 2)}",
        lambda: f"~{digits(1, 3)}", lambda: f"{digits(1, 1)}^{digits(1, 2)}", lambda: f"{word()} & {word()}", lambda: f"C:\\{word()}",
        lambda: f"`{word()}`", lambda: f"{word()} | {word()}",
    ])()


def line_of(rng, low, high, held_out=False):
    """A line of `low` to `high` characters."""
    wanted, line = rng.randint(low, high), ""
    while len(line) < wanted:
        line = f"{line} {token(rng, held_out)}".strip()
    return line[:high].strip() if len(line[:high].strip()) >= low else line_of(rng, low, high, held_out)


def drawn_characters(rng, low, high):
    """Any characters, so that rare ones are learned, too."""
    usual = [character for character in CHARACTERS if character not in ALIKE]
    line = "".join(rng.choice(usual) for _ in range(rng.randint(low, high)))
    return line[:3] + " " + line[3:] if len(line) > 5 and rng.random() < 0.5 else line


def colours(rng):
    """Of paper and ink, far enough apart to be read."""
    if rng.random() < 0.4:
        paper, ink = rng.randint(225, 255), rng.randint(0, 70)
        return ((paper,) * 3, (ink,) * 3)[:: rng.choice([1, 1, 1, -1])]
    light = lambda colour: 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]
    while True:
        paper, ink = (tuple(rng.randint(0, 255) for _ in range(3)) for _ in range(2))
        if abs(light(paper) - light(ink)) > 100:
            return paper, ink


def box_of(font, text):
    """Of what is drawn, and of a capital letter at its place: the height tells c from C."""
    left, top, right, bottom = font.getbbox(text)
    capital = font.getbbox("H")
    return left, min(top, capital[1]), right, max(bottom, capital[3])


def finish(rng, picture):
    """Light blur, light from one side, noise."""
    if rng.random() < 0.3:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.7)))
    pixels = np.asarray(picture, np.float32)
    numbers = np.random.default_rng(rng.getrandbits(32))
    if rng.random() < 0.5:
        pixels = pixels + np.linspace(-1, 1, pixels.shape[1], dtype=np.float32)[None, :, None] * rng.uniform(-18, 18)
    if rng.random() < 0.6:
        pixels = pixels + numbers.standard_normal(pixels.shape, np.float32) * rng.uniform(1, 8)
    return np.clip(pixels, 0, 255).astype(np.uint8)


@dataclasses.dataclass
class Line:
    text: str
    box: tuple[float, float, float, float]  # left, top, right, bottom


def page(rng, width, height, held_out=False, finish=finish):
    """RGB [height, width, 3] and its lines, which do not touch."""
    paper, ink = colours(rng)
    picture = Image.new("RGB", (width, height), paper)
    draw = ImageDraw.Draw(picture)
    lines, y, margin = [], rng.randint(8, 40), rng.randint(8, 48)
    while True:
        size = rng.randint(18, 44)
        x, highest = margin, 0
        for _ in range(rng.choice([1, 1, 1, 2])):  # columns
            font = font_of(rng.choice(FILES), size)
            fits = int((width - x - 16) / (0.6 * size))
            if fits < 6:
                continue
            text = line_of(rng, 4, rng.randint(6, min(fits, 40)), held_out)
            left, top, right, bottom = box_of(font, text)
            at = x - left + rng.choice([0, 0, rng.randint(0, 60)])
            box = (at + left, y, at + right, y + bottom - top)
            if box[2] > width - 8 or box[3] > height - 8:
                continue
            colour = ink
            if rng.random() < 0.15:  # a banner
                behind, colour = colours(rng)
                grow = rng.randint(3, max(4, size // 4))
                draw.rectangle((box[0] - 2 * grow, box[1] - grow, box[2] + 2 * grow, box[3] + grow), fill=behind)
            draw.text((at, y - top), text, fill=colour, font=font)
            lines.append(Line(text, box))
            x, highest = box[2] + 3 * size, max(highest, box[3] - box[1])
        y += (highest or size) + int(size * rng.uniform(0.45, 1.6))
        if rng.random() < 0.1:
            draw.line((margin, y - size // 5, width - margin, y - size // 5), fill=ink, width=rng.randint(1, 3))
        if y > height - 24:
            return finish(rng, picture), lines


def measured_page(seed):
    """A page that no training has seen."""
    rng = random.Random(f"measured {seed}")
    return page(rng, rng.randint(480, 960), rng.randint(400, 960), held_out=True)


BILL = [  # left, top, size, font, text
    (40, 28, 40, "lato/Lato-Bold", "Finch & Sons"), (40, 92, 20, "lato/Lato-Regular", "12 Canary Street, Port Albany"),
    (40, 124, 20, "lato/Lato-Regular", "Invoice #20417"), (430, 124, 20, "lato/Lato-Regular", "2026-11-27"),
    (40, 190, 24, "liberation/LiberationSerif-Regular", "Bird seed, 5 kg"), (430, 190, 24, "liberation/LiberationSerif-Regular", "$18.40"),
    (40, 230, 24, "liberation/LiberationSerif-Regular", "Wooden perch"), (430, 230, 24, "liberation/LiberationSerif-Regular", "$7.95"),
    (40, 270, 24, "liberation/LiberationSerif-Regular", "Cage cleaner"), (430, 270, 24, "liberation/LiberationSerif-Regular", "$12.00"),
    (40, 334, 28, "dejavu/DejaVuSans-Bold", "Total"), (430, 334, 28, "dejavu/DejaVuSans-Bold", "$38.35"),
    (40, 400, 18, "liberation/LiberationMono-Regular", "Thank you! Questions: help@finch.org"),
]


def bill():
    picture = Image.new("RGB", (600, 448), (250, 248, 240))
    draw = ImageDraw.Draw(picture)
    draw.line((40, 168, 560, 168), fill=(60, 60, 80), width=2)
    draw.line((40, 318, 560, 318), fill=(60, 60, 80), width=2)
    for left, top, size, font, text in BILL:
        draw.text((left, top), text, fill=(30, 30, 60), font=font_of(str(FONTS / f"{font}.ttf"), size))
    return picture, [text for *_, text in BILL]


def colourful():
    pixels, lines = page(random.Random("sample 6"), 640, 480, held_out=True, finish=lambda _, picture: np.asarray(picture))
    return Image.fromarray(pixels), [line.text for line in lines]


def main():
    for number, (picture, texts) in enumerate((bill(), colourful()), 1):
        picture.quantize(64).save(HERE / f"samples/page{number}.png", optimize=True)
        (HERE / f"samples/page{number}.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    main()
