"""Where models lie: names of folders, layouts, files that change, places that cannot be looked at; and when a server is ready that has nothing of what it should have."""

import contextlib
import os
import shutil
import urllib.parse

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton_grpc
from conftest import MODELS, ON_FREE_PORTS, Process, call, free_port, infer_body, serin, wait_until
from onnx import TensorProto, helper
from test_serve import EVALUATION, expected_scores

DIGITS = [MODELS / "digits" / str(version) / "model.onnx" for version in range(1, 4)]
ZEROS = infer_body([[0.0] * 64])
ON_TRITONS_PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]


def ready(runtime):
    """200, or why not."""
    answer = call(f"{runtime.url}/v2/health/ready")
    return answer.status if answer.status == 200 else answer.headers["x-serin-reason"]


def index(runtime):
    return {(entry["name"], entry.get("version"), entry.get("state")) for entry in call(f"{runtime.url}/v2/repository/index", "").json}


def load(runtime, model):
    return call(f"{runtime.url}/v2/repository/models/{model}/load", {})


def answers_as(runtime, version, model="digits"):
    """Whether it is that version of models/digits that answers."""
    pixels = EVALUATION["pixels"][:2]
    answer = call(f"{runtime.url}/v2/models/{model}/infer", infer_body(pixels.tolist()))
    return answer.status == 200 and np.allclose(np.reshape(answer.json["outputs"][0]["data"], (2, 10)), expected_scores(version, pixels), rtol=1e-4, atol=1e-5)


@pytest.fixture
def place(tmp_path):
    """place({"a/1/model.onnx": file or text}): a folder with these files."""
    def make(files=()):
        folder = tmp_path / "place"
        folder.mkdir(exist_ok=True)
        for name, content in dict(files).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(content, folder / name) if isinstance(content, os.PathLike) else (folder / name).write_text(content)
        return folder
    return make


@pytest.fixture
def triton(start):
    """triton(folder, flag...): a ready tritonserver."""
    return lambda folder, *flags: start("serve", "--as", "tritonserver", "--model-repository", folder, *ON_TRITONS_PORTS, *flags)


# --- readiness ------------------------------------------------------------------------------------------------------------------------

ONE_MODEL = {
    "kserve": lambda folder: ["--as", "kserve", "--model_name=iris", f"--model_dir={folder}", f"--http_port={free_port()}", "--grpc_port=0"],
    "tensorflow_model_server": lambda folder: ["--as", "tensorflow_model_server", "--model_name=iris", f"--model_base_path={folder}",
                                               f"--rest_api_port={free_port()}", "--port=0", "--file_system_poll_wait_seconds=0.2"],
    "ovms": lambda folder: ["--as", "ovms", "--model_name=iris", f"--model_path={folder}", f"--rest_port={free_port()}", "--port=0"],
    "name": lambda folder: [folder, "--name", "iris", *ON_FREE_PORTS],
}  # fmt: skip


@pytest.mark.parametrize("server", ONE_MODEL)
def test_who_has_nothing_of_the_one_model_it_was_started_for_is_not_ready(start, place, server):
    folder = place()
    runtime = start("serve", *ONE_MODEL[server](folder))
    assert "model 'iris': it has no version" in ready(runtime) and str(folder) not in ready(runtime)
    place({"1/model.onnx": DIGITS[0]})
    wait_until(lambda: ready(runtime) == 200, 10, "ready once it is there")
    assert answers_as(runtime, 1, "iris")


def test_a_model_of_another_kind_is_named_to_whoever_asks(start, place):
    runtime = start("serve", *ONE_MODEL["kserve"](place({"model.joblib": "x"})))
    assert "skl2onnx" in ready(runtime)
    assert "skl2onnx" in call(f"{runtime.url}/v2/models/iris/infer", ZEROS).error


NOTHING_OF_IT = {
    "a folder without versions": ({"iris/readme": "x"}, "model 'iris': it has no version"),
    "a version that is not there": ({"iris/1/model.onnx": DIGITS[0], "iris/config.pbtxt": "version_policy { specific { versions: 7 } }"},
                                    "model 'iris': its settings choose none of its versions"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING_OF_IT)
def test_who_found_models_and_loaded_none_is_not_ready(start, place, case):
    files, why = NOTHING_OF_IT[case]
    folder = place(files)
    assert why in ready(start("serve", folder, *ON_FREE_PORTS))
    done = serin("serve", "--check", folder)
    assert done.returncode == 1 and why.replace(":", ": FAILED:", 1) in done.stdout, done.stdout


@pytest.mark.parametrize("flags", [[], ["--control", "none"], ["--control", "explicit"]], ids=lambda flags: " ".join(flags))
def test_who_has_nothing_to_load_is_ready(start, place, flags):
    (place() / "lost+found").mkdir()  # of the file system, in the root of every volume
    assert ready(start("serve", place(), *ON_FREE_PORTS, *flags)) == 200


def test_a_model_that_is_to_be_loaded_and_is_not_there_keeps_triton_from_being_ready(triton, place):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    runtime = triton(folder, "--model-control-mode=explicit", "--load-model=iris", "--exit-on-error=false")
    assert "model 'iris': is to be loaded at the start, but is not there" in ready(runtime)
    assert load(runtime, "digits").status == 200 and ready(runtime) == 200


# --- places that cannot be looked at ----------------------------------------------------------------------------------------------------


@pytest.fixture
def bound(tmp_path):
    """bound(argument...): a server that is refused what permissions refuse, as root is not."""
    without = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    with contextlib.ExitStack() as stack:
        def begin(*arguments):
            return stack.enter_context(Process(tmp_path, "serve", *arguments, *ON_FREE_PORTS, "--poll-seconds", 0.05, run_by=without))
        yield begin


@pytest.mark.parametrize("forbidden", ["digits", "digits/1"])
@pytest.mark.parametrize("mode", [0o000, 0o600], ids=["no-list", "no-look"])
def test_what_cannot_be_looked_at_is_not_gone(bound, place, forbidden, mode):
    folder = place({"digits/1/model.onnx": DIGITS[0], "digits/config.pbtxt": "version_policy { all {} }", "other/1/model.onnx": DIGITS[1]})
    runtime = bound(folder)
    loads = runtime.log.count(": ready")
    (folder / forbidden).chmod(mode)
    subject = "model 'digits' version 1: " if forbidden == "digits/1" or mode else "model 'digits': "
    wait_until(lambda: subject in runtime.log and "ermission denied; what is loaded goes on serving" in runtime.log, 10, "said")
    place({"other/2/model.onnx": DIGITS[2]})
    wait_until(lambda: ("other", "2", "READY") in index(runtime), 10, "others come and go meanwhile")
    assert ("digits", "1", "READY") in index(runtime) and answers_as(runtime, 1) and ready(runtime) == 200
    assert runtime.log.count("Permission denied") == 1, "once, not at every look"
    (folder / forbidden).chmod(0o755)
    wait_until(lambda: "can be looked at again" in runtime.log, 10, "said")
    place({"other/3/model.onnx": DIGITS[2]})
    wait_until(lambda: ("other", "3", "READY") in index(runtime), 10, "another look")
    assert runtime.log.count(": ready") == loads + 2, "nothing has changed in it"
    shutil.copy(DIGITS[1], folder / "digits/1/new")
    (folder / "digits/1/new").rename(folder / "digits/1/model.onnx")
    wait_until(lambda: answers_as(runtime, 2), 10, "what changed is taken up")


@pytest.mark.parametrize("forbidden, why", [("digits", "its folder cannot be listed: Permission denied"),
                                            ("digits/1", "its folder cannot be listed: Permission denied"),
                                            ("digits/1/model.onnx", "Permission denied")])  # fmt: skip
def test_what_could_never_be_looked_at_is_called_so(bound, place, forbidden, why):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    (folder / forbidden).chmod(0)
    runtime = bound(folder, "--control", "explicit", "--load", "digits", "--admin-on-data-port")
    answer = load(runtime, "digits")
    reason = ready(runtime)
    (folder / forbidden).chmod(0o755)
    assert answer.status == 503 and why in answer.error and why in reason, (answer.body, reason)
    assert load(runtime, "digits").status == 200 and answers_as(runtime, 1)


def test_a_place_that_cannot_be_listed_at_the_start_is_refused(tmp_path, place):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    folder.chmod(0)
    try:
        with pytest.raises(AssertionError, match="(?s)ended with 2:.*cannot be listed: Permission denied"):
            Process(tmp_path, "serve", folder, *ON_FREE_PORTS, run_by=["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else [])
    finally:
        folder.chmod(0o755)


# --- what has changed ---------------------------------------------------------------------------------------------------------------------


def write_scaled(folder, factor, location):
    """y = x * k, where k lies in a file beside the model, or in a folder there."""
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    np.full(4, factor, "f4").tofile(folder / "new")
    (folder / "new").rename(folder / location)
    k = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        k.external_data.add(key=key, value=value)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["y"])], "scaled", [x], [y], [k])
    if not (folder / "model.onnx").exists():
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx")


def scaled(runtime):
    return call(f"{runtime.url}/v2/models/scaled/infer", infer_body([[1.0] * 4], "x")).json["outputs"][0]["data"][0]


@pytest.mark.parametrize("location", ["k.bin", "weights/k.bin", "weights/deep/k.bin"])
@pytest.mark.parametrize("control", ["poll", "explicit"])
def test_weights_that_change_are_loaded_wherever_they_lie(start, place, control, location):
    version = place() / "scaled/1"
    write_scaled(version, 2, location)
    runtime = start("serve", place(), "--control", control, "--load", "scaled", *ON_FREE_PORTS, "--poll-seconds", 0.05, "--admin-on-data-port")
    assert scaled(runtime) == 2
    write_scaled(version, 3, location)
    if control == "explicit":
        assert scaled(runtime) == 2 and load(runtime, "scaled").status == 200
        assert scaled(runtime) == 3
        loads = runtime.log.count(": ready")
        assert load(runtime, "scaled").status == 200 and runtime.log.count(": ready") == loads, "nothing has changed"
    wait_until(lambda: scaled(runtime) == 3, 10, "the other weights")


@pytest.mark.parametrize("control", ["poll", "explicit"])
def test_a_model_among_thousands_of_files_is_loaded_when_it_changes(start, place, control):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    for i in range(5000):  # as exports have it that put every tensor in a file
        (folder / f"digits/1/Constant_{i}").touch()
    runtime = start("serve", folder, "--control", control, "--load", "digits", *ON_FREE_PORTS, "--poll-seconds", 0.05, "--admin-on-data-port")
    shutil.copy(DIGITS[1], folder / "digits/1/.new")
    (folder / "digits/1/.new").rename(folder / "digits/1/model.onnx")
    if control == "explicit":
        assert load(runtime, "digits").status == 200 and answers_as(runtime, 2)
        loads = runtime.log.count(": ready")
        (folder / "digits/1/Constant_999").write_text("x")  # behind all that polling looks at
        assert load(runtime, "digits").status == 200 and runtime.log.count(": ready") == loads + 1
    wait_until(lambda: answers_as(runtime, 2), 20, "the other model")


def test_folders_that_lead_back_have_an_end(start, place):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    (folder / "digits/1/again").symlink_to("..")
    (folder / "digits/1/all").symlink_to("/")
    assert answers_as(start("serve", folder, *ON_FREE_PORTS), 1)


# --- versions -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--as", "tensorflow_model_server", "--model_name=half", "--port=0"], ["--as", "tritonserver", "--grpc-port=0", "--metrics-port=0"]],
                         ids=["tensorflow_model_server", "tritonserver"])
def test_a_version_is_the_number_that_its_folder_is_called(start, place, flags):
    folder = place({"half/00000123/model.onnx": DIGITS[0], "half/0/model.onnx": DIGITS[1], "half/config.pbtxt": "version_policy { all {} }"})
    where = [f"--model_base_path={folder / 'half'}", f"--rest_api_port={free_port()}"] if "--port=0" in flags else ["--model-repository", folder, "--http-port=0"]
    runtime = start("serve", *flags, *where)
    assert index(runtime) == {("half", "123", "READY"), ("half", "0", "READY")}
    assert answers_as(runtime, 1, "half") and answers_as(runtime, 1, "half/versions/123") and answers_as(runtime, 2, "half/versions/0")
    assert call(f"{runtime.url}/v2/models/half/versions/00000123").status == 404, "a version has one name"
    if "--port=0" in flags:
        for version, status in (("123", 200), ("0", 200), ("00000123", 404)):
            assert call(f"{runtime.url}/v1/models/half/versions/{version}:predict", {"instances": [[0.0] * 64]}).status == status


def test_of_two_folders_of_one_version_the_plain_one_is_taken(serve, place):
    runtime = serve(place({"digits/1/model.onnx": DIGITS[0], "digits/01/model.onnx": DIGITS[1], "digits/002/model.onnx": DIGITS[2]}))
    assert index(runtime) == {("digits", "1", "READY"), ("digits", "2", "READY")}
    assert answers_as(runtime, 1, "digits/versions/1") and "folder '01' is left out: '1' is version 1, too" in runtime.log


def test_version_0_can_be_chosen(serve, place):
    runtime = serve(place({"digits/0/model.onnx": DIGITS[0], "digits/1/model.onnx": DIGITS[1], "digits/serin.yaml": "versions: [0]\n"}))
    assert index(runtime) == {("digits", "0", "READY")} and answers_as(runtime, 1)


# --- names --------------------------------------------------------------------------------------------------------------------------------

NAMES = ["resnet@v2", "模型", "a b", 'quo"ted\\', "100%", "a+b=c", "x" * 255, "ü:ö", "$(id)'", "it's{}"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_p16_a_model_is_called_as_its_folder_is(triton, place, name):
    runtime = triton(place({f"{name}/1/model.onnx": DIGITS[0]}), "--exit-on-error=true", "--model-control-mode=explicit", "--load-model=*")
    assert index(runtime) == {(name, "1", "READY")}
    quoted = urllib.parse.quote(name, safe="")
    assert answers_as(runtime, 1, quoted) and call(f"{runtime.url}/v2/models/{quoted}").json["name"] == name
    shown = name.replace("\\", "\\\\").replace('"', '\\"')
    assert f'nv_inference_count{{model="{shown}",version="1"}} 2' in runtime.metrics()
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        tensor = triton_grpc.InferInput("pixels", [1, 64], "FP32")
        tensor.set_data_from_numpy(EVALUATION["pixels"][:1])
        assert client.infer(name, [tensor]).get_response().model_name == name
        assert client.get_model_config(name, as_json=True)["config"]["name"] == name
    assert call(f"{runtime.url}/v2/repository/models/{quoted}/unload", {}).status == 200
    assert load(runtime, quoted).status == 200 and answers_as(runtime, 1, quoted)


def test_the_line_for_a_terminal_asks_the_model_whatever_it_is_called(serve, place):
    runtime = serve(place({"$(touch x) '模/1/model.onnx": DIGITS[0]}))
    line = wait_until(lambda: next((line for line in runtime.log.splitlines() if line.startswith("curl ")), None), 10, "the line")
    assert "/v2/models/%24%28touch%20x%29%20%27%E6%A8%A1/infer -d " in line


def test_p16_names_that_are_none_are_left_out(serve, place):
    folder = place({"digits/1/model.onnx": DIGITS[0]})
    for name in (".git", "a\nb", "a\x7fb", "a\x1b[2Jb", "\x9b", os.fsdecode(b"\xff\xfe")):
        shutil.copytree(folder / "digits", folder / name)
    runtime = serve(folder)
    assert index(runtime) == {("digits", "1", "READY")} and runtime.log.count("is left out: a model's name has") == 6
    assert "\x1b" not in runtime.log and "\x9b" not in runtime.log


# --- layouts --------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["kserve", "ovms", "name"])
def test_the_only_model_right_in_its_folder_is_its_version_1(start, place, server):
    runtime = start("serve", *ONE_MODEL[server](place({"resnet50.onnx": DIGITS[0], "MLmodel": "x"})))
    assert ready(runtime) == 200 and answers_as(runtime, 1, "iris/versions/1")
    place({"2/model.onnx": DIGITS[1]})
    wait_until(lambda: answers_as(runtime, 2, "iris"), 10, "versions go before it")


def test_of_several_none_is_guessed(start, place):
    runtime = start("serve", *ONE_MODEL["kserve"](place({"a.onnx": DIGITS[0], "b.onnx": DIGITS[1]})))
    assert "more than one other model: a.onnx, b.onnx" in ready(runtime)


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_files_that_are_models_of_one_name_are_refused(tmp_path, check):
    """Exports are all called model.onnx."""
    for name, source in (("a", DIGITS[0]), ("b", DIGITS[1])):
        (tmp_path / name).mkdir()
        shutil.copy(source, tmp_path / name / "model.onnx")
    done = serin("serve", *check, tmp_path / "a/model.onnx", tmp_path / "b/model.onnx", *ON_FREE_PORTS)
    assert done.returncode == 2 and f"{tmp_path}/a/model.onnx and {tmp_path}/b/model.onnx are both model 'model': rename one" in done.stderr


@pytest.mark.parametrize("file, hint", [("models/model.onnx", "the folder 'models' in it looks like one"), ("iris/1/model.onnx", "the folder 'iris' in it looks like one")])
def test_one_that_lies_deeper_is_pointed_at(start, place, file, hint):
    runtime = start("serve", *ONE_MODEL["kserve"](place({file: DIGITS[0]})))
    assert "in the only .onnx file of its folder" in ready(runtime) and hint in ready(runtime)


def test_a_model_without_the_folder_of_its_version_is_told_where_it_belongs(serve, place):
    runtime = serve(place({"digits/model.onnx": DIGITS[0]}))
    assert ready(runtime).endswith("model 'digits': it has no version: a model lies in <name>/<version>/model.onnx; here it is 'model.onnx'")


def test_a_configuration_of_another_model_is_refused(triton, place):
    folder = place({"digits/1/model.onnx": DIGITS[0], "digits/config.pbtxt": 'name: "other"'})
    runtime = triton(folder, "--model-control-mode=explicit")
    why = "name is 'other': it must be that of the model's folder"
    assert why in load(runtime, "digits").error
    (folder / "digits/config.pbtxt").write_text('name: "digits"')
    assert load(runtime, "digits").status == 200
    answer = call(f"{runtime.url}/v2/repository/models/digits/load", {"parameters": {"config": '{"name": "other"}'}})
    assert answer.status == 400 and why in answer.error and answers_as(runtime, 1), "what was loaded goes on"


def test_one_model_of_its_own_folder_may_be_called_otherwise(start, place):
    runtime = start("serve", *ONE_MODEL["kserve"](place({"model.onnx": DIGITS[0], "config.pbtxt": 'name: "densenet"'})))
    assert answers_as(runtime, 1, "iris") and call(f"{runtime.url}/v2/models/iris/config").json["name"] == "iris"
