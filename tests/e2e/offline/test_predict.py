"""serin predict against ONNX Runtime, from every kind of data to every kind of result, killed and shared by processes."""

import csv
import json
import pathlib
import shutil
import signal
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from conftest import MODELS, SERIN, serin, wait_until

DIGITS = MODELS / "digits"
EVAL = DIGITS / "eval.npz"


@pytest.fixture(scope="module")
def digits():
    with np.load(EVAL) as file:
        return {name: file[name] for name in file}


@pytest.fixture(scope="module")
def expected(digits):
    return onnxruntime.InferenceSession(DIGITS / "2/model.onnx").run(None, {"pixels": digits["pixels"]})[0]


def predict(*arguments, exit_code=0):
    done = serin("predict", *arguments)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done


def refused(*arguments, exit_code=2):
    done = predict(*arguments, exit_code=exit_code)
    assert done.stderr.startswith("serin predict: ") and done.stderr.count("\n") == 1
    return done.stderr


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def write_data(kind, digits, folder):
    """The digits in a file of this kind, and the flags that go with it."""
    path = folder / f"digits.{kind}"
    if kind == "npz":
        np.savez(path, x=digits["pixels"].astype(np.uint8), label=digits["label"])
        return path, ["--map", "pixels=x"]
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"label": int(label), "pixels": pixels.tolist()}) + "\n"
                                for pixels, label in zip(digits["pixels"], digits["label"])))
        return path, []
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if kind == "tsv" else ",")
        writer.writerow(["label", *(f"p{i}" for i in range(64))])
        writer.writerows([label, *pixels] for pixels, label in zip(digits["pixels"], digits["label"]))
    return path, ["--map", "pixels=p*"]


def read_result(path):
    """(numbers of rows, scores, labels or nothing)."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            assert set(file) == {"row", "scores"} and file["scores"].dtype == np.float32
            return file["row"], file["scores"], None
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return [row["row"] for row in rows], np.array([row["scores"] for row in rows]), [int(row["label"]) for row in rows]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    return [int(row["row"]) for row in rows], np.array([json.loads(row["scores"]) for row in rows]), [int(row["label"]) for row in rows]


@pytest.mark.parametrize("source, result", [("npz", "npz"), ("jsonl", "jsonl"), ("csv", "csv"), ("tsv", "jsonl"), ("csv", "npz"), ("npz", "tsv")])
def test_answers_are_those_of_onnxruntime(tmp_path, digits, expected, source, result):
    data, flags = write_data(source, digits, tmp_path)
    out = tmp_path / f"out.{result}"
    keep = [] if result == "npz" else ["--keep", "label"]
    predict(DIGITS / "2", data, out, *flags, *keep, "--batch", 50)
    rows, scores, labels = read_result(out)
    assert list(rows) == list(range(540))
    close(scores, expected)
    assert labels is None or labels == digits["label"].tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({data.name, out.name})  # nothing is left over


def test_the_highest_version_of_a_folder_runs(tmp_path, digits, expected):
    predict(DIGITS, EVAL, tmp_path / "out.npz")  # version 5 has the network of version 2 behind another shape
    close(np.load(tmp_path / "out.npz")["scores"], expected)


def test_the_result_has_the_same_bits_with_any_number_of_jobs_and_shards(tmp_path):
    results = {}
    for name, flags in {"one": ["--jobs", 1], "four": ["--jobs", 4]}.items():
        predict(DIGITS / "2", EVAL, tmp_path / f"{name}.npz", *flags)
        results[name] = (tmp_path / f"{name}.npz").read_bytes()
    for shard in ("3/3", "1/3", "2/3"):
        assert not (tmp_path / "shards.npz").exists()
        said = predict(DIGITS / "2", EVAL, tmp_path / "shards.npz", "--shard", shard, "--json")
        assert json.loads(said.stdout)["complete"] == (shard == "2/3")
    results["shards"] = (tmp_path / "shards.npz").read_bytes()
    assert len(set(results.values())) == 1


def test_shards_at_the_same_time_write_one_result(tmp_path, expected):
    processes = [subprocess.Popen([SERIN, "predict", DIGITS / "2", EVAL, tmp_path / "out.npz", "--shard", f"{i}/4", "--batch", "8"],
                                  stdout=subprocess.DEVNULL) for i in range(1, 5)]
    assert [process.wait() for process in processes] == [0] * 4
    close(np.load(tmp_path / "out.npz")["scores"], expected)
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_a_file_of_blocks_that_vanishes_is_no_error(tmp_path, expected):
    """As where another shard joins the blocks and deletes the folder, between the listing of a file and its opening."""
    work = tmp_path / "out.npz.work"
    work.mkdir()
    (work / "3-of-4.blocks").symlink_to("deleted")
    predict(DIGITS / "2", EVAL, tmp_path / "out.npz")
    close(np.load(tmp_path / "out.npz")["scores"], expected)


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(tmp_path, digits):
    np.savez(tmp_path / "few.npz", pixels=digits["pixels"][:60])
    command = [DIGITS / "4", tmp_path / "few.npz"]  # slow: tens of milliseconds a row
    flags = ["--batch", "2", "--jobs", "1"]
    predict(*command, tmp_path / "whole.npz", *flags)
    out, blocks = tmp_path / "out.npz", tmp_path / "out.npz.work/1-of-1.blocks"
    seen = 0
    for _ in range(3):
        process = subprocess.Popen([SERIN, "predict", *command, out, *flags])
        wait_until(lambda: blocks.exists() and blocks.stat().st_size > seen + 200 or process.poll() is not None, what="some blocks")
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break  # it was faster than the signal
        assert not out.exists()
        assert blocks.stat().st_size > seen
        seen = blocks.stat().st_size
    predict(*command, out, *flags)
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not blocks.exists()


def test_a_work_folder_of_another_run_is_refused(tmp_path):
    predict(DIGITS / "2", EVAL, tmp_path / "out.npz", "--shard", "1/2")
    said = refused(DIGITS / "2", EVAL, tmp_path / "out.npz", "--batch", 7, "--shard", "2/2")
    assert "out.npz.work/1-of-2.blocks belongs to another run" in said and "remove " in said


# --- Steps --------------------------------------------------------------------------------------------------------------------------


def write_ppm(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.astype(np.uint8).tobytes())


@pytest.fixture
def picture_model(tmp_path):
    """A linear classifier of 4x4 pictures behind a step, and its weights."""
    weights = np.random.default_rng(3).normal(size=(48, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])], "pictures",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 4, 4])], [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
        [onnx.numpy_helper.from_array(weights, "w")])
    folder = tmp_path / "model"
    (folder / "1").mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder / "1/model.onnx")
    (folder / "labels.txt").write_text("ant\nbee\ncat\n")
    (folder / "serin.yaml").write_text("pre:\n  - picture: file\n"
                                       "post:\n  - classes: logits\n    top: 1\n    labels: labels.txt\n")
    return folder, weights


def test_pictures_go_through_the_steps_of_the_model(tmp_path, picture_model):
    folder, weights = picture_model
    random = np.random.default_rng(5)
    wanted = {}
    for i in range(9):
        pixels = random.integers(0, 256, (4, 4, 3))
        write_ppm(tmp_path / f"set/{'ab'[i % 2]}/{i}.ppm", pixels)
        wanted[f"{'ab'[i % 2]}/{i}.ppm"] = ["ant", "bee", "cat"][int(np.argmax((pixels / 255).transpose(2, 0, 1).reshape(-1) @ weights))]
    (tmp_path / "set/a/broken.png").write_bytes(b"no picture")
    said = refused(folder, tmp_path / "set", tmp_path / "out.jsonl", exit_code=3)
    assert "set/a/broken.png, row 5: input 'file':" in said
    predict(folder, tmp_path / "set", tmp_path / "other.jsonl", "--keep", "path", "--keep", "truth=label", "--on-error", "skip")
    rows = [json.loads(line) for line in (tmp_path / "other.jsonl").read_text().splitlines()]
    assert {row["path"]: row["label"][0] for row in rows} == wanted
    assert all(row["truth"] == row["path"][0] for row in rows)


def test_columns_and_results_of_one_name_are_refused(tmp_path, picture_model):
    write_ppm(tmp_path / "set/a/1.ppm", np.zeros((4, 4, 3)))
    assert "output 'label': two results would have that name" in refused(picture_model[0], tmp_path / "set", tmp_path / "o.jsonl", "--keep", "label")
    assert "output 'label' is of type str, which .npz does not hold" in refused(picture_model[0], tmp_path / "set", tmp_path / "o.npz")


# --- Bad input ----------------------------------------------------------------------------------------------------------------------


def test_rows_at_fault_stop_or_are_left_out(tmp_path, digits, expected):
    lines = [json.dumps({"pixels": pixels.tolist()}) for pixels in digits["pixels"][:20]]
    lines[3], lines[8], lines[11], lines[19] = '{"pixels": [1, 2]}', "nonsense", '{"other": 1}', '{"pixels": [' + "0," * 63 + '"a"]}'
    data = tmp_path / "d.jsonl"
    data.write_text("\n".join(lines) + "\n")
    said = refused(DIGITS / "2", data, tmp_path / "out.npz", "--batch", 4, exit_code=3)
    assert f"{data}, row 3 (line 4): column 'pixels': has shape [2], [64] is wanted" in said
    assert not (tmp_path / "out.npz").exists()
    done = predict(DIGITS / "2", data, tmp_path / "skip.npz", "--on-error", "skip", "--batch", 4)
    assert "4 rows at fault are left out: " in done.stdout
    good = [i for i in range(20) if i not in (3, 8, 11, 19)]
    with np.load(tmp_path / "skip.npz") as file:
        assert file["row"].tolist() == good
        close(file["scores"], expected[good])
    faults = [json.loads(line) for line in (tmp_path / "skip.npz.errors.jsonl").read_text().splitlines()]
    assert [fault["row"] for fault in faults] == [3, 8, 11, 19]
    for fault, reason in zip(faults, ["has shape [2]", "(line 9): not a JSON object", "column 'pixels': the value is missing", "'\"a\"' is no number"]):
        assert reason in fault["error"]


def test_a_run_without_one_good_row_fails(tmp_path):
    (tmp_path / "d.csv").write_text("pixels\nx\ny\n")
    assert "all 2 rows are at fault; the first: " in refused(DIGITS / "2", tmp_path / "d.csv", tmp_path / "o.csv", "--on-error", "skip", exit_code=3)
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("arguments, message", [
    ([DIGITS / "9", EVAL, "o.npz"], "digits/9: no such model"),
    ([DIGITS / "2", "nowhere.npz", "o.npz"], "nowhere.npz: no such file or folder"),
    ([DIGITS / "2", DIGITS / "train.py", "o.npz"], "'.py' is no known kind of data"),
    ([DIGITS / "2", EVAL, "o.txt"], "o.txt: results are written as .jsonl, .csv, .tsv, .npz or .parquet"),
    ([DIGITS / "2", EVAL, "o.npz", "--map", "pixel=label"], "the model has no input 'pixel'; inputs: pixels"),
    ([DIGITS / "2", EVAL, "o.npz", "--map", "pixels"], "--map pixels: must be INPUT=COLUMN"),
    ([DIGITS / "2", EVAL, "o.npz", "--map", "pixels=pixel"], "there is no column 'pixel'; did you mean 'pixels'?"),
    ([DIGITS / "2", EVAL, "o.npz", "--keep", "label"], "--keep goes with .jsonl, .csv, .tsv and .parquet"),
    ([DIGITS / "2", EVAL, "o.csv", "--keep", "name"], "--keep: there is no column 'name'"),
    ([DIGITS / "2", EVAL, "o.npz", "--shard", "3/2"], "--shard 3/2: must be NUMBER/COUNT"),
    ([DIGITS / "2", EVAL, "o.npz", "--isa", "mmx"], "instruction set 'mmx'"),
    ([DIGITS / "2", "data.npz", "data.npz"], "data.npz: is the data itself; the result needs a file of its own"),
    ([DIGITS / "2", "data.npz", "link.npz"], "link.npz: is the data itself"),
    ([DIGITS / "2", EVAL, "missing/folder/o.npz"], "missing/folder/o.npz.work: cannot be made"),
    ([DIGITS / "2", EVAL, "o.npz", "--work", "/proc/none"], "/proc/none: cannot be made"),
])
def test_mistakes_are_named(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    shutil.copy(EVAL, "data.npz")
    pathlib.Path("link.npz").symlink_to("data.npz")
    assert message in refused(*arguments)
    assert pathlib.Path("data.npz").read_bytes() == EVAL.read_bytes()


def test_a_compressed_archive_gives_the_same_answers(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    np.savez(tmp_path / "a.npz", **digits)
    np.savez_compressed(tmp_path / "b.npz", **digits)
    assert (tmp_path / "b.npz").stat().st_size < (tmp_path / "a.npz").stat().st_size / 2
    for name in "a", "b":
        predict(DIGITS / "2", tmp_path / f"{name}.npz", tmp_path / f"{name}.out.npz")
    assert (tmp_path / "a.out.npz").read_bytes() == (tmp_path / "b.out.npz").read_bytes()
    assert list((tmp_path / "tmp").iterdir()) == []
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    assert "b.npz: member 'pixels.npy'" in refused(DIGITS / "2", tmp_path / "b.npz", tmp_path / "o.npz")


def test_a_damaged_compressed_archive_is_refused(digits, tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", pixels=digits["pixels"])
    whole = (tmp_path / "whole.npz").read_bytes()
    entry = whole.index(b"PK\x01\x02")
    rng = np.random.default_rng(6)
    in_data = [(int(at), None) for at in rng.integers(60, entry, 20)]
    for at, message in [*in_data, (entry + 16, "checksum"), (entry + 24, "than the archive says")]:
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        (tmp_path / "damaged.npz").write_bytes(damaged)
        said = refused(DIGITS / "2", tmp_path / "damaged.npz", tmp_path / "o.npz")
        assert "damaged.npz: member 'pixels.npy': " in said and (message or "") in said, at
    bomb = bytearray(whole)
    bomb[entry + 24 : entry + 28] = (0xF000_0000).to_bytes(4, "little")
    (tmp_path / "bomb.npz").write_bytes(bomb)
    assert "its size is more than its data can hold" in refused(DIGITS / "2", tmp_path / "bomb.npz", tmp_path / "o.npz")


def test_damaged_archives_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(EVAL.read_bytes()[:-30])
    assert "not an .npz file" in refused(DIGITS / "2", tmp_path / "a.npz", tmp_path / "o.npz")
    np.savez(tmp_path / "c.npz", pixels=np.zeros((2, 64), np.float32), label=np.zeros(3))
    assert "array 'label' has 3 rows, 'pixels' has 2" in refused(DIGITS / "2", tmp_path / "c.npz", tmp_path / "o.npz")
    np.savez(tmp_path / "e.npz", pixels=np.zeros((0, 64), np.float32))
    assert "e.npz: has no rows" in refused(DIGITS / "2", tmp_path / "e.npz", tmp_path / "o.npz")
