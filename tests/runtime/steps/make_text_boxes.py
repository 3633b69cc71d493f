#!/usr/bin/env python3
"""Makes tests/data/vision/text_boxes.txt and its pictures: maps of a DB detector, and the boxes that OpenCV, Clipper and Shapely find in them by the published
rule of DBPostProcess; crops; inputs of detectors and recognisers.

Run with numpy==1.26.4, opencv-python-headless==4.6.0.66, pyclipper==1.4.0, shapely==2.2.0. `--speed` prints how long a large map takes instead. The lines:

    boxes MAP THRESHOLD BOX_THRESHOLD MOST UNCLIP DILATE SLOW WIDTH HEIGHT    then a line of numbers, nine a box: corners, score
    crop SOURCE x y x y x y x y = PICTURE
    cubic SOURCE WIDTH HEIGHT = PICTURE
    size WIDTH HEIGHT LIMIT SIDE MULTIPLE LARGEST = WIDTH HEIGHT
    detector SOURCE LIMIT SIDE = WIDTH HEIGHT HASH
    recogniser SOURCE HEIGHT WIDTH LARGEST WIDTHS... = WIDTH HASH             (widths of the batch's other pictures, 10 pixels high)
"""

import math
import pathlib
import sys
import time

import cv2
import numpy as np
import pyclipper
import shapely.geometry

HERE = pathlib.Path(__file__).resolve().parents[2] / "data"


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


class BoxFinder:
    """thresh, box_thresh, max_candidates, unclip_ratio, use_dilation, score_mode of PaddleOCR."""

    def __init__(self, threshold=0.3, box_threshold=0.6, most=1000, unclip=1.5, dilate=0, slow=0):
        self.threshold, self.box_threshold, self.most, self.unclip, self.dilate, self.slow = threshold, box_threshold, most, unclip, dilate, slow

    def __call__(self, probability, width, height):
        bits = (probability > self.threshold).astype(np.uint8)
        if self.dilate:
            bits = cv2.dilate(bits, np.ones((2, 2), np.uint8))
        contours, _ = cv2.findContours(bits * 255, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        found = []
        for contour in contours[: self.most]:
            corners, side = smallest_rectangle(contour)
            if side < 3:
                continue
            score = self.mean_within(probability, contour.reshape(-1, 2) if self.slow else corners)
            if self.box_threshold > score:
                continue
            grown = self.grow(corners)
            if len(grown) != 1:
                continue
            corners, side = smallest_rectangle(np.array(grown[0]).reshape(-1, 1, 2))
            if side < 5:
                continue
            corners[:, 0] = np.clip(np.round(corners[:, 0] / probability.shape[1] * width), 0, width)
            corners[:, 1] = np.clip(np.round(corners[:, 1] / probability.shape[0] * height), 0, height)
            found.append((corners.astype(np.int32), score))
        return as_read([(kept, score) for box, score in found if (kept := cleaned(box, width, height)) is not None])

    def mean_within(self, probability, polygon):
        height, width = probability.shape
        left, top = np.floor(polygon.min(0)).astype(np.int32).clip(0, (width - 1, height - 1))
        right, bottom = np.ceil(polygon.max(0)).astype(np.int32).clip(0, (width - 1, height - 1))
        mask = np.zeros((bottom - top + 1, right - left + 1), np.uint8)
        inside = (polygon - np.array([left, top], polygon.dtype)).astype(np.int32)
        cv2.fillPoly(mask, inside.reshape(1, -1, 2), 1)
        return cv2.mean(probability[top : bottom + 1, left : right + 1], mask)[0]

    def grow(self, corners):
        polygon = shapely.geometry.Polygon(corners)
        offset = pyclipper.PyclipperOffset()
        offset.AddPath(corners, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
        return offset.Execute(polygon.area * self.unclip / polygon.length)


def smallest_rectangle(points):
    rectangle = cv2.minAreaRect(points)
    a, b, c, d = sorted(cv2.boxPoints(rectangle), key=lambda point: point[0])
    left = (a, b) if b[1] > a[1] else (b, a)
    right = (c, d) if d[1] > c[1] else (d, c)
    return np.array([left[0], right[0], right[1], left[1]]), min(rectangle[1])


def cleaned(box, width, height):
    """Clockwise from the upper left corner, within the picture; None: too small."""
    box = box.astype(np.float32)
    total = box.sum(1)
    others = np.delete(box, (total.argmin(), total.argmax()), axis=0)
    difference = others[:, 1] - others[:, 0]
    ordered = np.array([box[total.argmin()], others[difference.argmin()], box[total.argmax()], others[difference.argmax()]])
    ordered = np.minimum(ordered.clip(0), (width - 1, height - 1))
    if int(np.linalg.norm(ordered[0] - ordered[1])) <= 3 or int(np.linalg.norm(ordered[0] - ordered[3])) <= 3:
        return None
    return ordered


def as_read(found):
    found = sorted(found, key=lambda pair: (pair[0][0][1], pair[0][0][0]))
    for i in range(len(found) - 1):
        for j in range(i, -1, -1):
            lower, upper = found[j + 1][0][0], found[j][0][0]
            if not (abs(lower[1] - upper[1]) < 10 and lower[0] < upper[0]):
                break
            found[j], found[j + 1] = found[j + 1], found[j]
    return found


def page(random, width, height, count, longest):
    """Lines of text as a detector sees them: soft rectangles at some angle."""
    made = np.zeros((height, width), np.float32)
    for _ in range(count):
        place = (random.uniform(0, width), random.uniform(0, height))
        size = (random.uniform(10, longest), random.uniform(4, 14))
        angle = random.choice([0, 0, random.uniform(-45, 45), 90])
        one = np.zeros_like(made)
        cv2.fillPoly(one, cv2.boxPoints((place, size, angle)).astype(np.int32).reshape(1, -1, 2), random.uniform(0.55, 1))
        made = np.maximum(made, one)
    return cv2.GaussianBlur(made, (5, 5), 0)


def maps(random):
    yield "page", page(random, 320, 240, 30, 90)
    rings = np.zeros((200, 200), np.float32)
    for radius in range(96, 4, -14):
        cv2.circle(rings, (100, 100), radius, 0.9, 5)
    cv2.rectangle(rings, (0, 0), (30, 12), 1.0, -1)
    cv2.rectangle(rings, (180, 190), (199, 199), 0.8, -1)
    yield "rings", rings
    noise = cv2.GaussianBlur(random.uniform(0, 1, (150, 220)).astype(np.float32), (0, 0), 4)
    yield "noise", ((noise - noise.min()) / (noise.max() - noise.min())).astype(np.float32) ** 2
    dots = np.zeros((330, 330), np.float32)
    for y in range(2, 330, 9):
        for x in range(2, 330, 9):
            dots[y : y + 5, x : x + 6] = 0.5 + 0.5 * ((x * 7 + y) % 11) / 11
    yield "dots", dots
    yield "empty", np.full((40, 60), 0.2, np.float32)


def boxes(lines, random):
    options = {"page": [{}, {"dilate": 1}, {"slow": 1}, {"threshold": 0.5, "box_threshold": 0.7, "unclip": 2.0}, {"box_threshold": 0.0}],
               "rings": [{}, {"slow": 1, "box_threshold": 0.2}, {"box_threshold": 0.3}], "noise": [{"box_threshold": 0.3}, {"box_threshold": 0.2, "dilate": 1}],
               "dots": [{}, {"most": 100}, {"most": 0}, {"most": 60, "unclip": 0.1}, {"most": 60, "unclip": 0.5}], "empty": [{}]}  # fmt: skip
    for name, values in maps(random):
        grey = (values * 255).round().astype(np.uint8)
        cv2.imwrite(str(HERE / f"vision/map_{name}.png"), grey)
        probability = grey.astype(np.float32) / np.float32(255)
        for chosen in options[name]:
            finder = BoxFinder(**chosen)
            for width, height in [(values.shape[1], values.shape[0]), (1000, 707), (130, 90)]:
                found = finder(probability, width, height)
                lines.append(f"boxes {name} {finder.threshold} {finder.box_threshold} {finder.most} {finder.unclip} {finder.dilate} {finder.slow} {width} {height}")
                lines.append(" ".join(["boxes", str(9 * len(found)), *(f"{x:g}" for box, score in found for x in [*box.ravel(), round(score, 5)])]))


def crops(lines):
    quads = [[10, 5, 50, 5, 50, 25, 10, 25], [5, 10, 55, 2, 58, 20, 8, 30], [12, 3, 20, 3, 20, 40, 12, 40], [-10, -6, 30, -6, 30, 12, -10, 12], [30, 2, 60, 20, 50, 37, 20, 18],
             [40, 30, 10, 30, 10, 10, 40, 10], [3, 4, 13.5, 4.25, 13.5, 9.75, 3, 9], [0, 0, 65, 0, 65, 41, 0, 41],
             [10, 5, 30, 5, 30, 35, 10, 35], [10, 5, 30, 5, 30, 34, 10, 34]]  # fmt: skip
    picture = cv2.imread(str(HERE / "images/source_66.ppm"))
    for number, quad in enumerate(quads):
        points = np.array(quad, np.float32).reshape(4, 2)
        width = int(max(np.linalg.norm(points[0] - points[1]), np.linalg.norm(points[2] - points[3])))
        height = int(max(np.linalg.norm(points[0] - points[3]), np.linalg.norm(points[1] - points[2])))
        matrix = cv2.getPerspectiveTransform(points, np.float32([[0, 0], [width, 0], [width, height], [0, height]]))
        made = cv2.warpPerspective(picture, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE, flags=cv2.INTER_CUBIC)
        made = np.rot90(made) if made.shape[0] / made.shape[1] >= 1.5 else made
        cv2.imwrite(str(HERE / f"vision/crop_{number}.png"), made)
        lines.append(f"crop source_66.ppm {' '.join(map(str, quad))} = crop_{number}.png")
    for number, (width, height) in enumerate([(40, 60), (100, 33), (66, 20)]):
        cv2.imwrite(str(HERE / f"vision/cubic_{number}.png"), cv2.resize(picture, (width, height), interpolation=cv2.INTER_CUBIC))
        lines.append(f"cubic source_66.ppm {width} {height} = cubic_{number}.png")


def detector_size(width, height, limit, side, multiple, largest):
    if limit == "max":
        ratio = side / max(width, height) if max(width, height) > side else 1.0
    elif limit == "min":
        ratio = side / min(width, height) if min(width, height) < side else 1.0
    else:
        ratio = side / max(width, height)
    width, height = int(width * ratio), int(height * ratio)
    if largest and max(width, height) > largest:
        ratio = largest / max(width, height)
        width, height = int(width * ratio), int(height * ratio)
    if limit == "long_up":
        return tuple((x + multiple - 1) // multiple * multiple for x in (width, height))
    return tuple(max(round(x / multiple) * multiple, multiple) for x in (width, height))


def inputs(lines):
    for width, height in [(640, 480), (1920, 1080), (1080, 1920), (100, 37), (16, 2000), (4032, 3024), (9000, 500), (48, 80), (720, 720)]:
        for rule in [("max", 960, 32, 0), ("min", 736, 32, 4000), ("long", 960, 32, 4000), ("long_up", 960, 128, 0), ("max", 736, 32, 0)]:
            lines.append(f"size {width} {height} {' '.join(map(str, rule))} = {' '.join(map(str, detector_size(width, height, *rule)))}")
    for source in ("source_66.ppm", "source_33.ppm"):
        picture = cv2.imread(str(HERE / "images" / source))[:, :, ::-1]
        for rule in [("max", 960, 32, 0), ("min", 64, 32, 0)]:
            padded = picture
            if sum(picture.shape[:2]) < 64:
                padded = np.zeros((max(32, picture.shape[0]), max(32, picture.shape[1]), 3), np.uint8)
                padded[: picture.shape[0], : picture.shape[1]] = picture
            size = detector_size(padded.shape[1], padded.shape[0], *rule)
            lines.append(f"detector {source} {rule[0]} {rule[1]} = {size[0]} {size[1]} {fnv1a(cv2.resize(np.ascontiguousarray(padded), size).tobytes())}")
        for height, width, largest, others in [(48, 320, 3200, []), (48, 320, 3200, [90]), (32, 20, 3200, [12, 15]), (48, 48, 60, [100])]:
            ratio = max([width / height, picture.shape[1] / picture.shape[0], *(other / 10 for other in others)])
            wide = min(int(height * ratio), largest)
            wanted = math.ceil(height * (picture.shape[1] / picture.shape[0]))
            made = cv2.resize(np.ascontiguousarray(picture), (min(wanted, wide), height)).astype(np.float32).transpose(2, 0, 1) / 255
            made -= 0.5
            made /= 0.5
            padded = np.zeros((3, height, wide), np.float32)
            padded[:, :, : made.shape[2]] = made
            lines.append(f"recogniser {source} {height} {width} {largest} {' '.join(map(str, others))} = {wide} {fnv1a(padded.tobytes())}")


def speed():
    values = page(np.random.default_rng(6), 1280, 960, 150, 200)
    finder = BoxFinder()
    cv2.setNumThreads(1)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        found = finder(values, 2560, 1920)
        times.append(time.perf_counter() - start)
    print(f"{len(found)} boxes, {sorted(times)[len(times) // 2] * 1e3:.2f} ms (median of {len(times)})")


def main():
    if "--speed" in sys.argv:
        speed()
        return
    lines, random = [], np.random.default_rng(5)
    boxes(lines, random)
    crops(lines)
    inputs(lines)
    (HERE / "vision/text_boxes.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "lines")


main()
