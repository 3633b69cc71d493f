#!/usr/bin/env python3
"""Makes tests/data/vision/detections.txt and readings.txt: outputs of detectors and recognisers, and what NumPy, torchvision and OpenCV make of them.

Run with numpy==1.26.4, torch==2.15.0, torchvision==0.29.2, opencv-python-headless==4.6.0.66. A case is a line of words; numbers below it are in order:

    head NAME FORM COLUMNS_FIRST OBJECTNESS ACTIVATION BACKGROUND EVERY_CLASS THRESHOLD SCALE_X SCALE_Y ROWS COLUMNS    then values, found
    final THRESHOLD ROWS                                                                                                then values, found
    suppress IOU MOST ACROSS                                                                                            then given, kept
    fit WIDTH HEIGHT FIT SOURCE = WIDTH HEIGHT LEFT TOP HASH x1 y1 x2 y2       (of the input; a box of the input in the source)
    ctc STEPS CLASSES SPACE                                                                                             then values, text
"""

import json
import pathlib

import cv2
import numpy as np
import torch
import torchvision

HERE = pathlib.Path(__file__).resolve().parents[2] / "data"
ORDER = {"centre": lambda b: np.stack([b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 0] + b[:, 2] / 2, b[:, 1] + b[:, 3] / 2], 1),
         "corners": lambda b: b,
         "corner_size": lambda b: np.stack([b[:, 0], b[:, 1], b[:, 0] + b[:, 2], b[:, 1] + b[:, 3]], 1)}  # fmt: skip
ACTIVATIONS = {"none": lambda x: x, "sigmoid": lambda x: (1 / (1 + np.exp(-x))).astype(np.float32), "softmax": lambda x: torch.tensor(x).softmax(1).numpy()}


class Lines:
    def __init__(self, name):
        self.path, self.lines = HERE / "vision" / name, []

    def add(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def values(self, name, numbers):
        numbers = np.asarray(numbers, dtype=np.float32).ravel()
        self.add(name, len(numbers), *(np.format_float_positional(x, unique=True, trim="-") if np.isfinite(x) else x for x in numbers))

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")
        print(self.path.name, self.path.stat().st_size)


def boxes_of(random, rows, form):
    """Crowds, so that boxes overlap: a few places, each with many boxes near it."""
    places = random.uniform(60, 580, (5, 2))
    centre = places[random.integers(0, len(places), rows)] + random.normal(0, 9, (rows, 2))
    size = random.uniform(40, 90, (rows, 2))
    corners = np.concatenate([centre - size / 2, centre + size / 2], 1)
    made = {"centre": np.concatenate([centre, size], 1), "corners": corners, "corner_size": np.concatenate([corners[:, :2], size], 1)}[form]
    return made.astype(np.float32).round(3)


def rows_of(boxes, scores, every_class, threshold, scale):
    """(label, score, corners) in order of the scores, as YOLOv5's non_max_suppression chooses them before it suppresses."""
    boxes = boxes * np.tile(np.float32(scale), 2)
    if every_class:
        index, label = np.nonzero(scores > threshold)
    else:
        label = scores.argmax(1)
        index = np.nonzero(scores.max(1) > threshold)[0]
        label = label[index]
    order = np.argsort(-scores[index, label], kind="stable")
    index, label = index[order], label[order]
    return np.concatenate([label[:, None], scores[index, label][:, None], boxes[index]], 1)


def heads(lines):
    random = np.random.default_rng(1)
    cases = [  # name, form, columns first, objectness, activation, background, every class, threshold, scale
        ("yolov8", "centre", 1, 0, "none", 0, 0, 0.25, (1, 1)),
        ("yolov5", "centre", 0, 1, "none", 0, 0, 0.25, (1, 1)),
        ("yolox_all", "centre", 0, 1, "sigmoid", 0, 1, 0.2, (1, 1)),
        ("ppyoloe", "corners", 1, 0, "none", 0, 1, 0.3, (1, 1)),
        ("rtdetr", "centre", 0, 0, "sigmoid", 0, 1, 0.5, (640, 480)),
        ("detr", "centre", 0, 0, "softmax", 1, 0, 0.3, (640, 480)),
        ("corner_size", "corner_size", 1, 0, "none", 0, 0, 0.5, (1, 1)),
    ]
    for name, form, first, objectness, activation, background, every, threshold, scale in cases:
        rows, classes = 70, 4 + background
        boxes = boxes_of(random, rows, form)
        if scale != (1, 1):
            boxes = (boxes / np.float32(640)).round(5)
        raw = (random.uniform(0, 1, (rows, classes)) if activation == "none" else random.normal(0, 2, (rows, classes))).astype(np.float32).round(4)
        object_score = (random.uniform(0, 1, (rows, 1)) if activation == "none" else random.normal(0, 2, (rows, 1))).astype(np.float32).round(4)
        scores = ACTIVATIONS[activation](raw)[:, : classes - background]
        if objectness:
            scores = scores * ACTIVATIONS[activation](object_score)
        parts = [boxes, object_score, raw] if objectness else [boxes, raw]
        joined = np.concatenate(parts, 1)
        lines.add("head", name, form, first, objectness, activation, background, every, threshold, *scale, *joined.shape)
        lines.values("values", joined.T if first else joined)
        lines.values("found", rows_of(ORDER[form](boxes), scores, every, threshold, scale))


def final(lines):
    random = np.random.default_rng(2)
    rows = np.concatenate([random.integers(-1, 3, (30, 1)), random.uniform(0, 1, (30, 1)).round(3), boxes_of(random, 30, "corners")], 1).astype(np.float32)
    lines.add("final", 0.4, len(rows))
    lines.values("values", rows)
    kept = rows[(rows[:, 0] >= 0) & (rows[:, 1] > np.float32(0.4))]
    lines.values("found", kept[np.argsort(-kept[:, 1], kind="stable")])


def suppressed(lines):
    random = np.random.default_rng(3)
    for iou, most, across in [(0.45, 300, 0), (0.7, 300, 0), (0.5, 300, 1), (0.3, 7, 0), (0.0, 300, 0)]:
        count = 120
        rows = np.concatenate([random.integers(0, 3, (count, 1)), random.uniform(0, 1, (count, 1)).round(2), boxes_of(random, count, "corners")], 1)
        rows = torch.tensor(rows.astype(np.float32))  # scores of two digits: some are equal
        labels = torch.zeros(count) if across else rows[:, 0]
        kept = rows[torchvision.ops.batched_nms(rows[:, 2:], rows[:, 1], labels, iou)[:most]]
        lines.add("suppress", iou, most, across)
        lines.values("given", rows)
        lines.values("kept", kept)
        if not across:  # the same from OpenCV, of each label by itself
            for label in range(3):
                mine = rows[rows[:, 0] == label].numpy()
                sizes = np.concatenate([mine[:, 2:4], mine[:, 4:] - mine[:, 2:4]], 1)
                chosen = cv2.dnn.NMSBoxes(sizes.tolist(), mine[:, 1].tolist(), 0.0, iou)
                theirs = {tuple(row) for row in mine[np.asarray(chosen).ravel()].tolist()}
                ours = {tuple(row) for row in kept.tolist() if row[0] == label}
                assert ours <= theirs and (most < 300 or ours == theirs), (iou, label)


def letterbox(picture, width, height):
    ratio = min(height / picture.shape[0], width / picture.shape[1])
    inner = round(picture.shape[1] * ratio), round(picture.shape[0] * ratio)
    across, down = width - inner[0], height - inner[1]
    across, down = across / 2, down / 2
    if picture.shape[1::-1] != inner:
        picture = cv2.resize(picture, inner, interpolation=cv2.INTER_LINEAR)
    top, bottom, left, right = round(down - 0.1), round(down + 0.1), round(across - 0.1), round(across + 0.1)
    return cv2.copyMakeBorder(picture, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114)), (ratio, ratio), left, top


def upper_left(picture, width, height):
    ratio = min(height / picture.shape[0], width / picture.shape[1])
    inner = int(picture.shape[1] * ratio), int(picture.shape[0] * ratio)
    padded = np.full((height, width, 3), 114, np.uint8)
    padded[: inner[1], : inner[0]] = cv2.resize(picture, inner, interpolation=cv2.INTER_LINEAR)
    return padded, (ratio, ratio), 0, 0


def stretched(picture, width, height):
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR), (width / picture.shape[1], height / picture.shape[0]), 0, 0


def fits(lines):
    box = np.float64([20, 11, 77, 60])
    ways = {"centred": letterbox, "upper_left": upper_left, "stretched": stretched}
    cases = [("centred", 96, 96), ("centred", 97, 65), ("centred", 40, 64), ("upper_left", 96, 96), ("upper_left", 100, 41), ("stretched", 64, 96),
             ("stretched", 100, 33)]  # fmt: skip
    for name in ("source_33.ppm", "source_66.ppm"):
        picture = cv2.imread(str(HERE / "images" / name))[:, :, ::-1]
        for fit, width, height in cases:
            made, scale, left, top = ways[fit](np.ascontiguousarray(picture), width, height)
            back = ((box - [left, top, left, top]) / np.tile(scale, 2)).clip(0, np.tile(picture.shape[1::-1], 2))
            value = 0xCBF29CE484222325
            for byte in made.tobytes():
                value = (value ^ byte) * 0x100000001B3 % 2**64
            lines.add("fit", width, height, fit, name, "=", made.shape[1], made.shape[0], left, top, f"{value:016x}", *(f"{x:.4f}" for x in back))


def readings(lines):
    """PaddleOCR's rule: repeats of the step before are merged, then the blank is left out."""
    random = np.random.default_rng(4)
    characters = ["a", "b", "中", "é", "", "ﬁ", "😀"]
    for steps, space in [(1, 1), (12, 1), (40, 1), (40, 0), (80, 1)]:
        named = ["", *characters, *([" "] if space else [])]
        logits = random.normal(0, 1.5, (steps, len(named)))
        logits[:, 0] += 1
        again = random.uniform(0, 1, steps) < 0.4
        for i in range(1, steps):
            if again[i]:
                logits[i] = logits[i - 1]
        values = torch.tensor(logits).softmax(1).numpy().astype(np.float32).round(5)
        index, value = values.argmax(1), values.max(1)
        keep = np.ones(steps, bool)
        keep[1:] = index[1:] != index[:-1]
        keep &= index != 0
        score = np.mean(value[keep]) if keep.any() else 0
        lines.add("ctc", steps, len(named), space)
        lines.values("values", values)
        lines.add("text", float(score), json.dumps("".join(named[i] for i in index[keep]), ensure_ascii=False))


def main():
    lines = Lines("detections.txt")
    for part in (heads, final, suppressed, fits):
        part(lines)
    lines.write()
    lines = Lines("readings.txt")
    readings(lines)
    lines.write()


main()
