"""Makes the service `digit`: takes version 5 of models/digits, and draws sample pictures of digits that its training has not seen.

    python3 services/digit/make.py     # needs NumPy
"""

import pathlib
import shutil
import struct
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "models/digits"
SIDE = 8


def png(pixels):
    """A grey picture [height, width] as a file."""
    height, width = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def picture(digit, times=8):
    """Of 64 grey values 0..16: white ink on black, each value a square."""
    pixels = np.rint(digit.reshape(SIDE, SIDE) * (255 / 16)).astype(np.uint8)
    return png(pixels.repeat(times, 0).repeat(times, 1))


def main():
    shutil.copy(DIGITS / "5/model.onnx", HERE / "1/model.onnx")
    (HERE / "labels.txt").write_text("".join(f"{label}\n" for label in range(10)))
    held_out = np.load(DIGITS / "eval.npz")
    for label in range(10):
        first = held_out["pixels"][np.flatnonzero(held_out["label"] == label)[0]]
        (HERE / f"samples/{label}.png").write_bytes(picture(first))


if __name__ == "__main__":
    main()
