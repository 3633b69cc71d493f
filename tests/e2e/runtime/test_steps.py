"""Steps before and after a model: clients send files of pictures, and get labels."""

import base64
import concurrent.futures
import json
import re
import subprocess
import time

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from conftest import DATA, call, serin, wait_until
from onnx import TensorProto, helper

IMAGES = DATA / "images"
PICTURE = (IMAGES / "colours.ppm").read_bytes()


def ppm(pixels):
    height, width, _ = pixels.shape
    return b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes()


def pixels_of(file):
    """The pixels of a PPM as our scripts write them."""
    magic, size, most, rest = file.split(b"\n", 3)
    width, height = map(int, size.split())
    assert (magic, most) == (b"P6", b"255")
    return np.frombuffer(rest, np.uint8).reshape(height, width, 3)


def save(path, nodes, inputs, outputs, constants=()):
    path.parent.mkdir(parents=True)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*each) for each in inputs],
                              [helper.make_tensor_value_info(*each) for each in outputs], list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def save_echo(folder, dtype=TensorProto.FLOAT, shape=("n", 3, "h", "w"), settings="pre: [{picture: image}]"):
    save(folder / "1/model.onnx", [helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, list(shape))], [("y", dtype, list(shape))])
    (folder / "serin.yaml").write_text(settings)


PAINT = """
pre:
  - picture: image
    mean: 0.5
    std: [0.5, 0.5, 0.5]
post:
  - classes: scores
    softmax: true
    top: 2
    labels: colours.txt
"""


def save_paint(folder, settings=PAINT, rows="n"):
    """Scores of red, green and blue are the means of the channels."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])
    save(folder / "1/model.onnx", [helper.make_node("ReduceMean", ["x", "axes"], ["scores"], keepdims=0)],
         [("x", TensorProto.FLOAT, [rows, 3, "h", "w"])], [("scores", TensorProto.FLOAT, [rows, 3])], [axes])
    (folder / "colours.txt").write_text("red\ngreen\r\nblue")
    (folder / "serin.yaml").write_text(settings)


def plain(colour, height=5, width=7):
    return ppm(np.full((height, width, 3), colour, np.uint8))


def expected_score(colours):
    """Of the best class of a plain picture."""
    powers = np.exp((np.float32(colours) / 255 - 0.5) / 0.5)
    return powers.max() / powers.sum()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory, start_once):
    models = tmp_path_factory.mktemp("models")
    save_echo(models / "echo", settings="""
pre:
  - picture: image
    to: x
    color: bgr
    mean: [0.485, 0.456, 0.406]
    std: [0.229, 0.224, 0.225]
""")
    save_echo(models / "bytes", TensorProto.UINT8, ("n", 12, 20, 3), "pre: [{picture: image, resize: {to: [14, 22], rule: pil.nearest}, crop: [12, 20]}]")
    save_echo(models / "framed", TensorProto.FLOAT16, (1, 3, 40, 40), """
pre:
  - picture: image
    resize: {to: 40, fit: inside, rule: cv2.linear, rounding: nearest}
    pad: {to: 40, value: 114, place: centre}
    scale: 1
""")
    save_echo(models / "tiny", settings="pre: [{picture: image, max_pixels: 100}]\nqueue_limit: 8")
    save_paint(models / "paint")
    save_paint(models / "paint_one", rows=1)
    return start_once("serve", "--models", models, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 0)


def infer(runtime, model, files, **options):
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("image", [len(files)], "BYTES")
        tensor.set_data_from_numpy(np.array(files, dtype=object))
        return client.infer(model, [tensor], **options)


def test_pixels_are_scaled_and_laid_out(runtime):
    flipped = ppm(pixels_of(PICTURE)[::-1, ::-1].copy())
    answer = infer(runtime, "echo", [PICTURE, flipped]).as_numpy("y")
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    expected = [((pixels_of(file)[..., ::-1] / np.float32(255) - mean) / std).transpose(2, 0, 1) for file in (PICTURE, flipped)]
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-6)


def test_bytes_are_resized_and_cropped(runtime):
    pixels = pixels_of(PICTURE)
    height, width, _ = pixels.shape
    rows = ((np.arange(14) + 0.5) * height / 14).astype(int)[1:13]
    columns = ((np.arange(22) + 0.5) * width / 22).astype(int)[1:21]
    np.testing.assert_array_equal(infer(runtime, "bytes", [PICTURE]).as_numpy("y")[0], pixels[rows][:, columns])


def test_a_picture_is_framed(runtime):
    answer = infer(runtime, "framed", [PICTURE]).as_numpy("y")[0].astype(np.float32)
    inner = round(40 * 21 / 33)
    top = (40 - inner) // 2
    assert (answer[:, :top] == 114).all() and (answer[:, top + inner:] == 114).all()
    assert answer[:, top:top + inner].std() > 10


@pytest.mark.parametrize("model", ["paint", "paint_one"])  # the second takes one row at a time
def test_pictures_become_labels(runtime, model):
    answer = infer(runtime, model, [plain((200, 10, 90)), plain((0, 250, 100), 9, 3), plain((1, 2, 3))])
    assert answer.as_numpy("label").tolist() == [[b"red", b"blue"], [b"green", b"blue"], [b"blue", b"green"]]
    np.testing.assert_allclose(answer.as_numpy("score")[:, 0], [expected_score(each) for each in [(200, 10, 90), (0, 250, 100), (1, 2, 3)]], rtol=1e-5)


def test_many_rows_keep_their_order(runtime):
    colours = np.eye(3, dtype=int)[np.random.default_rng(1).integers(0, 3, 300)] * 255
    answer = infer(runtime, "paint", [plain(colour, 2 + i % 5, 3) for i, colour in enumerate(colours)])
    names = np.array([b"red", b"green", b"blue"])[colours.argmax(1)]
    assert answer.as_numpy("label")[:, 0].tolist() == names.tolist()


def test_curl_sends_a_file(runtime, tmp_path):
    (tmp_path / "red.ppm").write_bytes(plain((255, 0, 0)))
    url = f"{runtime.url}/v2/models/paint/infer"
    ran = subprocess.run(["curl", "-sS", "--data-binary", f"@{tmp_path}/red.ppm", url], capture_output=True, check=True)
    outputs = {output["name"]: output for output in json.loads(ran.stdout)["outputs"]}
    assert outputs["label"]["data"] == ["red", "green"] and outputs["label"]["shape"] == [1, 2]
    assert outputs["score"]["datatype"] == "FP32"


def test_a_file_of_each_format(runtime):
    for file in sorted(IMAGES.iterdir()):
        if file.suffix == ".txt":
            continue
        answer = call(f"{runtime.url}/v2/models/paint/infer", file.read_bytes(), {"Content-Type": "image/x"})
        assert answer.status == 200, (file.name, answer.body)


def test_tensorflow_serving_and_kserve_send_base64(runtime):
    instances = [{"b64": base64.b64encode(plain(colour)).decode()} for colour in ((9, 9, 200), (200, 9, 8))]
    answer = call(f"{runtime.url}/v1/models/paint:predict", {"instances": instances})
    assert answer.status == 200, answer.body
    assert [row["label"][0] for row in answer.json["predictions"]] == ["blue", "red"]
    named = call(f"{runtime.url}/v1/models/paint:predict", {"instances": [{"image": instances[0]}]})
    assert named.json["predictions"][0]["label"][0] == "blue"


def test_grpc(runtime):
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        tensor = triton_grpc.InferInput("image", [2], "BYTES")
        tensor.set_data_from_numpy(np.array([plain((0, 200, 0)), plain((0, 0, 200))], dtype=object))
        assert client.infer("paint", [tensor]).as_numpy("label")[:, 0].tolist() == [b"green", b"blue"]


def test_metadata_is_that_of_the_clients(runtime):
    metadata = call(f"{runtime.url}/v2/models/paint").json
    assert metadata["inputs"] == [{"name": "image", "datatype": "BYTES", "shape": [-1]}]
    assert metadata["outputs"] == [{"name": "label", "datatype": "BYTES", "shape": [-1, 2]}, {"name": "score", "datatype": "FP32", "shape": [-1, 2]}]


BAD = [
    (b"", "the request is empty|JSON"),
    (b"GIF89a nothing that is decoded", "image"),
    ((IMAGES / "baseline.jpg").read_bytes()[:300], "JPEG"),
    (plain((1, 1, 1))[:-5], "image"),
]


@pytest.mark.parametrize("body, said", BAD)
def test_bad_pictures_are_refused_and_are_nobodys_failure(runtime, body, said):
    before = [runtime.metric("nv_inference_request_failure", model="paint"), runtime.metric("serin_bad_requests_total", model="paint")]
    answer = call(f"{runtime.url}/v2/models/paint/infer", body)
    assert answer.status == 400 and any(word in answer.error for word in said.split("|")), answer.body
    after = [runtime.metric("nv_inference_request_failure", model="paint"), runtime.metric("serin_bad_requests_total", model="paint")]
    assert after == [before[0], before[1] + 1]


def test_the_bad_row_of_several_is_named(runtime):
    with pytest.raises(triton.InferenceServerException, match=r"row 1: .*input 'image'"):
        infer(runtime, "paint", [plain((1, 2, 3)), b"no picture", plain((3, 2, 1))])


def test_rows_of_different_sizes_have_no_common_tensor(runtime):
    with pytest.raises(triton.InferenceServerException, match=r"output 0 of a part"):
        infer(runtime, "echo", [plain((1, 2, 3), 4, 4), plain((1, 2, 3), 5, 5)])


def test_a_picture_has_too_many_pixels(runtime):
    answer = call(f"{runtime.url}/v2/models/tiny/infer", plain((0, 0, 0), 11, 10))
    assert answer.status == 413 and "10 x 11" in answer.error and "100" in answer.error
    assert call(f"{runtime.url}/v2/models/tiny/infer", plain((0, 0, 0), 10, 10)).status == 200


def test_a_picture_smaller_than_the_crop(runtime, serve, tmp_path):
    save_echo(tmp_path / "m/cropped", settings="pre: [{picture: image, crop: 24}]")
    answer = call(f"{serve(tmp_path / 'm').url}/v2/models/cropped/infer", PICTURE)
    assert answer.status == 400 and "33x21" in answer.error and "24x24" in answer.error


def test_each_step_is_measured(runtime):
    infer(runtime, "paint", [plain((1, 2, 3))] * 3)
    for step in "decode", "resize", "normalize", "classes":
        assert runtime.metric("serin_step_seconds_count", model="paint", step=step) >= 3
    assert runtime.metric("serin_step_seconds_count", model="echo", step="classes") == 0


def big():
    return ppm(np.random.default_rng(3).integers(0, 256, (2500, 2500, 3), dtype=np.uint8))


def test_a_deadline_ends_the_wait_for_a_step(runtime):
    answer = call(f"{runtime.url}/v2/models/echo/infer", big(), {"x-serin-timeout-ms": "1"})
    assert answer.status == 504
    wait_until(lambda: runtime.metric("serin_model_in_flight_requests", model="echo") == 0, 20, "nothing in flight")


def test_too_many_wait(serve, tmp_path):
    save_echo(tmp_path / "m/slow", shape=("n", 3, 4, 4), settings="pre: [{picture: image, resize: {to: 4, rule: pil.lanczos}}]\nqueue_limit: 1")
    runtime, file = serve(tmp_path / "m"), big()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: call(f"{runtime.url}/v2/models/slow/infer", file), range(24)))
    statuses = {answer.status for answer in answers}
    assert statuses == {200, 429}
    assert all(answer.headers["Retry-After"] for answer in answers if answer.status == 429)


def test_new_labels_are_read(serve, tmp_path):
    save_paint(tmp_path / "m/paint")
    runtime = serve(tmp_path / "m")
    time.sleep(0.01)
    (tmp_path / "m/paint/colours.txt").write_text("rouge\nvert\nbleu\n")
    wait_until(lambda: call(f"{runtime.url}/v2/models/paint/infer", plain((255, 0, 0))).json["outputs"][0]["data"][0] == "rouge", 20, "new labels")


WRONG = {
    "pre: {picture: image}": "pre",
    "post: 7": "post",
    "pre: [{sound: voice}]": r"pre\[0\]",
    "pre: [{picture: image, colour: rgb}]": "colour",
    "pre: [{picture: image, color: cmyk}]": "color",
    "pre: [{picture: image, to: z}]": "no input 'z'",
    "pre: [{picture: image, resize: 0}]": "resize",
    "pre: [{picture: image, resize: {to: [3, 4], fit: shortest}}]": "shortest",
    "pre: [{picture: image, resize: {to: 4, rule: pil.cubic}}]": "pil.bicubic",
    "pre: [{picture: image, resize: {fit: exact}}]": "to",
    "pre: [{picture: image, mean: [1, 2]}]": "3 numbers",
    "pre: [{picture: image, std: 0}]": "std",
    "pre: [{picture: image, layout: nhwc}]": "nhwc",
    "pre: [{picture: image, color: gray}]": "layout",
    "pre: [{picture: image}, {picture: image}]": "two steps fill input 'x'",
    "pre: [{picture: image, shape_to: im_shape}]": "im_shape",
    "post: [{classes: logits}]": "no such output",
    "post: [{classes: scores, top: 4}]": "3 classes",
    "post: [{classes: scores, top: 0}]": "top",
    "post: [{classes: scores, labels: two.txt}]": "2 labels for 3 classes",
    "post: [{classes: scores, labels: ../paint/colours.txt}]": "must lie in the model's folder",
    "post: [{classes: scores, labels: none.txt}]": "none.txt",
    "post: [{classes: scores, softmax: true, sigmoid: true}]": "exclude",
    "post: [{classes: scores, label: score}]": "two outputs",
    "pre: [{picture: image}]\nsequences: {strategy: direct}": "sequences",
}


@pytest.mark.parametrize("settings, said", WRONG.items())
def test_bad_settings_are_refused_by_name(tmp_path, settings, said):
    save_paint(tmp_path / "paint", settings)
    (tmp_path / "paint/two.txt").write_text("a\nb\n")
    ran = serin("serve", "--check", "--models", tmp_path)
    assert ran.returncode != 0
    assert re.search(said, ran.stdout + ran.stderr), ran.stdout + ran.stderr


def test_the_servers_own_example_sends_a_file(serve, tmp_path):
    save_paint(tmp_path / "m/paint")
    runtime = serve(tmp_path / "m")
    line = re.search(r"curl (\S+) --data-binary @FILE", runtime.log)
    assert line, runtime.log
    assert call(line[1], plain((255, 0, 0))).status == 200


def test_load_sends_files_as_they_are(runtime, tmp_path):
    (tmp_path / "files").mkdir()
    for i, colour in enumerate([(1, 2, 3), (200, 1, 1)]):
        (tmp_path / f"files/{i}.ppm").write_bytes(plain(colour))
    for data in tmp_path / "files", tmp_path / "files/0.ppm":
        ran = serin("load", runtime.url, "--model", "paint", "--data", data, "--seconds", 0.3, "--json")
        report = json.loads(ran.stdout)
        assert ran.returncode == 0 and report["ok"] > 0 and report["errors"] == 0, ran.stdout
    refused = serin("load", runtime.url, "--model", "paint", "--data", tmp_path / "files", "--batch", 2)
    assert refused.returncode == 2 and "--batch" in refused.stderr
    empty = tmp_path / "none"
    empty.mkdir()
    assert "has no files" in serin("load", runtime.url, "--model", "paint", "--data", empty).stderr
    assert "--data FILE" in serin("load", runtime.url, "--model", "paint").stderr


def test_the_same_picture_is_answered_from_the_cache(serve, tmp_path):
    save_paint(tmp_path / "m/paint", PAINT + "response_cache: true\n")
    runtime = serve(tmp_path / "m", "--response-cache-bytes", 1 << 20)
    answers = [infer(runtime, "paint", [plain(colour)]).as_numpy("label").tolist() for colour in ((255, 0, 0), (0, 255, 0), (255, 0, 0))]
    assert answers == [[[b"red", b"green"]], [[b"green", b"red"]], [[b"red", b"green"]]]
    assert runtime.metric("nv_cache_num_hits_per_model", model="paint") == 1


def test_a_model_with_steps_is_a_step_of_an_ensemble(serve, tmp_path):
    save_paint(tmp_path / "m/paint")
    (tmp_path / "m/both").mkdir()
    (tmp_path / "m/both/serin.yaml").write_text("""
ensemble:
  steps:
    - {model: paint, inputs: {image: photo}, outputs: {label: name}}
""")
    runtime = serve(tmp_path / "m")
    with triton.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("photo", [2], "BYTES")
        tensor.set_data_from_numpy(np.array([plain((0, 0, 255)), plain((255, 0, 0))], dtype=object))
        assert client.infer("both", [tensor]).as_numpy("name")[:, 0].tolist() == [b"blue", b"red"]
    assert call(f"{runtime.url}/v1/models/both:predict", {"instances": [{"b64": "AAAA"}]}).status == 400
    for model in "paint", "both":
        assert runtime.metric("nv_inference_request_failure", model=model) == 0
        assert runtime.metric("serin_bad_requests_total", model=model) == 1


def test_the_configuration_of_a_model_with_steps(runtime):
    config = call(f"{runtime.url}/v2/models/paint/config").json
    assert config["input"][0]["name"] == "image" and config["input"][0]["data_type"] == "TYPE_STRING"
    assert [output["name"] for output in config["output"]] == ["label", "score"]


def test_steps_stand_around_an_ensemble(serve, tmp_path):
    save_paint(tmp_path / "m/inner", "{}")
    (tmp_path / "m/outer").mkdir()
    (tmp_path / "m/outer/colours.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "m/outer/serin.yaml").write_text(PAINT + "ensemble: {steps: [{model: inner, inputs: {x: pixels}, outputs: {scores: scores}}]}\n")
    assert infer(serve(tmp_path / "m"), "outer", [plain((0, 255, 0))]).as_numpy("label").tolist() == [[b"green", b"red"]]


def test_rows_of_a_model_that_does_not_batch(serve, tmp_path):
    save_paint(tmp_path / "m/paint")
    (tmp_path / "m/paint/config.pbtxt").write_text('platform: "onnxruntime_onnx"\nmax_batch_size: 0\ninstance_group [ { count: 2 kind: KIND_CPU } ]\n')
    answer = infer(serve(tmp_path / "m"), "paint", [plain((255, 0, 0)), plain((0, 255, 0)), plain((0, 0, 255))])
    assert answer.as_numpy("label")[:, 0].tolist() == [b"red", b"green", b"blue"]
