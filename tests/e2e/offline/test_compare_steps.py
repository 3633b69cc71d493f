"""`serin compare` of models with steps: recorded pictures and texts go through the steps of both versions. The servers of both say what is right."""

import base64
import json

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from onnx import TensorProto, helper, numpy_helper

from conftest import DATA, ON_FREE_PORTS, Process, call, serin, wait_until
from routers import QUICK_HEALTH, Router, write_config
from test_compare_recorded import KEY
from test_steps import plain, save
from test_text_steps import NAMES, TABLE, TOKENIZER, WORDS

JPEG = (DATA / "images/baseline.jpg").read_bytes()
PNG = (DATA / "images/colours.png").read_bytes()
TURNED = (DATA / "images/turned_6.jpg").read_bytes()
GREY = plain((90, 90, 90))
RANDOM = np.random.default_rng(29)
HEAD = RANDOM.normal(size=(3, 4)).astype(np.float32)
PROJECTION = RANDOM.normal(size=(4, 4)).astype(np.float32)
LABELS = ["ant", "bee", "cat", "dog"]

LOOK = """
pre:
  - picture: image
    resize: {to: [24, 16], rule: %(rule)s}
    mean: [%(mean)s, 0.5, 0.5]
    std: 0.25
post:
  - classes: scores
    softmax: true
    top: %(top)s
    labels: labels.txt
"""
READ = """
pre:
  - text: sentence
    tokenizer: tokenizer.json
    max_length: %(length)s
post:
  - embedding: hidden
    pooling: %(pooling)s
    name: vector
"""
BOXES = "pre: [{picture: image, resize: [24, 16]}]\npost: [{detections: boxes, form: corners, score: 0.1, labels: labels.txt}]\n"


def changed(weights, by=1.5):
    other = weights.copy()
    other[1, 2] += by
    return other


def save_look(folder, head=HEAD, labels=LABELS, **settings):
    """Four scores of the means of the channels."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])
    nodes = [helper.make_node("ReduceMean", ["x", "axes"], ["means"], "average", keepdims=0), helper.make_node("MatMul", ["means", "w"], ["scores"], "head")]
    save(folder / "1/model.onnx", nodes, [("x", TensorProto.FLOAT, ["n", 3, "h", "w"])], [("scores", TensorProto.FLOAT, ["n", 4])], [axes, numpy_helper.from_array(head, "w")])
    (folder / "labels.txt").write_text("\n".join(labels))
    (folder / "serin.yaml").write_text(LOOK % {"rule": "pil.bilinear", "mean": 0.5, "top": 2, **settings})


def save_read(folder, projection=PROJECTION, lowercase=True, **settings):
    """A vector of the words, through a layer."""
    nodes = [helper.make_node("Gather", ["table", NAMES[0]], ["words"], "lookup"), helper.make_node("MatMul", ["words", "w"], ["hidden"], "layer"),
             helper.make_node("Identity", [NAMES[1]], ["mask"], "copy")]
    save(folder / "1/model.onnx", nodes, [(name, TensorProto.INT64, ["n", "seq"]) for name in NAMES[:2]],
         [("hidden", TensorProto.FLOAT, ["n", "seq", 4]), ("mask", TensorProto.INT64, ["n", "seq"])], [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(projection, "w")])
    tokenizer = {**TOKENIZER, "normalizer": {**TOKENIZER["normalizer"], "lowercase": lowercase}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "serin.yaml").write_text(READ % {"length": 8, "pooling": "mean", **settings})


def save_boxes(folder, right=12.0):
    """One box of each picture: its score is the mean of the pixels."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3])
    corners = numpy_helper.from_array(np.float32([[[2, 3, right, 20]]]), "corners")
    nodes = [helper.make_node("ReduceMean", ["x", "axes"], ["mean"], "average", keepdims=0), helper.make_node("Reshape", ["mean", "one"], ["score"], "shape"),
             helper.make_node("Sub", ["score", "score"], ["nothing"], "zero"), helper.make_node("Add", ["nothing", "corners"], ["place"], "place"),
             helper.make_node("Concat", ["place", "score"], ["boxes"], "join", axis=2)]
    save(folder / "1/model.onnx", nodes, [("x", TensorProto.FLOAT, ["n", 3, 24, 16])], [("boxes", TensorProto.FLOAT, ["n", 1, 5])],
         [axes, corners, helper.make_tensor("one", TensorProto.INT64, [3], [-1, 1, 1])])
    (folder / "labels.txt").write_text("thing")
    (folder / "serin.yaml").write_text(BOXES)


def save_models(models):
    save_look(models / "look")
    save_look(models / "look_head", changed(HEAD))
    save_look(models / "look_mean", mean=0.4)
    save_look(models / "look_both", changed(HEAD), mean=0.4)
    save_look(models / "look_rule", rule="cv2.linear")
    save_look(models / "look_labels", labels=[name.upper() for name in LABELS])
    save_look(models / "look_top", top=3)
    save_read(models / "read")
    save_read(models / "read_layer", changed(PROJECTION))
    save_read(models / "read_cased", lowercase=False)
    save_read(models / "read_short", length=3)
    save_read(models / "read_first", pooling="cls")
    save_boxes(models / "boxes")
    save_boxes(models / "boxes_near", right=12.0001)
    save_boxes(models / "boxes_wide", right=13.0)


def ask_all(router):
    """Each form in which pictures and texts come; only what is answered is recorded."""
    def post(path, body, **headers):
        answer = call(router.url + path, body, headers)
        assert answer.status == 200, (path, answer.body)

    post("/v2/models/look/infer", JPEG, **{"Content-Type": "image/jpeg", "x-request-id": "file"})
    post("/v1/models/look_v1:predict", {"instances": [{"b64": base64.b64encode(file).decode()} for file in (PNG, GREY)]}, **{"Content-Type": "application/json"})
    with triton.InferenceServerClient(router.url.removeprefix("http://")) as client:
        tensor = triton.InferInput("image", [3], "BYTES").set_data_from_numpy(np.array([GREY, TURNED, JPEG], dtype=object))
        client.infer("look", [tensor], request_id="three")
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{router.ports['http']}") as client:
        tensor = triton_grpc.InferInput("image", [1], "BYTES").set_data_from_numpy(np.array([JPEG], dtype=object))
        client.infer("look_grpc", [tensor], request_id="call")
    post("/v2/models/boxes/infer", JPEG, **{"Content-Type": "image/jpeg", "x-request-id": "file"})
    post("/v2/models/read/infer", "Hello world", **{"Content-Type": "text/plain", "x-request-id": "sentence"})
    post("/v2/models/read/infer", {"id": "rows", "inputs": [{"name": "sentence", "datatype": "BYTES", "shape": [2], "data": ["how Hello", "hello world"]}]},
         **{"Content-Type": "application/json"})
    post("/v2/models/read/generate", {"id": "generated", "sentence": "你好 World!"}, **{"Content-Type": "application/json"})


SERVICES = {"look": ("http", "/v2/models/look"), "look_v1": ("http", "/v1/models/look"), "look_grpc": ("grpc", "/v2/models/look"), "boxes": ("http", "/v2/models/boxes"),
            "read": ("http", "/v2/models/read")}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with models/, {service}.recording, their key, and `answers`: of each version to the same picture and sentence, by its server."""
    folder = tmp_path_factory.mktemp("recorded")
    save_models(folder / "models")
    (folder / "recording.key").write_text(KEY)
    (folder / "recording.key").chmod(0o600)
    with Process(folder, "serve", "--models", folder / "models", *ON_FREE_PORTS) as runtime:
        services = [{"name": name, "initial_stable": "1", "recording": {"file": str(folder / f"{name}.recording"), "key": str(folder / "recording.key"), "headers": ["x-request-id"]},
                     "versions": [{"name": "1", "endpoints": [{"url": f"{scheme}://127.0.0.1:{runtime.ports[scheme]}{mount}"}],
                                   "health": {**QUICK_HEALTH, "path": "/v2/health/ready"} if scheme == "http" else QUICK_HEALTH}]}
                    for name, (scheme, mount) in SERVICES.items()]
        with Router(folder, "route", "--drain-seconds", 0, "--config", write_config(folder, *services)) as router:
            wait_until(lambda: all(router.healthy("1", name) == 1 for name in SERVICES), 20, "healthy")
            ask_all(router)
            assert router.end() == 0
        answers = {}
        for model in (folder / "models").iterdir():
            answer = call(f"{runtime.url}/v2/models/{model.name}/infer", "Hello world" if model.name.startswith("read") else JPEG)
            assert answer.status == 200, answer.body
            answers[model.name] = {output["name"]: output["data"] for output in answer.json["outputs"]}
    return folder, answers


def compare(folder, service, canary, *more, code=1):
    done = serin("compare", folder / "models" / service.split("_")[0], folder / "models" / canary / "1", "--recording", folder / f"{service}.recording",
                 "--key", folder / "recording.key", "--json", *more)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code < 2 else done.stderr


def by_name(tensors):
    return {tensor["name"]: tensor for tensor in tensors}


def relative_error(actual, expected):
    return np.linalg.norm(np.float64(actual) - expected) / np.linalg.norm(np.float64(expected))


# --- Pictures -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("service, requests, rows", [("look", 2, [3, 1]), ("look_v1", 1, [2]), ("look_grpc", 1, [1]), ("boxes", 1, [1])])
def test_equal_versions_answer_recorded_pictures_alike(recorded, service, requests, rows):
    """In another folder, whose files have the same contents."""
    folder, _ = recorded
    found = compare(folder, service, service.split("_")[0], code=0)
    assert [one["rows"] for one in found["data_sets"]] == rows and len(rows) == requests
    assert "step_differences" not in found and "unfit" not in found
    for one in found["data_sets"]:
        assert one["match"] and one["different"] == 0 and one["equal"] > 1 and one["input_differences"] == [] and one["different_rows"] == 0
        assert all(answer["match"] and answer["step"].startswith("step 1 of post (") for answer in one["answers"]) and one["answers"]


def test_a_changed_weight_is_found_behind_the_pictures(recorded):
    folder, answers = recorded
    found = compare(folder, "look", "look_head", "--request", "file")
    one, = found["data_sets"]
    assert "step_differences" not in found and one["input_differences"] == []
    assert [(origin["node"], [weight["name"] for weight in origin["weights"]]) for origin in one["origins"]] == [("head", ["w"])]
    assert not by_name(one["outputs"])["scores"]["match"]
    stable, canary = answers["look"], answers["look_head"]
    label, score = by_name(one["answers"])["label"], by_name(one["answers"])["score"]
    assert label["mismatches"] == sum(a != b for a, b in zip(stable["label"], canary["label"]))
    assert score["relative_l2_error"] == pytest.approx(relative_error(canary["score"], stable["score"]), rel=1e-3) and not score["match"]


def test_rows_run_alone_and_the_worst_is_shown(recorded):
    folder, _ = recorded
    sets = compare(folder, "look", "look_head")["data_sets"]
    three = next(one for one in sets if one["inputs"].startswith("request three of"))
    file = next(one for one in sets if one["inputs"].startswith("request file of"))
    assert three["rows"] == three["different_rows"] == 3 and 0 <= three["row"] < 3
    error = lambda one: max(output["relative_l2_error"] for output in one["outputs"] + one["answers"])  # noqa: E731
    assert error(three) >= error(file) > 0, "its third row is that picture"


@pytest.mark.parametrize("canary, key, origins", [("look_mean", "'mean'", []), ("look_rule", "'resize'", []), ("look_both", "'mean'", ["head"])])
def test_other_steps_are_named_apart_from_the_nodes(recorded, canary, key, origins):
    """The nodes are compared on the same pixels, so only those of another weight differ."""
    folder, answers = recorded
    found = compare(folder, "look", canary, "--request", "file")
    assert found["step_differences"] == [{"step": "step 1 of pre (picture: image)", "what": key}]
    one, = found["data_sets"]
    pixels, = one["input_differences"]
    assert (pixels["name"], pixels["step"]) == ("x", "step 1 of pre (picture: image)")
    if key == "'mean'":
        assert pixels["mismatches"] == 24 * 16 and pixels["max_absolute_error"] == pytest.approx(0.1 / 0.25, rel=1e-5), "of the red channel alone"
    assert [origin["node"] for origin in one["origins"]] == origins
    score = by_name(one["answers"])["score"]
    assert score["relative_l2_error"] == pytest.approx(relative_error(answers[canary]["score"], answers["look"]["score"]), rel=1e-3)


def test_other_labels_are_a_difference_of_the_answers(recorded):
    folder, answers = recorded
    stable, canary = answers["look"]["label"], answers["look_labels"]["label"]
    found = compare(folder, "look", "look_labels", "--request", "file")
    one, = found["data_sets"]
    assert found["step_differences"] == [{"step": "step 1 of post (classes: scores)", "what": "'labels'"}]
    assert one["outputs"][0]["match"] and by_name(one["answers"])["label"]["why"] == f"2 of 2 strings differ, first at [0,0]: '{canary[0]}', expected '{stable[0]}'"
    longer, = compare(folder, "look", "look_top", "--request", "file")["data_sets"]
    assert by_name(longer["answers"])["score"]["why"] == "shape [1,3], expected [1,2]"


def test_boxes_are_equal_within_the_tolerance(recorded):
    """They are numbers in a text: the near one's differ in their last digits, the wide one's by a pixel."""
    folder, answers = recorded
    assert answers["boxes_near"] != answers["boxes"]
    assert compare(folder, "boxes", "boxes_near", code=0)["data_sets"][0]["answers"][0]["match"]
    one, = compare(folder, "boxes", "boxes_wide")["data_sets"]
    assert not one["answers"][0]["match"] and answers["boxes"]["detections"][0] in one["answers"][0]["why"]


def test_the_text_names_steps_first(recorded):
    folder, _ = recorded
    done = serin("compare", folder / "models/look", folder / "models/look_both", "--recording", folder / "look.recording", "--key", folder / "recording.key")
    assert done.returncode == 1, done.stderr
    places = [done.stdout.index(text) for text in ("the steps before and after the models differ:", "step 1 of pre (picture: image): 'mean'", "2 of 2 recorded requests",
                                                   "on the tensors of the reference", "input 'x', made by step 1 of pre (picture: image): largest difference 0.4",
                                                   "node 'head' (MatMul)", "output 'scores': largest", "made by step 1 of post (classes: scores)")]
    assert places == sorted(places) and "rows have other outputs; this is row" in done.stdout


# --- Texts --------------------------------------------------------------------------------------------------------------------------


def test_equal_versions_answer_recorded_texts_alike(recorded):
    folder, _ = recorded
    found = compare(folder, "read", "read", code=0)
    assert sorted(one["rows"] for one in found["data_sets"]) == [1, 1, 2] and "unfit" not in found and "step_differences" not in found


def test_a_changed_weight_is_found_behind_the_texts(recorded):
    folder, answers = recorded
    sets = compare(folder, "read", "read_layer")["data_sets"]
    assert [[origin["node"] for origin in one["origins"]] for one in sets] == [["layer"]] * 3
    sentence = next(one for one in sets if one["inputs"].startswith("request sentence of"))
    vector = by_name(sentence["answers"])["vector"]
    assert vector["step"] == "step 1 of post (embedding: hidden)"
    assert vector["relative_l2_error"] == pytest.approx(relative_error(answers["read_layer"]["vector"], answers["read"]["vector"]), rel=1e-3)


def test_another_tokenizer_makes_other_ids(recorded):
    """Words with capitals are unknown to it, and the others are not."""
    folder, answers = recorded
    found = compare(folder, "read", "read_cased")
    assert found["step_differences"] == [{"step": "step 1 of pre (text: sentence)", "what": "'tokenizer'"}]
    sets = {one["inputs"].split()[1]: one for one in found["data_sets"]}
    for one in sets.values():
        ids, = one["input_differences"]
        assert (ids["name"], ids["step"], ids["mismatches"]) == ("input_ids", "step 1 of pre (text: sentence)", 1) and one["different"] == 0
    assert (sets["rows"]["rows"], sets["rows"]["different_rows"], sets["rows"]["row"]) == (2, 1, 0), "the second has no capital"
    vector = by_name(sets["sentence"]["answers"])["vector"]
    assert vector["relative_l2_error"] == pytest.approx(relative_error(answers["read_cased"]["vector"], answers["read"]["vector"]), rel=1e-3)
    assert WORDS.index("hello") != WORDS.index("[UNK]")


def test_texts_of_another_length(recorded):
    folder, answers = recorded
    one, = compare(folder, "read", "read_short", "--request", "sentence")["data_sets"]
    assert [(tensor["name"], tensor["why"]) for tensor in one["input_differences"]] == [(name, "shape [1,3], expected [1,4]") for name in NAMES[:2]]
    assert one["origins"] == [] and by_name(one["outputs"])["hidden"]["why"] == "shape [1,3,4], expected [1,4,4]"
    vector = by_name(one["answers"])["vector"]
    assert vector["relative_l2_error"] == pytest.approx(relative_error(answers["read_short"]["vector"], answers["read"]["vector"]), rel=1e-3)


def test_another_pooling_is_named(recorded):
    folder, answers = recorded
    found = compare(folder, "read", "read_first", "--request", "sentence")
    assert found["step_differences"] == [{"step": "step 1 of post (embedding: hidden)", "what": "'pooling'"}]
    one, = found["data_sets"]
    assert all(output["match"] for output in one["outputs"]) and not one["answers"][0]["match"]
    assert by_name(one["answers"])["vector"]["relative_l2_error"] == pytest.approx(relative_error(answers["read_first"]["vector"], answers["read"]["vector"]), rel=1e-3)


# --- Samples ------------------------------------------------------------------------------------------------------------------------


def test_samples_are_what_clients_send_or_what_the_graphs_take(recorded, tmp_path):
    folder, _ = recorded
    (tmp_path / "test_data_set_0").mkdir()
    (tmp_path / "test_data_set_1").mkdir()
    texts = helper.make_tensor("sentence", TensorProto.STRING, [2], [b"hello world", b"Hello"])
    (tmp_path / "test_data_set_0/input_0.pb").write_bytes(texts.SerializeToString())
    for i in range(2):
        np.save(tmp_path / f"test_data_set_1/input_{i}.npy", np.ones((1, 3), np.int64))
    done = serin("compare", folder / "models/read", folder / "models/read_cased", "--data", tmp_path, "--json")
    assert done.returncode == 1, done.stderr
    sent, direct = json.loads(done.stdout)["data_sets"]
    assert (sent["inputs"], sent["rows"], sent["different_rows"], sent["row"]) == ("test_data_set_0", 2, 1, 1)
    assert direct["inputs"] == "test_data_set_1 (tensors of the graphs, without the steps)" and direct["match"] and "answers" not in direct
    case = tmp_path / "case"
    case.mkdir()
    (case / "input_0.jpg").write_bytes(JPEG)
    done = serin("compare", folder / "models/look", folder / "models/look_head", "--data", case, "--json")
    assert done.returncode == 1, done.stderr
    same, = compare(folder, "look", "look_head", "--request", "file")["data_sets"]
    assert json.loads(done.stdout)["data_sets"] == [{**same, "inputs": "case"}]
    made_up = serin("compare", folder / "models/look", folder / "models/look_both", "--dim", "h=4", "--dim", "w=4")
    assert made_up.returncode == 1 and "generated inputs (tensors of the graphs, without the steps): " in made_up.stdout and "answer" not in made_up.stdout


# --- Bad input ----------------------------------------------------------------------------------------------------------------------


def test_what_the_steps_cannot_do_is_named(recorded, tmp_path):
    folder, _ = recorded
    models = folder / "models"
    save_look(tmp_path / "tensors")
    (tmp_path / "tensors/serin.yaml").write_text("pre: []")
    save_look(tmp_path / "wrong")
    (tmp_path / "wrong/serin.yaml").write_text("pre: [{picture: image, to: none}]")
    (tmp_path / "joined/1").mkdir(parents=True)
    (tmp_path / "joined/serin.yaml").write_text("ensemble: {steps: [{model: look, inputs: {image: image}, outputs: {label: label}}]}")
    recording = ["--recording", folder / "look.recording", "--key", folder / "recording.key"]
    for canary, code, complaint in ((tmp_path / "tensors", 2, "clients of the versions send different inputs: input 'x' is str in the reference and f32 in the candidate"), (tmp_path / "wrong", 2, "step 'picture: image': the model has no input 'none'"),
                                    (tmp_path / "joined", 3, "the model is an ensemble, whose steps are other models: name one of them"),
                                    (models / "read", 2, "the candidate: input 'sentence': the text is not UTF-8")):
        done = serin("compare", models / "look", canary, *recording)
        assert done.returncode == code and complaint in done.stderr, (canary, done.returncode, done.stdout, done.stderr)


def test_a_model_named_by_its_file_says_that_its_steps_are_left_out(recorded):
    folder, _ = recorded
    file = folder / "models/look/1/model.onnx"
    done = serin("compare", file, file, "--recording", folder / "look.recording", "--key", folder / "recording.key")
    assert done.returncode == 2 and "the steps of its serin.yaml are left out; name the folder" in done.stderr and "none of 2 recorded requests fits" in done.stderr


def test_a_picture_that_only_one_version_takes_is_counted(recorded, tmp_path):
    folder, _ = recorded
    save_look(tmp_path / "small")
    (tmp_path / "small/serin.yaml").write_text((folder / "models/look/serin.yaml").read_text().replace("picture: image\n", "picture: image\n    max_pixels: 40\n"))
    done = serin("compare", folder / "models/look", tmp_path / "small", "--recording", folder / "look.recording", "--key", folder / "recording.key")
    assert done.returncode == 3 and "the candidate: input 'image'" in done.stderr and "pixels" in done.stderr, done.stderr
