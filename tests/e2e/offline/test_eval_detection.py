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


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pictures whose first pixel is their number, their annotations, and a detector that looks its answers up by that number."""
    folder = tmp_path_factory.mktemp("coco")
    random = np.random.default_rng(11)
    images, annotations, table = [], [], np.zeros((64, MOST, 6), np.float32)
    table[:, :, 0] = -1
    for row in range(40):
        picture = np.zeros((SIDE, SIDE, 3), np.uint8)
        picture[..., 0] = row
        write_ppm(folder / f"{row}.ppm", picture)
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
    graph = helper.make_graph(
        [helper.make_node("Slice", ["image", "starts", "ends", "axes"], ["first"]), helper.make_node("Reshape", ["first", "one"], ["number"]),
         helper.make_node("Cast", ["number"], ["index"], to=TensorProto.INT64), helper.make_node("Gather", ["table", "index"], ["rows"]),
         helper.make_node("Reshape", ["rows", "flat"], ["boxes"])], "detector",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])], [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [MOST, 6])],
        [onnx.numpy_helper.from_array(np.array(value), name) for name, value in
         {"starts": [0, 0, 0], "ends": [1, 1, 1], "axes": [1, 2, 3], "one": [1], "flat": [MOST, 6]}.items()] + [onnx.numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), model / "1/model.onnx")
    (model / "labels.txt").write_text("\n".join(NAMES) + "\n")
    (model / "serin.yaml").write_text("pre:\n  - picture: file\n    scale: 1\npost:\n  - detections: boxes\n    form: suppressed\n    score: 0\n    labels: labels.txt\n")
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
