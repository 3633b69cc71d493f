"""Model files that are no models: each is FAILED with a reason that helps, and the models beside it never notice.

tests/data/bad/README.md says which words each broken file's error must hold; every file is held to it here.
"""

import os
import pathlib
import re
import shutil
import types

import onnx
import pytest

from conftest import DATA, MODELS, ON_FREE_PORTS, call, infer_body, serin

BAD = DATA / "bad"
ZEROS = infer_body([[0.0] * 64])
GOOD = MODELS / "digits/1/model.onnx"


def table():
    """{file: (row, the words in backticks)} from the README."""
    row = re.compile(r"^\| (\w+\.onnx) \| (\w+) \| (.*) \|$", re.MULTILINE)
    return {name: (number, re.findall(r"`([^`]*)`", says), says) for name, number, says in row.findall((BAD / "README.md").read_text())}


TABLE = table()


def test_the_table_has_every_file():
    assert set(TABLE) == {path.name for path in BAD.glob("*.onnx")}


@pytest.fixture(scope="module")
def broken(start_once, tmp_path_factory):
    """A runtime whose models are digits, every broken file of the table, digits with something strange for its second version, and a model cut short at many
    places: each is judged alone."""
    models = tmp_path_factory.mktemp("models")

    def version(path):
        (models / path).mkdir(parents=True)
        return models / path / "model.onnx"
    shutil.copy(GOOD, version("digits/1"))
    for name in TABLE:
        shutil.copy(BAD / name, version(f"{name.removesuffix('.onnx')}/1"))
        shutil.copy(BAD / "weights.bin", models / name.removesuffix(".onnx") / "1")
    for name, (make, _) in STRANGE.items():
        shutil.copy(GOOD, version(f"{name}-here/1"))
        make(version(f"{name}-here/2"))
    for end in cuts():
        version(f"cut-{end}/1").write_bytes(WHOLE[:end])
    process = start_once("serve", "--models", models, *ON_FREE_PORTS)
    states = {(entry["name"], entry.get("version")): entry for entry in call(f"{process.url}/v2/repository/index", "").json}
    return types.SimpleNamespace(process=process, url=process.url, models=models, states=states)


@pytest.fixture
def runtime(broken):
    """The same for one test: the models that are well never notice."""
    yield broken
    assert call(broken.url + "/v2/health/ready").status == 200
    assert call(broken.url + "/v2/models/digits/infer", ZEROS).status == 200


@pytest.mark.parametrize("name", TABLE, ids=lambda name: f"{TABLE[name][0].lower()}-{name.removesuffix('.onnx')}")
def test_a_broken_file_is_refused_with_the_words_that_help(runtime, name):
    _, words, says = TABLE[name]
    model = name.removesuffix(".onnx")
    if says.startswith("loads;"):
        done = serin("check", BAD / name, BAD / model, timeout=30)
        assert done.returncode == 3, done.stderr
        reason = done.stderr
    else:
        entry = runtime.states[model, "1"]
        assert entry["state"] == "UNAVAILABLE", entry
        reason = entry["reason"]
    assert all(word in reason for word in words), f"{words} are not all in: {reason}"
    assert len(reason) < 2000 and "Traceback" not in reason


WHOLE = (DATA / "attention/model.onnx").read_bytes()


def cuts():
    return range(1, len(WHOLE), max(1, len(WHOLE) // 25))


def test_a_truncation_at_any_byte_is_refused(runtime, tmp_path):
    """M2, sampled: a prefix that still parses would need the graph's last field to be whole, which is the output."""
    for end in cuts():
        entry = runtime.states[f"cut-{end}", "1"]
        assert entry["state"] == "UNAVAILABLE" and entry["reason"], f"cut at byte {end}: {entry}"
    (tmp_path / "cut.onnx").write_bytes(WHOLE[: len(WHOLE) // 2])
    for command in (["inspect", tmp_path / "cut.onnx"], ["check", tmp_path / "cut.onnx", DATA / "attention"]):
        done = serin(*command)
        assert done.returncode == 3 and done.stderr, command


# --- M1: what stands where a model file should ---------------------------------------------------------------------------------------


def make_directory(path):
    path.mkdir()


def make_link_to_itself(path):
    path.symlink_to(path.name)


def make_dangling_link(path):
    path.symlink_to("nowhere.onnx")


STRANGE = {
    "empty": (lambda path: path.write_bytes(b""), "empty"),
    "one-byte": (lambda path: path.write_bytes(b"\x08"), "byte 0"),
    "directory": (make_directory, "directory"),
    "fifo": (os.mkfifo, "FIFO"),
    "link-to-itself": (make_link_to_itself, "model.onnx"),
    "dangling-link": (make_dangling_link, "model.onnx"),
    "missing": (lambda path: None, "model.onnx"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_m1_whatever_stands_in_its_place_fails_one_version_only(runtime, name):
    model, word = f"{name}-here", STRANGE[name][1]
    assert call(f"{runtime.url}/v2/models/{model}/infer", ZEROS).json["model_version"] == "1"
    failed = call(f"{runtime.url}/v2/models/{model}/versions/2/infer", ZEROS)
    assert failed.status == 503 and f"model '{model}' version 2" in failed.error and word in failed.error, failed.error
    assert call(f"{runtime.url}/v2/models/{model}/versions/2/ready").json["ready"] is False
    assert str(runtime.models) not in failed.error, "where on this machine the files lie is no client's business"
    assert f"model '{model}' version 2: " in runtime.process.log
    if name != "missing":
        assert serin("check", runtime.models / model / "2/model.onnx", DATA / "digits_1", timeout=20).returncode == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_m1_a_file_that_may_not_be_read(serve, repository):
    models = repository({"digits/1": GOOD, "digits/2": GOOD})
    (models / "digits/2/model.onnx").chmod(0)
    failed = call(serve(models).url + "/v2/models/digits/versions/2/infer", ZEROS)
    assert failed.status == 503 and "ermission denied" in failed.error


@pytest.mark.parametrize("name", ["html", "git_lfs", "zip", "pickle", "safetensors"])
def test_m4_what_is_no_onnx_is_named_for_what_it_is(runtime, name):
    failed = call(f"{runtime.url}/v2/models/{name}/infer", ZEROS)
    assert failed.status == 503 and f"model '{name}' version 1" in failed.error and TABLE[f"{name}.onnx"][1][0] in failed.error


# --- M8: weights beside the model ---------------------------------------------------------------------------------------------------

EXTERNAL = DATA / "mlp_external"


def with_location(folder, location):
    """A copy of the fixture whose weights are looked for at `location`."""
    folder.mkdir(parents=True)
    model = onnx.load(EXTERNAL / "model.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder


def symlink(folder):
    (folder / "weights.bin").symlink_to(EXTERNAL / "weights.bin")


def hardlink(folder):
    shutil.copy(EXTERNAL / "weights.bin", folder.parent / "elsewhere.bin")
    os.link(folder.parent / "elsewhere.bin", folder / "weights.bin")


def linked_parent(folder):
    (folder.parent / "elsewhere").mkdir()
    shutil.copy(EXTERNAL / "weights.bin", folder.parent / "elsewhere/weights.bin")
    (folder / "sub").symlink_to(folder.parent / "elsewhere")


def outside(folder):
    shutil.copy(EXTERNAL / "weights.bin", folder.parent / "weights.bin")


ESCAPES = {
    "symlink": ("weights.bin", symlink),
    "hardlink": ("weights.bin", hardlink),
    "symlinked-folder": ("sub/weights.bin", linked_parent),
    "dotdot": ("../weights.bin", outside),
    "inner-dotdot": ("sub/../../weights.bin", outside),
    "absolute": (str(EXTERNAL / "weights.bin"), lambda folder: None),
    "fifo": ("weights.bin", lambda folder: os.mkfifo(folder / "weights.bin")),
    "directory": ("weights.bin", lambda folder: (folder / "weights.bin").mkdir()),
    "device": ("/dev/zero", lambda folder: None),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_m8_weights_come_from_the_models_own_folder_or_not_at_all(tmp_path, name):
    location, arrange = ESCAPES[name]
    folder = with_location(tmp_path / "model/1", location)
    arrange(folder)
    done = serin("check", folder / "model.onnx", EXTERNAL, timeout=20)
    assert done.returncode == 3 and "initializer" in done.stderr, done.stderr
    assert pathlib.PurePath(location).name in done.stderr


def test_m8_weights_in_the_models_folder_are_read(tmp_path):
    folder = with_location(tmp_path / "model/1", "weights.bin")
    shutil.copy(EXTERNAL / "weights.bin", folder)
    assert serin("check", folder / "model.onnx", EXTERNAL).returncode == 0


def test_m8_an_escaping_model_fails_alone_when_served(serve, repository, tmp_path):
    models = repository({"digits/1": GOOD})
    symlink(with_location(models / "mlp/1", "weights.bin"))
    runtime = serve(models)
    failed = call(runtime.url + "/v2/models/mlp/infer", ZEROS)
    assert failed.status == 503 and "model 'mlp' version 1" in failed.error and "weights.bin" in failed.error
    assert call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 200
