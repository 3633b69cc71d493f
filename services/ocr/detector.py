"""Trains the detector of text lines and writes ../ocr_det/1/model.onnx: FP32 [n, 3, h, w] to a map of probabilities [n, 1, h, w].

    python3 services/ocr/detector.py --minutes 12

The map is that of DB (Real-time Scene Text Detection with Differentiable Binarization): 1 inside of a line, away from its edge, so that lines
never touch. The server grows each spot again by area x 1.5 / circumference; `shrink` is the exact inverse for rectangles. The edges of what a
small network draws are soft, so that 1.2 is enough (serin.yaml). Sides are multiples of 16.
"""

import argparse
import math
import pathlib
import random
import time

import numpy as np
import pages
import torch
from torch import nn

RATIO = 1.5
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # PaddleOCR's, applied to BGR


def convolution(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 5, 1, 2, groups=channels, bias=False), nn.BatchNorm2d(channels),
                                  nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())

    def forward(self, x):
        return x + self.body(x)


class Detector(nn.Module):
    """Three sizes of features, added up at a quarter of the picture's size, and drawn at its full size."""

    def __init__(self):
        super().__init__()
        self.quarter = nn.Sequential(convolution(3, 12, 2), convolution(12, 24, 2), Block(24))
        self.eighth = nn.Sequential(convolution(24, 48, 2), Block(48), Block(48))
        self.sixteenth = nn.Sequential(convolution(48, 64, 2), Block(64), Block(64), Block(64))
        self.from_quarter, self.from_eighth, self.from_sixteenth = nn.Conv2d(24, 32, 1), nn.Conv2d(48, 32, 1), nn.Conv2d(64, 32, 1)
        self.twice = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Sequential(Block(32), convolution(32, 16), nn.ConvTranspose2d(16, 8, 2, 2), nn.ReLU(), nn.ConvTranspose2d(8, 1, 2, 2))

    def scores(self, x):
        quarter = self.quarter(x)
        eighth = self.eighth(quarter)
        sixteenth = self.sixteenth(eighth)
        coarse = self.twice(self.from_sixteenth(sixteenth)) + self.from_eighth(eighth)
        return self.head(self.twice(coarse) + self.from_quarter(quarter))

    def forward(self, x):
        return self.scores(x).sigmoid()


def shrink(box):
    """d with RATIO (w - 2d)(h - 2d) / (2 (w + h - 4d)) = d: what the server grows the smaller box by."""
    left, top, right, bottom = box
    w, h = right - left, bottom - top
    a, b, c = 4 * (RATIO + 2), -2 * (RATIO + 1) * (w + h), RATIO * w * h
    d = (-b - math.sqrt(b * b - 4 * a * c)) / (2 * a)
    return left + d, top + d, right - d, bottom - d


def wanted(lines, width, height):
    """The map [height, width]; pixels that are partly inside get a part."""
    made = np.zeros((height, width), np.float32)
    for line in lines:
        left, top, right, bottom = shrink(line.box)
        inside = lambda low, high, size: np.clip(np.minimum(np.arange(size) + 1, high) - np.maximum(np.arange(size), low), 0, 1)
        made = np.maximum(made, inside(top, bottom, height)[:, None] * inside(left, right, width)[None])
    return made


def batch(rng, count, width=512, height=384):
    drawn = [pages.page(rng, width, height) for _ in range(count)]
    pixels = np.stack([(pixels[:, :, ::-1] / np.float32(255) - MEAN) / STD for pixels, _ in drawn]).transpose(0, 3, 1, 2)
    maps = np.stack([wanted(lines, width, height) for _, lines in drawn])[:, None]
    return torch.from_numpy(pixels.astype(np.float32)), torch.from_numpy(maps.astype(np.float32))


class Batches(torch.utils.data.IterableDataset):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        rng = random.Random(f"detector {self.seed}")
        while True:
            yield batch(rng, 4)


def loss_of(scores, maps):
    """Cross entropy, the hardest pixels more, and the overlap."""
    each = nn.functional.binary_cross_entropy_with_logits(scores, maps, reduction="none")
    hardest = each.flatten().topk(each.numel() // 16).values.mean()
    made = scores.sigmoid()
    overlap = 1 - 2 * (made * maps).sum() / (made.sum() + maps.sum() + 1)
    return each.mean() + 0.5 * hardest + overlap


def save(net, path):
    net.eval()
    torch.onnx.export(net, torch.zeros(2, 3, 96, 128), path, input_names=["x"], output_names=["map"], dynamo=False,
                      dynamic_axes={"x": {0: "batch", 2: "height", 3: "width"}, "map": {0: "batch", 2: "height", 3: "width"}})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--state", type=pathlib.Path, help="file of a training that goes on: read where it exists, and written")
    parser.add_argument("--seed", default="1", help="of what is drawn; another one for a training that goes on")
    parser.add_argument("--rate", type=float, default=4e-3, help="the highest learning rate")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    net, batches = Detector(), iter(torch.utils.data.DataLoader(Batches(options.seed), batch_size=None, num_workers=1))
    net.head[-1].bias.data[:] = -2  # most pixels are no text
    if options.state and options.state.exists():
        net.load_state_dict(torch.load(options.state))
    optimizer = torch.optim.AdamW(net.parameters(), options.rate, weight_decay=1e-2)
    begun, step = time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (60 * options.minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, (step + 1) / 50) * (1 - share) ** 0.9 + 1e-5
        pixels, maps = next(batches)
        loss = loss_of(net.scores(pixels), maps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            if options.state:
                torch.save(net.state_dict(), options.state)
            print(f"{time.monotonic() - begun:5.0f} s  step {step:5}  loss {loss.item():.4f}", flush=True)
    if options.state:
        torch.save(net.state_dict(), options.state)
    save(net, pages.HERE.parent / "ocr_det/1/model.onnx")


if __name__ == "__main__":
    main()
