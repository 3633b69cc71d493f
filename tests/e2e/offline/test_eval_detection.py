"""serin eval of a detector against pycocotools, and of texts against the definition of WER and CER, through the steps of a model."""

import contextlib
import io
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from conftest import serin

NAMES = ["ant", "bee", "cat"]
SIDE = 8
MOST = 20  # boxes a picture


def write_ppm(path, pixels):
    path.write_bytes(b"P6\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes())


def save_lookup(path, table):
    """A model that answers table[n] to a picture whose first pixel is n."""
    rows, columns = table.shape[1:]
    constants = {"starts": [0, 0, 0], "ends": [1, 1, 1], "axes": [1, 2, 3], "one": [1], "flat": [rows, columns]}
    graph = helper.make_graph(
        [helper.make_node("Slice", ["image", "starts", "ends", "axes"], ["first"]), helper.make_node("Reshape", ["first", "one"], ["number"]),
         helper.make_node("Cast", ["number"], ["index"], to=TensorProto.INT64), helper.make_node("Gather", ["table", "index"], ["chosen"]),
         helper.make_node("Reshape", ["chosen", "flat"], ["answer"])], "lookup",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])], [helper.make_tensor_value_info("answer", TensorProto.FLOAT, [rows, columns])],
        [onnx.numpy_helper.from_array(np.array(value), name) for name, value in constants.items()] + [onnx.numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def write_numbered(folder, row):
    picture = np.zeros((SIDE, SIDE, 3), np.uint8)
    picture[..., 0] = row
    write_ppm(folder / f"{row}.ppm", picture)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pictures whose first pixel is their number, their annotations, and a detector that looks its answers up by that number."""
    folder = tmp_path_factory.mktemp("coco")
    random = np.random.default_rng(11)
    images, annotations, table = [], [], np.zeros((64, MOST, 6), np.float32)
    table[:, :, 0] = -1
    for row in range(40):
        write_numbered(folder, row)
        number = 1000 - row  # another order than that of the file
        images.append({"id": number, "file_name": f"{row}.ppm", "width": SIDE, "height": SIDE})
        for _ in range(random.integers(0, 7)):
            x, y, w, h = random.uniform(0, 4, 4).round(3) + [0, 0, 0.5, 0.5]
            annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": int(random.integers(1, 4)), "bbox": [x, y, w, h],
                                "area": w * h, "iscrowd": int(random.random() < 0.15)})
        mine = [entry for entry in annotations if entry["image_id"] == number]
        for at in range(random.integers(0, MOST)):
            label, box = int(random.integers(0, 3)), random.uniform(0, 4, 4) + [0, 0, 0.5, 0.5]
            if mine and random.random() < 0.7:  # near one of the truth
                chosen = mine[random.integers(len(mine))]
                label = chosen["category_id"] - 1
                box = np.array(chosen["bbox"]) + random.normal(scale=0.15, size=4)
            x, y, w, h = box[0], box[1], max(box[2], 0.1), max(box[3], 0.1)
            table[row, at] = [label, round(random.uniform(0.01, 1), 2), x, y, x + w, y + h]
    (folder / "instances.json").write_text(json.dumps({
        "images": images, "annotations": annotations, "categories": [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)]}))
    model = folder / "detector"
    (model / "1").mkdir(parents=True)
    save_lookup(model / "1/model.onnx", table)
    (model / "labels.txt").write_text("\n".join(NAMES) + "\n")
    (model / "serin.yaml").write_text("pre:\n  - picture: file\n    scale: 1\npost:\n  - detections: answer\n    form: suppressed\n    score: 0\n    labels: labels.txt\n")
    return folder


@pytest.fixture(scope="module")
def answers(data, tmp_path_factory):
    """What the model answers for each picture, by serin predict."""
    out = tmp_path_factory.mktemp("answers") / "out.jsonl"
    done = serin("predict", data / "detector", data / "instances.json", out, "--keep", "image_id")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in out.read_text().splitlines()]


def pycocotools_says(data, answers):
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(data / "instances.json"))
        found = [{"image_id": row["image_id"], "category_id": NAMES.index(box["category"]) + 1, "bbox": box["bbox"], "score": box["score"]}
                 for row in answers for box in json.loads(row["detections"])]
        evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return dict(zip(("map", "map50", "map75"), evaluation.stats))


def test_precision_is_that_of_pycocotools(data, answers):
    wanted = pycocotools_says(data, answers)
    assert 0.1 < wanted["map"] < wanted["map50"] < 0.9  # a case that tells them apart
    done = serin("eval", data / "detector", data / "instances.json", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["task"] == "detection" and report["label"] == "annotations" and report["rows"] == 40
    for name, value in wanted.items():
        assert report["metrics"][name]["value"] == pytest.approx(value, abs=1e-6), name
        assert report["metrics"][name]["low"] < value < report["metrics"][name]["high"]


def test_a_detector_is_compared_by_resampling(data):
    done = serin("eval", data / "detector", data / "instances.json", "--against", data / "detector", "--no-worse-by", "1pt", "--metric", "map50", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["comparison"]["verdict"] == "no worse"


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, before = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
    return row[-1]


def test_errors_of_texts_are_those_of_the_definition(tmp_path):
    random, letters = np.random.default_rng(4), "abc\u00e9"
    texts = ["".join(random.choice(list(letters + "  "), 10)).strip() or "a" for _ in range(30)]
    truth = ["".join(random.choice(list(letters)) if random.random() < 0.2 else c for c in text).strip() or "b" for text in texts]
    table = np.zeros((64, 20, 6), np.float32)  # blank, the letters, a space
    table[:, :, 0] = 0.5
    (tmp_path / "pages").mkdir()
    for row, text in enumerate(texts):
        for at, letter in enumerate(text):  # a blank between letters, so that equal ones stay two
            table[row, 2 * at, 1 + (letters + " ").index(letter)] = 1
        write_numbered(tmp_path / "pages", row)
    (tmp_path / "reader/1").mkdir(parents=True)
    save_lookup(tmp_path / "reader/1/model.onnx", table)
    (tmp_path / "reader/letters.txt").write_text("\n".join(letters) + "\n")
    (tmp_path / "reader/serin.yaml").write_text("pre:\n  - picture: file\n    scale: 1\npost:\n  - ctc: answer\n    dictionary: letters.txt\n")
    (tmp_path / "labels").mkdir()
    done = serin("predict", tmp_path / "reader", tmp_path / "pages", tmp_path / "out.jsonl", "--keep", "path")
    assert done.returncode == 0, done.stderr
    said = {row["path"]: row["text"] for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert said == {f"{row}.ppm": text for row, text in enumerate(texts)}
    for row, text in enumerate(truth):  # the label is the folder's name
        folder = tmp_path / "labels" / text
        folder.mkdir(exist_ok=True)
        write_numbered(folder, row)
    done = serin("eval", tmp_path / "reader", tmp_path / "labels", "--json", "--work", tmp_path / "work")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["task"] == "text" and report["rows"] == 30
    words = [(a.split(), b.split()) for a, b in zip(truth, texts)]
    wanted = {"wer": sum(distance(*pair) for pair in words) / sum(len(a) for a, _ in words),
              "cer": sum(map(distance, truth, texts)) / sum(map(len, truth)), "exact": np.mean([a == b for a, b in zip(truth, texts)])}
    for name, value in wanted.items():
        assert report["metrics"][name]["value"] == pytest.approx(value), name
