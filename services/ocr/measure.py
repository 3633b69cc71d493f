"""Draws pages with words that no training has seen, lets a running server read them, and counts the lines that are read exactly.

    build/serin serve services                       # in another terminal
    python3 services/ocr/measure.py --pages 100
"""

import argparse
import io
import json
import urllib.request

import pages
from PIL import Image


def read(url, pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v2/models/ocr/infer", data=file.getvalue())) as answer:
        return json.loads(json.load(answer)["outputs"][0]["data"][0])


def inside(box, found):
    x, y = (sum(corner[axis] for corner in found["text_region"]) / 4 for axis in (0, 1))
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print lines that were read otherwise")
    options = parser.parse_args()
    drawn = single = exact = more = 0
    for seed in range(options.first, options.first + options.pages):
        pixels, lines = pages.measured_page(seed)
        found = read(options.url, pixels)
        more += sum(not any(inside(line.box, each) for line in lines) for each in found)
        for line in lines:
            texts = [each["text"] for each in found if inside(line.box, each)]
            drawn, single, exact = drawn + 1, single + (len(texts) == 1), exact + (texts == [line.text])
            if options.verbose and texts != [line.text]:
                print(f"page {seed}: {line.text!r} read as {texts}")
    print(f"{options.pages} pages, {drawn} lines: {single} found as one line ({single / drawn:.2%}), {exact} read exactly ({exact / drawn:.2%}); "
          f"{more} texts where there are none")


if __name__ == "__main__":
    main()
