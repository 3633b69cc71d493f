#!/usr/bin/env python3
"""Makes tests/data/images: pictures as PIL and OpenCV write, decode and resize them. Needs pillow==11.3.0 and opencv-python-headless==4.12.0.88.

cases.txt has a line for each expected picture: its width, height, channels, and the FNV-1a hash of its pixels.

    decode COLOUR ORIENT FILE = WIDTH HEIGHT CHANNELS HASH
    resize RULE WIDTH HEIGHT FILE = WIDTH HEIGHT CHANNELS HASH
"""

import pathlib

import cv2
import numpy as np
import PIL.Image
import PIL.ImageOps

HERE = pathlib.Path(__file__).resolve().parents[2] / "data/images"
PIL_RULES = {"nearest": 0, "box": 4, "bilinear": 2, "hamming": 5, "bicubic": 3, "lanczos": 1}
CV2_RULES = {"nearest": cv2.INTER_NEAREST, "linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}
WRITTEN = {  # file: (format, mode, options)
    "baseline.jpg": ("JPEG", "RGB", {"quality": 90}),
    "half_chroma.jpg": ("JPEG", "RGB", {"quality": 70, "subsampling": 2}),
    "full_chroma.jpg": ("JPEG", "RGB", {"quality": 95, "subsampling": 0}),
    "progressive.jpg": ("JPEG", "RGB", {"progressive": True}),
    "grey.jpg": ("JPEG", "L", {}),
    "cmyk.jpg": ("JPEG", "CMYK", {}),
    "colours.png": ("PNG", "RGB", {}),
    "transparent.png": ("PNG", "RGBA", {}),
    "palette.png": ("PNG", "P", {}),
    "bits.png": ("PNG", "1", {}),
    "grey_transparent.png": ("PNG", "LA", {}),
    "lossy.webp": ("WEBP", "RGB", {"quality": 80}),
    "lossless.webp": ("WEBP", "RGB", {"lossless": True}),
    "colours.bmp": ("BMP", "RGB", {}),
    "palette.bmp": ("BMP", "P", {}),
    "colours.ppm": ("PPM", "RGB", {}),
    "grey.pgm": ("PPM", "L", {}),
}
SIZES = [(47, 29), (16, 16), (66, 10), (12, 44), (11, 7), (1, 1), (99, 63)]


def picture(height, width, seed):
    random = np.random.default_rng(seed)
    coarse = PIL.Image.fromarray(random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8))
    noise = random.integers(-12, 13, (height, width, 3))
    return PIL.Image.fromarray((np.asarray(coarse.resize((width, height), PIL.Image.BICUBIC)) + noise).clip(0, 255).astype(np.uint8))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


class Cases:
    def __init__(self):
        self.lines = []

    def add(self, case, pixels):
        height, width, channels = (*pixels.shape, 1)[:3]
        self.lines.append(f"{case} = {width} {height} {channels} {fnv1a(pixels.tobytes()):016x}")


def main():
    HERE.mkdir(exist_ok=True)
    for old in HERE.iterdir():
        old.unlink()
    cases, image = Cases(), picture(21, 33, seed=1)
    for file, (form, mode, options) in WRITTEN.items():
        made = image.convert("L").convert(mode) if mode == "LA" else image.convert(mode)
        made.save(HERE / file, form, **options)
        rgb = PIL.Image.open(HERE / file).convert("RGB")
        cases.add(f"decode rgb 1 {file}", np.asarray(rgb))
        if file == "baseline.jpg":
            cases.add(f"decode gray 1 {file}", np.asarray(rgb.convert("L")))
            cases.add(f"decode bgr 1 {file}", cv2.imread(str(HERE / file)))
    deep = (np.asarray(image)[..., 0].astype(np.uint16) * 257) ^ 0x5A
    PIL.Image.fromarray(deep).save(HERE / "deep.png")
    cases.add("decode bgr 1 deep.png", cv2.imread(str(HERE / "deep.png")))
    for orientation in range(1, 9):
        exif = PIL.Image.Exif()
        exif[0x0112] = orientation
        file = f"turned_{orientation}.jpg"
        image.save(HERE / file, "JPEG", exif=exif)
        cases.add(f"decode rgb 1 {file}", np.asarray(PIL.ImageOps.exif_transpose(PIL.Image.open(HERE / file))))
    cases.add("decode rgb 0 turned_6.jpg", np.asarray(PIL.Image.open(HERE / "turned_6.jpg")))
    larger = picture(42, 66, seed=2)
    for source, sizes in ((image, SIZES), (larger, [(33, 21), (22, 14), (22, 21), (25, 13)])):
        file = f"source_{source.width}.ppm"
        source.save(HERE / file)
        for width, height in sizes:
            for name, rule in PIL_RULES.items():
                cases.add(f"resize pil.{name} {width} {height} {file}", np.asarray(source.resize((width, height), rule)))
            for name, rule in CV2_RULES.items():
                cases.add(f"resize cv2.{name} {width} {height} {file}", cv2.resize(np.asarray(source), (width, height), interpolation=rule))
    (HERE / "cases.txt").write_text("\n".join(cases.lines) + "\n")


if __name__ == "__main__":
    main()
