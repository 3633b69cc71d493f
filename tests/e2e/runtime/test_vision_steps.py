"""Detectors and OCR: boxes and texts in pixels of the client's picture."""

import concurrent.futures
import json
import re
import shutil

import numpy as np
import pytest
import tritonclient.http as triton
from conftest import DATA, call, serin, wait_until
from onnx import TensorProto, helper
from test_steps import plain, ppm, save

BOXES = np.array([[10, 20, 30, 40], [11, 21, 31, 41], [40, 8, 60, 28]], np.float32)  # corners, in the model's 64 x 64 pixels
SCORES = np.array([[0.9, 0.1], [0.8, 0.1], [0.2, 0.7]], np.float32)


def save_detector(folder, tensor, settings):
    """Answers the same boxes for every picture."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3])
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
    rest = helper.make_tensor("rest", TensorProto.INT64, [1], [1])
    value = helper.make_tensor("value", TensorProto.FLOAT, [1, *tensor.shape], tensor.astype(np.float32).tobytes(), raw=True)
    nodes = [helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=0), helper.make_node("Mul", ["m", "zero"], ["z"]),
             helper.make_node("Unsqueeze", ["z", "rest"], ["z2"]), helper.make_node("Unsqueeze", ["z2", "rest"], ["z3"]),
             helper.make_node("Add", ["z3", "value"], ["y"])]
    save(folder / "1/model.onnx", nodes, [("x", TensorProto.FLOAT, ["n", 3, 64, 64])], [("y", TensorProto.FLOAT, ["n", *tensor.shape])], [axes, zero, rest, value])
    (folder / "labels.txt").write_text("cat\ndog\n")
    (folder / "serin.yaml").write_text(settings)


def centred(boxes):
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)


LETTERBOX = "pre: [{picture: image, resize: {to: 64, fit: inside, rule: cv2.linear, rounding: nearest}, pad: {to: 64, value: 114, place: centre}}]\n"
STRETCHED = "pre: [{picture: image, resize: [64, 64]}]\n"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory, start_once):
    models = tmp_path_factory.mktemp("models")
    save_detector(models / "yolov8", np.concatenate([centred(BOXES), SCORES], 1).T, LETTERBOX + "post: [{detections: y, transposed: true, labels: labels.txt}]")
    save_detector(models / "yolov5", np.concatenate([centred(BOXES), np.ones((3, 1)), SCORES], 1), LETTERBOX + "post: [{detections: y, objectness: true}]")
    save_detector(models / "relative", np.concatenate([centred(BOXES) / 64, SCORES], 1), STRETCHED + "post: [{detections: y, relative: true, iou: 1, score: 0.75}]")
    final = np.array([[1, 0.9, 5, 6, 25, 26], [0, 0.2, 1, 1, 9, 9], [-1, 0, 0, 0, 0, 0]], np.float32)
    save_detector(models / "final", final, STRETCHED + "post: [{detections: y, form: suppressed, labels: labels.txt, name: found}]")
    save_ocr(models)
    return start_once("serve", "--models", models, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 0)


def ask(runtime, model, file):
    answer = call(f"{runtime.url}/v2/models/{model}/infer", file)
    assert answer.status == 200, answer.body
    return json.loads(answer.json["outputs"][0]["data"][0])


@pytest.mark.parametrize("model", ["yolov8", "yolov5"])
def test_boxes_are_those_of_the_picture(runtime, model):
    found = ask(runtime, model, plain((9, 9, 9), 32, 64))  # not resized, 16 rows of frame above it
    assert [each["category_id"] for each in found] == [0, 1]
    assert [each.get("category") for each in found] == (["cat", "dog"] if model == "yolov8" else [None, None])
    np.testing.assert_allclose([each["bbox"] for each in found], [[10, 4, 20, 20], [40, 0, 20, 12]], atol=1e-3)
    np.testing.assert_allclose([each["score"] for each in found], [0.9, 0.7], rtol=1e-6)


def test_boxes_of_a_stretched_picture(runtime):
    found = ask(runtime, "relative", plain((9, 9, 9), 128, 640))
    np.testing.assert_allclose([each["bbox"] for each in found], [[100, 40, 200, 40], [110, 42, 200, 40]], atol=1e-2)


def test_rows_that_a_model_has_suppressed(runtime):
    assert ask(runtime, "final", plain((0, 0, 0), 30, 30)) == [{"bbox": [5, 6, 20, 20], "category_id": 1, "category": "dog", "score": pytest.approx(0.9)}]


EXPORTS = DATA / "vision/exports"


def test_paddles_own_description_of_a_classifier(serve, tmp_path):
    """Scores are the means of the channels, so that the colour decides."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])
    save(tmp_path / "m/clas/1/model.onnx", [helper.make_node("ReduceMean", ["x", "axes"], ["scores"], keepdims=0)],
         [("x", TensorProto.FLOAT, ["n", 3, 224, 224])], [("scores", TensorProto.FLOAT, ["n", 3])], [axes])
    shutil.copy(EXPORTS / "classifier.yml", tmp_path / "m/clas/1/inference.yml")
    runtime = serve(tmp_path / "m")
    assert "as inference.yml says" in runtime.log
    answer = call(f"{runtime.url}/v2/models/clas/infer", plain((250, 90, 10), 300, 400))
    outputs = {output["name"]: output["data"] for output in answer.json["outputs"]}
    assert outputs["label"] == ["tench, Tinca tinca", "goldfish"]
    np.testing.assert_allclose(outputs["score"], [(250 / 255 - 0.485) / 0.229, (90 / 255 - 0.456) / 0.224], rtol=1e-4)
    (tmp_path / "m/clas/serin.yaml").write_text("pre: []\n")
    wait_until(lambda: call(f"{runtime.url}/v2/models/clas").json["inputs"][0]["datatype"] == "FP32", 20, "tensors again")


def test_paddles_own_description_of_a_detector(serve, tmp_path):
    """Rows of the model are in pixels of the client's picture: the model gets the ratio, and this one answers it."""
    constant = helper.make_tensor("row", TensorProto.FLOAT, [1, 6], [1.0, 0.8, 0.0, 0.0, 30.0, 40.0])
    pads = helper.make_tensor("pads", TensorProto.INT64, [4], [0, 2, 0, 2])
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
    axes = helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3])
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    nodes = [helper.make_node("Pad", ["scale_factor", "pads"], ["padded"]), helper.make_node("ReduceMean", ["image", "axes"], ["m"], keepdims=0),
             helper.make_node("Unsqueeze", ["m", "axis"], ["m1"]), helper.make_node("Mul", ["m1", "zero"], ["z"]),
             helper.make_node("Add", ["padded", "row"], ["a"]), helper.make_node("Add", ["a", "z"], ["boxes"])]
    save(tmp_path / "m/det/1/model.onnx", nodes, [("image", TensorProto.FLOAT, [1, 3, 608, 640]), ("scale_factor", TensorProto.FLOAT, [1, 2])],
         [("boxes", TensorProto.FLOAT, [1, 6])], [constant, pads, zero, axes, axis])
    text = (EXPORTS / "detector.yml").read_text()
    (tmp_path / "m/det/1/infer_cfg.yml").write_text(text)
    runtime = serve(tmp_path / "m")
    assert ask(runtime, "det", plain((1, 2, 3), 304, 160)) == [
        {"bbox": [2, 4, 28, 36], "category_id": 1, "category": "bicycle", "score": pytest.approx(0.8)}]


def test_a_description_that_is_not_understood_leaves_tensors(serve, tmp_path):
    save_detector(tmp_path / "m/det", BOXES, "{}")
    (tmp_path / "m/det/1/inference.yml").write_text("PreProcess:\n  transform_ops:\n  - Rotate90: {}\n")
    runtime = serve(tmp_path / "m")
    assert "Rotate90" in runtime.log
    assert call(f"{runtime.url}/v2/models/det").json["inputs"][0]["datatype"] == "FP32"


def save_ocr(models):
    """A detector for which bright pixels are text, and a recognizer that reads colours, 16 pixels at a time."""
    constant = lambda name, values: helper.make_tensor(name, TensorProto.FLOAT, np.shape(values), np.float32(values).ravel())
    weights = constant("w", np.ones((1, 3, 1, 1)))
    save(models / "det/1/model.onnx", [helper.make_node("Conv", ["x", "w", "b"], ["s"]), helper.make_node("Sigmoid", ["s"], ["map"])],
         [("x", TensorProto.FLOAT, ["n", 3, "h", "w_"])], [("map", TensorProto.FLOAT, ["n", 1, "h", "w_"])], [weights, constant("b", [3.0])])
    # BGR in -1..1 to scores of blank, r, g, b
    colours = np.zeros((4, 3, 48, 16), np.float32)
    for character, channel in ((1, 2), (2, 1), (3, 0)):
        colours[character, channel] = 4 / (48 * 16)
        for other in {0, 1, 2} - {channel}:
            colours[character, other] = -4 / (48 * 16)
    save(models / "rec/1/model.onnx",
         [helper.make_node("Conv", ["x", "k", "b"], ["c"], strides=[48, 16]), helper.make_node("Squeeze", ["c", "two"], ["s"]),
          helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1]), helper.make_node("Softmax", ["t"], ["p"], axis=-1)],
         [("x", TensorProto.FLOAT, ["n", 3, 48, "w_"])], [("p", TensorProto.FLOAT, ["n", "t_", 4])],
         [constant("k", colours), constant("b", [3.0, 0, 0, 0]), helper.make_tensor("two", TensorProto.INT64, [1], [2])])
    (models / "ocr").mkdir()
    (models / "ocr/keys.txt").write_text("r\ng\nb\n")
    (models / "ocr/serin.yaml").write_text("ocr: {picture: page, detector: {model: det}, recognizer: {model: rec, dictionary: keys.txt, space: false}}")


COLOURS = {"r": (255, 0, 0), "g": (0, 255, 0), "b": (0, 0, 255)}


def page(lines, height=480, width=640):
    """Lines of coloured pieces, 32 x 32 pixels each, at (x, y)."""
    pixels = np.zeros((height, width, 3), np.uint8)
    for (x, y), text in lines.items():
        for at, character in enumerate(text):
            pixels[y:y + 32, x + at * 32:x + at * 32 + 32] = COLOURS[character]
    return ppm(pixels)


def test_texts_of_a_page(runtime):
    lines = {(40, 30): "rgb", (360, 34): "bg", (64, 200): "grbrg", (200, 400): "r"}
    found = ask(runtime, "ocr", page(lines))
    assert [each["text"] for each in found] == list(lines.values())
    for each, (x, y) in zip(found, lines, strict=True):
        corners = np.array(each["text_region"])
        assert abs(corners[:, 0].mean() - x - 16 * len(each["text"])) < 4 and abs(corners[:, 1].mean() - y - 16) < 4
        assert 0.5 < each["confidence"] <= 1


def test_pages_of_one_request_and_of_many(runtime):
    pages = [page({(10 + 5 * i, 20 + 11 * i): "rgb"[i % 3] * 1 + "rgb"[(i + 1) % 3] for _ in [0]}, 300 + 10 * i, 400) for i in range(12)]
    expected = ["rgb"[i % 3] + "rgb"[(i + 1) % 3] for i in range(12)]
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("page", [len(pages)], "BYTES")
        tensor.set_data_from_numpy(np.array(pages, dtype=object))
        texts = client.infer("ocr", [tensor]).as_numpy("texts")
    assert [json.loads(each)[0]["text"] for each in texts] == expected
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert [each[0]["text"] for each in pool.map(lambda file: ask(runtime, "ocr", file), pages)] == expected


def test_a_page_without_text(runtime):
    assert ask(runtime, "ocr", plain((0, 0, 0), 100, 100)) == []


def test_a_page_that_is_no_picture(runtime):
    before = runtime.metric("nv_inference_request_failure", model="ocr")
    answer = call(f"{runtime.url}/v2/models/ocr/infer", b"no picture at all")
    assert answer.status == 400 and "input 'page'" in answer.error
    assert runtime.metric("nv_inference_request_failure", model="ocr") == before
    assert runtime.metric("serin_bad_requests_total", model="ocr") >= 1


def test_members_and_steps_are_measured(runtime):
    ask(runtime, "ocr", page({(40, 30): "rgb", (40, 100): "r"}))
    for model in "det", "rec", "ocr":
        assert runtime.metric("nv_inference_request_success", model=model) >= 1
    for step in "read", "find":
        assert runtime.metric("serin_step_seconds_count", model="ocr", step=step) >= 1


def test_a_deadline_ends_a_page(runtime):
    answer = call(f"{runtime.url}/v2/models/ocr/infer", page({(40, y): "rgb" for y in range(10, 1400, 40)}, 1500, 1500), {"x-serin-timeout-ms": "1"})
    assert answer.status == 504
    wait_until(lambda: runtime.metric("serin_model_in_flight_requests", model="ocr") == 0, 20, "nothing in flight")
    assert ask(runtime, "ocr", page({(40, 30): "rgb"}))[0]["text"] == "rgb"


def test_ocr_waits_for_its_models(serve, tmp_path):
    models = tmp_path / "m"
    save_ocr(models)
    (models / "rec").rename(tmp_path / "rec")
    runtime = serve(models)
    assert call(f"{runtime.url}/v2/models/ocr/infer", page({})).status in (404, 503)
    assert "rec" in runtime.log
    (tmp_path / "rec").rename(models / "rec")
    wait_until(lambda: call(f"{runtime.url}/v2/models/ocr/infer", page({(40, 30): "b"})).status == 200, 20, "the recognizer")


WRONG = {
    "ocr: {detector: {model: det}}": "recognizer",
    "ocr: {detector: {model: det}, recognizer: {model: rec}}": "dictionary",
    "ocr: {detector: {model: det, thresh: 1}, recognizer: {model: rec, dictionary: keys.txt}}": "thresh",
    "ocr: {detector: {model: det}, recognizer: {model: rec, dictionary: none.txt}}": "none.txt",
    "ocr: {detector: {model: det}, recognizer: {model: rec, dictionary: short.txt, space: false}}": "recognizer",
    "ocr: {detector: {model: det}, recognizer: {model: rec, dictionary: keys.txt}}\npre: [{picture: x}]": "does not go with 'pre'",
    "ocr: {detector: {model: ocr}, recognizer: {model: rec, dictionary: keys.txt}}": "itself",
}


@pytest.mark.parametrize("settings, said", WRONG.items())
def test_bad_settings_are_refused_by_name(tmp_path, settings, said):
    save_ocr(tmp_path)
    (tmp_path / "ocr/short.txt").write_text("r\n")
    (tmp_path / "ocr/serin.yaml").write_text(settings)
    ran = serin("serve", "--check", "--models", tmp_path)
    assert ran.returncode != 0 and re.search(said, ran.stdout + ran.stderr), ran.stdout + ran.stderr
