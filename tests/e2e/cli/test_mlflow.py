"""Models of MLflow's registry: `serin serve`, `registry show|pull`, `check` and `plan` with models:/. The server and the client that logs are MLflow's."""

import json
import lzma
import shutil

import numpy as np
import pytest

from conftest import DATA, MODELS, ON_FREE_PORTS, ROOT, Process, call, infer_body, serin, wait_until
from mlflow_server import PASSWORD, TOKEN, USER, Front, MlflowServer
from s3_server import S3Server

DIGITS = MODELS / "digits"


def flavour(folder, flavors, **files):
    """A folder as MLflow logs one."""
    folder.mkdir(parents=True)
    (folder / "MLmodel").write_text(json.dumps({"flavors": flavors}))
    (folder / "requirements.txt").write_text("mlflow\n")
    for name, source in files.items():
        shutil.copy(source, folder / name.replace("__", "."))
    return folder


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    """Versions 1 to 3 of `digits`, of which 1 is in production; `linear`: ONNX with its weights in a file of its own; `iris`: a pickle."""
    folder = tmp_path_factory.mktemp("mlflow")
    external = sorted((DATA / "mlp_external").glob("*"))
    weights = {path.name: path for path in external if path.is_file() and path.suffix != ".onnx"}
    linear = flavour(folder / "linear", {"onnx": {"data": "model.onnx"}, "python_function": {}}, model__onnx=next(path for path in external if path.suffix == ".onnx"))
    for name, path in weights.items():
        shutil.copy(path, linear / name)
    iris = flavour(folder / "iris", {"sklearn": {"pickled_model": "model.pkl"}, "python_function": {"loader_module": "mlflow.sklearn"}})
    with MlflowServer(folder / "server") as server:
        numbers = server.log(*(("onnx", "digits", DIGITS / f"{number}/model.onnx") for number in (1, 2, 3)), ("folder", "linear", linear), ("folder", "iris", iris))
        assert numbers == [1, 2, 3, 1, 1]
        server.alias("digits", "production", 1)
        yield server


@pytest.fixture
def run(mlflow, tmp_path):
    """A command with the server's settings: its output, or its error if a code is expected."""
    def run(*arguments, code=0, settings=None):
        env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), **(mlflow.settings() if settings is None else settings)}
        done = serin(*arguments, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr and TOKEN not in done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run


@pytest.mark.parametrize("uri, number", [("models:/digits/2", 2), ("models:/digits@production", 1), ("models:/digits/latest", 3), ("models:/digits/production", 1)])
def test_a_version_by_number_alias_and_latest(run, tmp_path, uri, number):
    shown = json.loads(run("registry", "show", uri, "--json"))
    assert shown["version"] == number and [file["path"] for file in shown["files"]][0] == "model.onnx" and shown["origin"]["mlflow.source"]
    run("registry", "pull", uri, tmp_path / "models")
    pulled = tmp_path / f"models/digits/{number}"
    answer = json.loads(run("check", pulled, cases(tmp_path, number), "--json"))
    assert answer["match"], answer


def cases(tmp_path, number):
    """What the model that was logged answers, by ONNX Runtime."""
    import onnxruntime

    folder = tmp_path / f"cases-{number}"
    if not folder.exists():
        folder.mkdir()
        rows = np.load(DIGITS / "eval.npz")["pixels"][:3].astype(np.float32)
        session = onnxruntime.InferenceSession(DIGITS / f"{number}/model.onnx")
        np.save(folder / "input_0.npy", rows)
        np.save(folder / "output_0.npy", session.run(None, {session.get_inputs()[0].name: rows})[0])
    return folder


def test_commands_that_read_a_model_take_the_address(run, tmp_path):
    assert "agree" in run("check", "models:/digits@production", cases(tmp_path, 1))
    assert "do not" not in run("plan", "models:/digits/2")
    assert "models:/digits is not models:/NAME/VERSION" in run("check", "models:/digits", cases(tmp_path, 1), code=2).replace("'", "")
    assert "MLFLOW_TRACKING_URI is not set" in run("plan", "models:/digits/1", code=2, settings={})


def test_a_server_follows_an_alias(mlflow, tmp_path):
    mlflow.alias("digits", "canary", 1)
    with Process(tmp_path, "serve", "models:/digits@canary", "--registry-cache", tmp_path / "cache", *ON_FREE_PORTS, "--poll-seconds", 0.05,
                 env=mlflow.settings()) as server:
        rows = np.load(DIGITS / "eval.npz")["pixels"][:1].astype(float).tolist()

        def version():
            answer = call(f"{server.url}/v2/models/digits/infer", infer_body(rows))
            assert answer.status == 200, answer.body
            return answer.json["model_version"]

        assert version() == "1" and call(f"{server.url}/v1/models/digits/labels/canary").status == 200
        mlflow.alias("digits", "canary", 2)
        wait_until(lambda: version() == "2", 30, "the alias moved")


def test_onnx_has_its_weights_beside_it(run, tmp_path):
    run("registry", "pull", "models:/linear/1", tmp_path / "models")
    names = {path.name for path in (tmp_path / "models/linear/1").iterdir()}
    assert "model.onnx" in names and names.isdisjoint({"MLmodel", "requirements.txt"}) and len(names) > 1, names
    assert "input" in run("inspect", tmp_path / "models/linear/1")


TREES = {"xgboost": ("model.json", "model.json", "xgb_*.json.xz"), "lightgbm": ("model.lgb", "model.txt", "lgb_binary.txt.xz")}


@pytest.mark.parametrize("flavor", TREES)
def test_trees_get_the_names_of_their_formats(mlflow, run, tmp_path, flavor):
    data, name, pattern = TREES[flavor]
    source = sorted((ROOT / "tests/formats/trees/models").glob(pattern))[0]
    (tmp_path / data).write_bytes(lzma.open(source).read())
    folder = flavour(tmp_path / "logged", {flavor: {"data": data}}, **{data.replace(".", "__"): tmp_path / data})
    [number] = mlflow.log(("folder", flavor, folder))
    run("registry", "pull", f"models:/{flavor}/{number}", tmp_path / "models")
    assert [path.name for path in (tmp_path / f"models/{flavor}/{number}").iterdir()] == [name]
    assert "input" in run("inspect", tmp_path / f"models/{flavor}/{number}/{name}")


def test_a_version_is_downloaded_once_and_a_damaged_one_again(mlflow, run, tmp_path):
    with Front(mlflow, login=False) as front:
        def downloads():
            return [path for path, _ in front.asked if path.endswith("model.onnx")]

        for _ in range(2):
            run("registry", "pull", "models:/digits/2", tmp_path / "models", settings=front.settings())
        assert len(downloads()) == 1
        [blob] = [path for path in (tmp_path / "cache").glob("**/blobs/sha256/*") if path.stat().st_size > 20_000]
        content = bytearray(blob.read_bytes())
        content[1000] ^= 1
        blob.write_bytes(content)
        shutil.rmtree(tmp_path / "models")
        run("registry", "pull", "models:/digits/2", tmp_path / "models", settings=front.settings())
        assert len(downloads()) == 2


def test_logins_and_their_refusals(mlflow, run):
    with Front(mlflow) as front:
        for login in {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": PASSWORD}, {"MLFLOW_TRACKING_TOKEN": TOKEN}:
            assert "digits" in run("registry", "show", "models:/digits/1", settings=front.settings(**login))
        for login, words in (({}, "neither MLFLOW_TRACKING_TOKEN nor MLFLOW_TRACKING_USERNAME is set"), ({"MLFLOW_TRACKING_TOKEN": TOKEN + "x"}, "the token of MLFLOW_TRACKING_TOKEN")):
            said = run("registry", "show", "models:/digits/1", code=3, settings=front.settings(**login))
            assert "401 Unauthorized" in said and words in said
        assert "belong together" in run("registry", "show", "models:/digits/1", code=2, settings=front.settings(MLFLOW_TRACKING_USERNAME=USER))
        assert "that a header cannot carry" in run("registry", "show", "models:/digits/1", code=2, settings=front.settings(MLFLOW_TRACKING_TOKEN="a\r\nb: c"))


@pytest.mark.parametrize("uri, words", [
    ("models:/digits/9", "RESOURCE_DOES_NOT_EXIST"), ("models:/digits@nobody", "no version has this alias or stage; aliases are: "), ("models:/nothing/1", "RESOURCE_DOES_NOT_EXIST"),
    ("models:/nothing@production", "RESOURCE_DOES_NOT_EXIST"),
    ("models:/iris/1", "its flavour is sklearn; Serin reads onnx, tensorflow, xgboost and lightgbm: convert it with skl2onnx"),
])
def test_what_is_not_there_or_not_read_is_named(run, uri, words):
    assert words in run("registry", "show", uri, code=3)


@pytest.mark.parametrize("part, answers, words", [
    ("model-versions/get?", [(200, b"{}")], "does not answer the version"), ("model-versions/get?", [(200, b"<html>")], "is no answer of MLflow"),
    ("model-versions/get?", [(200, b'{"model_version": {"version": "1", "status": "FAILED_REGISTRATION"}}')], "its status in MLflow is FAILED_REGISTRATION"),
    ("get-download-uri", [(200, b'{"artifact_uri": "file:///etc"}')], "start MLflow's server with --serve-artifacts"),
    ("get-download-uri", [(200, b'{"artifact_uri": "/etc"}')], "start MLflow's server with --serve-artifacts"),
    ("get-download-uri", [(200, b'{"artifact_uri": "gs://bucket/x"}')], "which Serin does not read"),
    ("get-download-uri", [(200, b'{"artifact_uri": "mlflow-artifacts:/../../etc"}')], "which is no path"),
    ("artifacts?path", [(200, b'{"files": [{"path": "..", "is_dir": true}]}')], "which is no name of a file"),
    ("artifacts?path", [(200, b'{"files": [{"path": "a\\u0000b", "is_dir": false, "file_size": 3}]}')], "which is no name of a file"),
    ("artifacts?path", [(200, b'{"files": [{"path": "MLmodel", "is_dir": false}]}')], "tells no size of 'MLmodel'"),
    ("artifacts?path", [(200, b'{"files": [{"path": "loop", "is_dir": true}]}')] * 30, "folders deeper than 16"),
    ("/MLmodel", [(200, b"flavors: {onnx: {data: ../../../secret}}")], "must be a path in the folder of the model"),
    ("/MLmodel", [(404, b"{}")], "404"), ("/model.onnx", [(200, b"short")] * 9, "ended after 5 of"),
    ("/model.onnx", [(200, b"x" * 1_000_000)] * 9, "is longer than the"), ("/", [(502, b"bad gateway")] * 9, "502"), ("/", [(404, b"not here")], "is that a tracking server of MLflow?"),
])
def test_answers_that_are_wrong(mlflow, run, tmp_path, part, answers, words):
    with Front(mlflow, login=False) as front:
        front.deeds[part] = list(answers)
        assert words in run("registry", "pull", "models:/digits/1", tmp_path / "models", code=3, settings=front.settings())
    assert not (tmp_path / "models").exists()


def test_a_download_that_is_cut_off_continues(mlflow, run, tmp_path):
    whole = (DIGITS / "1/model.onnx").stat().st_size
    with Front(mlflow, login=False) as front:
        front.deeds["/model.onnx"] = [(200, b"", whole)]
        run("registry", "pull", "models:/digits/1", tmp_path / "models", settings=front.settings())
        assert sum(path.endswith("/model.onnx") for path, _ in front.asked) == 2


def test_artifacts_in_a_bucket(mlflow, run, tmp_path):
    """MLflow names the bucket, and Serin reads it with the keys of AWS's variables."""
    with S3Server(tmp_path) as s3, Front(mlflow, login=False) as front:
        folder = flavour(s3.folder / "models/7/artifacts/model", {"onnx": {"data": "model.onnx"}}, model__onnx=DIGITS / "2/model.onnx")
        assert folder.exists()
        front.deeds["get-download-uri"] = [(200, b'{"artifact_uri": "s3://models/7/artifacts/model"}')]
        run("registry", "pull", "models:/digits/2", tmp_path / "models", settings=front.settings(**s3.settings()))
    assert (tmp_path / "models/digits/2/model.onnx").read_bytes() == (DIGITS / "2/model.onnx").read_bytes()


def test_the_address_and_the_server_are_checked_first(run):
    for uri in "ftp://mlflow", "http://user:secret@mlflow", "sqlite:///mlflow.db", "databricks":
        said = run("registry", "show", "models:/digits/1", code=2, settings={"MLFLOW_TRACKING_URI": uri})
        assert "MLFLOW_TRACKING_URI is not http(s)://" in said and "secret" not in said
    assert "names the version already" in run("registry", "show", "models:/digits/1", "digits:2", code=2)
    assert "into is required" in run("registry", "pull", "models:/digits/1", code=2)
    assert "version is required" in run("registry", "show", "models:/", code=2)
    assert "read with list, show and pull" in run("registry", "tag", "models:/", "digits:1", "canary", code=2)
    assert json.loads(run("registry", "show", "models:/", "digits:production", "--json"))["version"] == 1
    assert "MLflow lists its versions itself" in run("registry", "list", "models:/", "digits", code=2)
