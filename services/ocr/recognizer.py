"""Trains the recognizer of text lines and writes ../ocr_rec/1/model.onnx and keys.txt: FP32 [n, 3, 48, w] in -1..1 to probabilities [n, w / 4, 96].

    python3 services/ocr/recognizer.py --minutes 12

The place of each character is known, because the lines are drawn. The first steps learn it (cross entropy for each column), the others only
the text (CTC). Short lines are enough, because the network has no other memory than its 1-D convolutions.
"""

import argparse
import pathlib
import random
import time

import cv2
import numpy as np
import pages
import torch
from PIL import Image, ImageDraw
from torch import nn

HEIGHT, STRIDE, SPACE = 48, 4, len(pages.CHARACTERS) + 1
CLASS = {character: i + 1 for i, character in enumerate(pages.CHARACTERS)} | {" ": SPACE}


class Context(nn.Module):
    """Mixes neighbouring columns: [n, c, 1, t] to the same."""

    def __init__(self, channels, width=7):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, (1, width), padding=(0, width // 2), groups=channels, bias=False),
                                  nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())

    def forward(self, x):
        return x + self.body(x)


def convolution(inputs, outputs, size=3, stride=1, padding=1):
    return [nn.Conv2d(inputs, outputs, size, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.columns = nn.Sequential(
            *convolution(3, 16, stride=2),            # [n, 16, 24, w/2]
            *convolution(16, 32, stride=2),           # [n, 32, 12, w/4]
            *convolution(32, 64, stride=(2, 1)),      # [n, 64, 6, w/4]
            *convolution(64, 96, stride=(2, 1)),      # [n, 96, 3, w/4]
            *convolution(96, 128, (3, 1), 1, 0),      # [n, 128, 1, w/4]
            Context(128), Context(128), Context(128))
        self.classes = nn.Conv2d(128, SPACE + 1, 1)

    def scores(self, x):
        return self.classes(self.columns(x)).squeeze(2).transpose(1, 2)  # [n, t, classes]

    def forward(self, x):
        return self.scores(x).softmax(-1)


def example(rng):
    """Pixels [48, w, 3] BGR of a line as a detector crops it, its classes, and the middle of each character in pixels."""
    font = pages.font_of(rng.choice(pages.FILES), rng.randint(18, 44))
    kind, text = rng.random(), pages.line_of(rng, 4, 12)
    if kind < 0.2:
        text = pages.drawn_characters(rng, 3, 8)
    elif kind < 0.32:  # capital letters and digits are rare in texts
        text = text.upper()
    elif kind < 0.4:
        text = "".join(rng.choice("0123456789 .,-/:$") for _ in range(rng.randint(3, 8))).strip() or "0"
    while True:
        left, top, right, bottom = pages.box_of(font, text)
        height = bottom - top
        if right - left < 3.6 * height:
            break
        text = text[:-1].strip()
    margin = height
    paper, ink = pages.colours(rng)
    picture = Image.new("RGB", (right - left + 2 * margin, height + 2 * margin), paper)
    ImageDraw.Draw(picture).text((margin - left, margin - top), text, fill=ink, font=font)
    pixels = pages.finish(rng, picture)
    x0, x1 = margin - height * rng.uniform(-0.08, 0.4), margin + right - left + height * rng.uniform(-0.08, 0.4)
    y0, y1 = margin - height * rng.uniform(-0.05, 0.22), margin + height + height * rng.uniform(-0.05, 0.22)
    x0, x1, y0, y1 = int(round(x0)), int(round(x1)), int(round(y0)), int(round(y1))
    scale = HEIGHT / (y1 - y0)
    crop = cv2.resize(pixels[y0:y1, x0:x1, ::-1], (max(8, int(np.ceil((x1 - x0) * scale))), HEIGHT), interpolation=cv2.INTER_LINEAR)
    ends = [font.getlength(text[:i]) for i in range(len(text) + 1)]
    middles = [((a + b) / 2 + margin - left - x0) * scale for a, b in zip(ends, ends[1:])]
    return crop, [CLASS[character] for character in text], middles


def batch(rng, count):
    examples = [example(rng) for _ in range(count)]
    width = -(-max(crop.shape[1] for crop, *_ in examples) // 32) * 32
    pixels = torch.zeros(count, 3, HEIGHT, width)
    columns = torch.zeros(count, width // STRIDE, dtype=torch.long)
    for i, (crop, classes, middles) in enumerate(examples):
        pixels[i, :, :, : crop.shape[1]] = torch.from_numpy(crop.transpose(2, 0, 1).astype(np.float32)) / 127.5 - 1
        for each, middle in zip(classes, middles):
            columns[i, min(max(int(middle / STRIDE), 0), width // STRIDE - 1)] = each
    return pixels, columns, [classes for _, classes, _ in examples]


class Batches(torch.utils.data.IterableDataset):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        rng = random.Random(f"recognizer {self.seed}")
        while True:
            yield batch(rng, 32)


def read(probabilities):
    best = probabilities.argmax(-1).tolist()
    return [[c for i, c in enumerate(row) if c and (i == 0 or row[i - 1] != c)] for row in best]


def save(net, path):
    net.eval()
    torch.onnx.export(net, torch.zeros(2, 3, HEIGHT, 320), path, input_names=["x"], output_names=["probabilities"], dynamo=False,
                      dynamic_axes={"x": {0: "batch", 3: "width"}, "probabilities": {0: "batch", 1: "columns"}})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--state", type=pathlib.Path, help="file of a training that goes on: read where it exists, and written")
    parser.add_argument("--seed", default="1", help="of what is drawn; another one for a training that goes on")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    net, batches = Recognizer(), iter(torch.utils.data.DataLoader(Batches(options.seed), batch_size=None, num_workers=1))
    net.classes.bias.data[0] = 2  # most columns are blank
    if goes_on := options.state is not None and options.state.exists():
        net.load_state_dict(torch.load(options.state))
    optimizer = torch.optim.AdamW(net.parameters(), options.rate, weight_decay=1e-2)
    begun, step = time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (60 * options.minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, (step + 1) / 50) * (1 - share) ** 0.9 + 1e-5
        pixels, columns, texts = next(batches)
        scores = net.scores(pixels)
        if share < 0.25 and not goes_on:
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), columns.flatten())
        else:
            loss = nn.functional.ctc_loss(scores.log_softmax(-1).transpose(0, 1), torch.tensor(sum(texts, [])),
                                          torch.full((len(texts),), scores.shape[1]), torch.tensor(list(map(len, texts))), zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            if options.state:
                torch.save(net.state_dict(), options.state)
            exact = sum(a == b for a, b in zip(read(scores), texts))
            print(f"{time.monotonic() - begun:5.0f} s  step {step:5}  loss {loss.item():.4f}  exact {exact}/32", flush=True)
    if options.state:
        torch.save(net.state_dict(), options.state)
    save(net, pages.HERE.parent / "ocr_rec/1/model.onnx")
    pathlib.Path(pages.HERE / "keys.txt").write_text("".join(f"{character}\n" for character in pages.CHARACTERS))


if __name__ == "__main__":
    main()
