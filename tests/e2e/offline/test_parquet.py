"""serin predict and eval from Parquet: the same bytes as from the same data in other files, however it is stored; results as Parquet; and files that are damaged."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper
from pyarrow.parquet import encryption

from conftest import MODELS, SERIN, serin, wait_until
from test_predict import predict, refused

pytestmark = pytest.mark.skipif(not (SERIN.parent / "libserin_parquet.so").exists(), reason="serin was built without Arrow (deploy/install-deps)")
DIGITS = MODELS / "digits/2"
EVAL = MODELS / "digits/eval.npz"


@pytest.fixture(scope="module")
def digits():
    with np.load(EVAL) as file:
        return {"pixels": file["pixels"], "label": file["label"]}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The result from the archive, as bytes."""
    out = tmp_path_factory.mktemp("expected") / "out.npz"
    predict(DIGITS, EVAL, out)
    return out.read_bytes()


def lists_of(pixels, kind, fixed=False):
    flat = pa.array(pixels.reshape(-1), kind)
    return pa.FixedSizeListArray.from_arrays(flat, 64) if fixed else pa.ListArray.from_arrays(pa.array(range(0, len(flat) + 1, 64), pa.int32()), flat)


LAYOUTS = {  # of the pixels, which are whole numbers up to 16
    "list of float": lambda pixels: {"pixels": lists_of(pixels, pa.float32())},
    "list of double": lambda pixels: {"pixels": lists_of(pixels, pa.float64())},
    "list of half": lambda pixels: {"pixels": lists_of(pixels.astype(np.float16), pa.float16())},
    "large list": lambda pixels: {"pixels": lists_of(pixels, pa.float32()).cast(pa.large_list(pa.float32()))},
    "fixed list of bytes": lambda pixels: {"pixels": lists_of(pixels.astype(np.uint8), pa.uint8(), fixed=True)},
    "tensor": lambda pixels: {"pixels": pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(pixels))},
    "columns": lambda pixels: {f"p{i}": pixels[:, i].astype(np.int16) for i in range(64)},
    "struct": lambda pixels: {"row": pa.StructArray.from_arrays([lists_of(pixels, pa.int32()), pa.array(["x"] * len(pixels))], ["pixels", "name"])},
}
FLAGS = {"columns": ["--map", "pixels=p*"], "struct": ["--map", "pixels=row.pixels"]}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_have_the_bytes_of_those_from_an_archive(tmp_path, digits, expected, layout):
    pq.write_table(pa.table(LAYOUTS[layout](digits["pixels"])), tmp_path / "d.parquet", row_group_size=100)
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "out.npz", *FLAGS.get(layout, []))
    assert (tmp_path / "out.npz").read_bytes() == expected


@pytest.mark.parametrize("stored", [
    {"compression": "none"}, {"compression": "snappy"}, {"compression": "gzip"}, {"compression": "zstd"}, {"compression": "lz4"}, {"compression": "brotli"},
    {"data_page_version": "2.0"}, {"use_dictionary": False, "row_group_size": 7}, {"data_page_size": 512}, {"store_schema": False},
    {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}, {"write_page_checksum": True}, {"version": "1.0"},
], ids=lambda stored: " ".join(map(str, stored.values())))
def test_it_does_not_matter_how_the_file_is_stored(tmp_path, digits, expected, stored):
    pq.write_table(pa.table(LAYOUTS["list of float"](digits["pixels"])), tmp_path / "d.parquet", **stored)
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "out.npz", "--batch", 64)
    assert (tmp_path / "out.npz").read_bytes() == expected


@pytest.mark.parametrize("flags", [["--jobs", 1], ["--jobs", 7, "--batch", 64]])
def test_the_result_has_the_same_bits_with_any_number_of_jobs(tmp_path, digits, expected, flags):
    pq.write_table(pa.table(LAYOUTS["list of float"](digits["pixels"])), tmp_path / "d.parquet", row_group_size=33)
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "out.npz", *flags)
    assert (tmp_path / "out.npz").read_bytes() == expected


def test_shards_that_begin_within_row_groups_write_one_result(tmp_path, digits, expected):
    pq.write_table(pa.table(LAYOUTS["fixed list of bytes"](digits["pixels"])), tmp_path / "d.parquet", row_group_size=200)
    processes = [subprocess.Popen([SERIN, "predict", DIGITS, tmp_path / "d.parquet", tmp_path / "out.npz", "--shard", f"{i}/4"], stdout=subprocess.DEVNULL)
                 for i in range(1, 5)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "out.npz").read_bytes() == expected


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(tmp_path, digits):
    pq.write_table(pa.table(LAYOUTS["list of float"](digits["pixels"][:60])), tmp_path / "few.parquet", row_group_size=25)
    command = [MODELS / "digits/4", tmp_path / "few.parquet"]  # slow: tens of milliseconds a row
    flags = ["--batch", "2", "--jobs", "1"]
    predict(*command, tmp_path / "whole.npz", *flags)
    out, blocks = tmp_path / "out.npz", tmp_path / "out.npz.work/1-of-1.blocks"
    process = subprocess.Popen([SERIN, "predict", *command, out, *flags])
    wait_until(lambda: blocks.exists() and blocks.stat().st_size > 200 or process.poll() is not None, what="some blocks")
    process.send_signal(signal.SIGKILL)
    process.wait()
    predict(*command, out, *flags)
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_columns_that_are_kept_are_those_of_a_file_of_json(tmp_path, digits):
    names = [f"digit {label}, né {i}" for i, label in enumerate(digits["label"])]
    columns = {
        "pixels": lists_of(digits["pixels"], pa.float32()), "label": pa.array(digits["label"], pa.int16()), "name": pa.array(names),
        "kind": pa.array([["even", "odd"][label % 2] for label in digits["label"]]).dictionary_encode(),
        "maybe": pa.array([None if i % 5 == 0 else i / 2 for i in range(540)]), "good": pa.array([i % 3 == 0 for i in range(540)]),
        "long": pa.array(names, pa.large_string()), "view": pa.array(names, pa.string_view()), "two": pa.array([[i, -i] for i in range(540)]),
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=111)
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    keep = [word for name in columns if name != "pixels" for word in ("--keep", name)]
    for kind in "parquet", "jsonl":
        predict(DIGITS, tmp_path / f"d.{kind}", tmp_path / f"{kind}.jsonl", *keep)
    rows = [[json.loads(line) for line in (tmp_path / f"{kind}.jsonl").read_text().splitlines()] for kind in ("parquet", "jsonl")]
    assert rows[0] == rows[1] and rows[0][7]["name"] == names[7] and rows[0][5]["maybe"] is None


@pytest.mark.parametrize("label", ["number", "text", "category"])
def test_an_evaluation_has_the_figures_of_one_of_an_archive(tmp_path, digits, label):
    labels = {"number": pa.array(digits["label"]), "text": pa.array([str(label) for label in digits["label"]])}
    labels["category"] = labels["text"].dictionary_encode()
    pq.write_table(pa.table({"pixels": lists_of(digits["pixels"], pa.float32()), "label": labels[label]}), tmp_path / "d.parquet", row_group_size=77)
    reports = [json.loads(serin("eval", DIGITS, data, "--json").stdout) for data in (EVAL, tmp_path / "d.parquet")]
    assert reports[0]["rows"] == reports[1]["rows"] == 540
    assert reports[0]["metrics"] == reports[1]["metrics"] and reports[0]["metrics"]["top1"]["value"] > 0.99


@pytest.fixture
def numbers_model(tmp_path):
    """Adds one to a number."""
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "numbers", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 1])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 1])], [onnx.numpy_helper.from_array(np.ones(1), "one")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "numbers.onnx")
    return tmp_path / "numbers.onnx"


@pytest.mark.parametrize("kind, values", [
    (pa.int8(), [-128, 127]), (pa.uint8(), [0, 255]), (pa.int16(), [-32768, 32767]), (pa.uint16(), [0, 65535]), (pa.int32(), [-2**31, 2**31 - 1]),
    (pa.uint32(), [0, 2**32 - 1]), (pa.int64(), [-2**63, 2**52]), (pa.uint64(), [0, 2**63]), (pa.float16(), [np.float16(-0.5), np.float16(65504)]),
    (pa.float32(), [2.0**-149, -1.5]), (pa.float64(), [1e-300, 1e300]), (pa.bool_(), [True, False]), (pa.dictionary(pa.int8(), pa.float64()), [0.25, 7.0]),
], ids=str)
def test_numbers_of_every_type_are_read(tmp_path, numbers_model, kind, values):
    pq.write_table(pa.table({"x": pa.array(values * 5, kind)}), tmp_path / "d.parquet", row_group_size=3)
    predict(numbers_model, tmp_path / "d.parquet", tmp_path / "o.npz")
    assert np.load(tmp_path / "o.npz")["y"].reshape(-1).tolist() == [float(value) + 1 for value in values * 5]


@pytest.mark.parametrize("kind, values", [
    (pa.date32(), [1]), (pa.timestamp("us", "UTC"), [1]), (pa.time64("ns"), [1]), (pa.duration("s"), [1]), (pa.decimal128(5, 2), [1]),
    (pa.list_(pa.string()), [["a"]]), (pa.map_(pa.string(), pa.int8()), [[("a", 1)]]), (pa.list_(pa.struct({"a": pa.int8()})), [[{"a": 1}]]),
], ids=str)
def test_types_that_are_no_numbers_are_refused_by_name(tmp_path, numbers_model, kind, values):
    pq.write_table(pa.table({"x": pa.array(values, kind), "y": [1.0]}), tmp_path / "d.parquet")
    said = refused(numbers_model, tmp_path / "d.parquet", tmp_path / "o.npz")
    assert f"{tmp_path}/d.parquet: input 'x': column 'x' is of type " in said and str(kind).split("[")[0].split("<")[0] in said
    predict(numbers_model, tmp_path / "d.parquet", tmp_path / "o.npz", "--map", "x=y")  # other columns do not matter


def test_pictures_in_the_table_are_decoded(tmp_path):
    weights = np.random.default_rng(3).normal(size=(48, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])], "pictures",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 4, 4])], [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
        [onnx.numpy_helper.from_array(weights, "w")])
    (tmp_path / "model/1").mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "model/1/model.onnx")
    (tmp_path / "model/serin.yaml").write_text("pre:\n  - picture: file\n")
    pixels = np.random.default_rng(5).integers(0, 256, (9, 4, 4, 3)).astype(np.uint8)
    files = [b"P6\n4 4\n255\n" + picture.tobytes() for picture in pixels]
    pq.write_table(pa.table({"image": [{"bytes": file, "path": f"{i}.ppm"} for i, file in enumerate(files)]}), tmp_path / "hub.parquet")
    pq.write_table(pa.table({"image": files}), tmp_path / "plain.parquet")
    for name, flags in {"hub": ["--map", "file=image.bytes"], "plain": []}.items():
        predict(tmp_path / "model", tmp_path / f"{name}.parquet", tmp_path / f"{name}.npz", *flags)
        logits = np.load(tmp_path / f"{name}.npz")["logits"]
        np.testing.assert_allclose(logits, (pixels / 255).transpose(0, 3, 1, 2).reshape(9, -1) @ weights, rtol=1e-4, atol=1e-4)
    assert "columns: image.bytes, image.path" in refused(tmp_path / "model", tmp_path / "hub.parquet", tmp_path / "o.npz")


def test_a_row_group_need_not_fit_into_memory(tmp_path):
    graph = helper.make_graph([helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)], "sums",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 10_000])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
                              [onnx.numpy_helper.from_array(np.array([1]), "axes")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "sums.onnx")
    values = np.tile(np.arange(16, dtype=np.float32), 10_000 // 16 * 10_000)  # 400 MB
    pq.write_table(pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(values), 10_000)}), tmp_path / "d.parquet", use_dictionary=False, compression="zstd")
    assert pq.ParquetFile(tmp_path / "d.parquet").metadata.num_row_groups == 1
    # By a small process: a child begins with the size of its parent.
    measure = "import os, sys; print(os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], {}, file_actions=[(os.POSIX_SPAWN_CLOSE, 1)]), 0)[2].ru_maxrss)"
    command = [sys.executable, "-S", "-c", measure, SERIN, "predict", tmp_path / "sums.onnx", tmp_path / "d.parquet", tmp_path / "o.npz", "--jobs", "2"]
    assert int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) < 300 * 1024
    assert np.load(tmp_path / "o.npz")["y"].reshape(-1).tolist() == [75_000.0] * 10_000


# --- Writing ------------------------------------------------------------------------------------------------------------------------


def test_a_table_of_answers_has_those_of_an_archive_with_columns_that_are_kept(tmp_path, digits):
    count = len(digits["label"])
    kept = {"label": pa.array(digits["label"], pa.int16()), "name": pa.array([None if i % 7 == 0 else f"né {i}" for i in range(count)]),
            "raw": pa.array([b"\xff" if i == 500 else b"text" for i in range(count)]), "late": pa.array([None] * 300 + [[1.5, 2.5]] * (count - 300)),
            "kind": pa.array(["even", "odd"] * (count // 2)).dictionary_encode(), "nothing": pa.nulls(count)}
    pq.write_table(pa.table({"pixels": lists_of(digits["pixels"], pa.float32()), **kept}), tmp_path / "d.parquet", row_group_size=100)
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "o.parquet", "--keep", "truth=label", *(word for name in kept if name != "label" for word in ("--keep", name)))
    found = pq.read_table(tmp_path / "o.parquet")
    assert found.schema.names == ["row", "truth", "name", "raw", "late", "kind", "nothing", "scores"]
    assert found.schema.types == [pa.int64(), pa.int16(), pa.string(), pa.binary(), pa.list_(pa.float64()), pa.string(), pa.null(), pa.list_(pa.float32())]
    assert found["row"].to_pylist() == list(range(count))
    for name, column in kept.items():
        assert found["truth" if name == "label" else name].to_pylist() == column.to_pylist(), name
    predict(DIGITS, EVAL, tmp_path / "o.npz")
    assert np.array_equal(np.array(found["scores"].to_pylist(), np.float32), np.load(tmp_path / "o.npz")["scores"])


def test_a_table_has_the_same_bits_with_any_number_of_jobs_and_shards(tmp_path):
    for name, flags in {"one": ["--jobs", 1], "four": ["--jobs", 4]}.items():
        predict(DIGITS, EVAL, tmp_path / f"{name}.parquet", "--keep", "label", *flags)
    for shard in ("2/2", "1/2"):
        predict(DIGITS, EVAL, tmp_path / "shards.parquet", "--keep", "label", "--shard", shard)
    assert len({(tmp_path / f"{name}.parquet").read_bytes() for name in ("one", "four", "shards")}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["four.parquet", "one.parquet", "shards.parquet"]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"])
def test_tensors_of_every_type_are_written_and_read_again(tmp_path, kind):
    number = getattr(TensorProto, kind)
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=number)], "cast", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 3])],
                              [helper.make_tensor_value_info("y", number, ["n", 2, 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "cast.onnx")
    x = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    np.savez(tmp_path / "d.npz", x=x)
    predict(tmp_path / "cast.onnx", tmp_path / "d.npz", tmp_path / "o.parquet", "--batch", 3)
    assert np.array_equal(np.array(pq.read_table(tmp_path / "o.parquet")["y"].to_pylist(), np.float64), x if kind != "BOOL" else x != 0)
    predict(tmp_path / "cast.onnx", tmp_path / "o.parquet", tmp_path / "again.npz", "--map", "x=y")
    predict(tmp_path / "cast.onnx", tmp_path / "d.npz", tmp_path / "first.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "first.npz").read_bytes()


@pytest.mark.parametrize("texts, kind", [([b"a", b"\xe4\xbd\xa0"], pa.string()), ([b"a", b"\xff\xfe"], pa.binary())])
def test_texts_of_a_model_are_bytes_where_they_are_no_utf8(tmp_path, texts, kind):
    """The second block alone has the other text."""
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[0, 1], values_strings=texts)
    ends = [helper.make_tensor_value_info(name, dtype, ["N"]) for name, dtype in (("x", TensorProto.INT64), ("y", TensorProto.STRING))]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    onnx.save(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=opsets), tmp_path / "model.onnx")
    numbers = [0] * 5000 + [1]
    pq.write_table(pa.table({"x": pa.array(numbers, pa.int64())}), tmp_path / "in.parquet")
    predict(tmp_path / "model.onnx", tmp_path / "in.parquet", tmp_path / "out.parquet", "--keep", "x")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.field("y").type == kind
    assert found.column("y").to_pylist() == [texts[number] if kind == pa.binary() else texts[number].decode() for number in numbers]


def test_columns_of_other_formats_are_kept_as_texts(tmp_path, digits):
    lines = [{"pixels": pixels.tolist(), "id": f"no {i}", "value": i, "list": [i, "a"]} for i, pixels in enumerate(digits["pixels"][:30])]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    predict(DIGITS, tmp_path / "d.jsonl", tmp_path / "o.parquet", "--keep", "id", "--keep", "value", "--keep", "list")
    found = pq.read_table(tmp_path / "o.parquet")
    assert found["id"].to_pylist() == [line["id"] for line in lines] and found["value"].to_pylist() == [str(line["value"]) for line in lines]
    assert [json.loads(text) for text in found["list"].to_pylist()] == [line["list"] for line in lines]


def test_rows_at_fault_are_left_out_of_a_table(tmp_path, digits):
    rows = digits["pixels"][:20].tolist()
    rows[4] = None
    pq.write_table(pa.table({"pixels": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / "d.parquet")
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "o.parquet", "--on-error", "skip", "--batch", 1)
    assert pq.read_table(tmp_path / "o.parquet")["row"].to_pylist() == [i for i in range(20) if i != 4]


def test_lists_that_are_kept_may_have_any_length(tmp_path, digits):
    mixed = pa.table({"pixels": lists_of(digits["pixels"][:2], pa.float32()), "x": pa.array([[[1]], [[2, 3], [4, 5]]])})
    pq.write_table(mixed, tmp_path / "d.parquet")
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "o.parquet", "--keep", "x")  # of one rank: lists of any length
    assert pq.read_table(tmp_path / "o.parquet")["x"].to_pylist() == [[[1]], [[2, 3], [4, 5]]]


# --- Bad input ----------------------------------------------------------------------------------------------------------------------


def test_rows_at_fault_stop_or_are_left_out(tmp_path, digits):
    rows = digits["pixels"][:20].tolist()
    rows[3], rows[8], rows[11], rows[19] = rows[3][:2], None, [None] * 64, []
    pq.write_table(pa.table({"pixels": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / "d.parquet", row_group_size=6)
    said = refused(DIGITS, tmp_path / "d.parquet", tmp_path / "o.npz", "--batch", 4, exit_code=3)
    assert f"{tmp_path}/d.parquet, row 3: column 'pixels': has shape [2], [64] is wanted" in said
    predict(DIGITS, tmp_path / "d.parquet", tmp_path / "skip.npz", "--on-error", "skip", "--batch", 4)
    assert np.load(tmp_path / "skip.npz")["row"].tolist() == [i for i in range(20) if i not in (3, 8, 11, 19)]
    faults = [json.loads(line) for line in (tmp_path / "skip.npz.errors.jsonl").read_text().splitlines()]
    assert [fault["row"] for fault in faults] == [3, 8, 11, 19]
    for fault, reason in zip(faults, ["has shape [2]", "column 'pixels': the value is missing", "column 'pixels': element 0 of 64 is null", "has shape [0]"]):
        assert reason in fault["error"]


def damaged(change):
    def make(path):
        pq.write_table(pa.table({"pixels": [[float(i)] * 64 for i in range(50)]}), path)
        path.write_bytes(change(path.read_bytes()))
    return make


def without_schema(whole):
    """Zeros at the beginning of the footer."""
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    return whole[:begin] + bytes(40) + whole[begin + 40 :]


def table(**columns):
    return lambda path: pq.write_table(pa.table(columns), path)


def two_of_one_name(path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["pixels", "pixels"]), path)


class Kms(encryption.KmsClient):
    def wrap_key(self, key, _):
        return key.hex().encode()

    def unwrap_key(self, wrapped, _):
        return bytes.fromhex(wrapped.decode())


def encrypted(plaintext_footer):
    def make(path):
        factory = encryption.CryptoFactory(lambda _: Kms())
        config = encryption.EncryptionConfiguration(footer_key="k", column_keys={"k": ["pixels.list.element"]}, plaintext_footer=plaintext_footer)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), config)
        data = pa.table({"pixels": [[1.0] * 64]})
        with pq.ParquetWriter(path, data.schema, encryption_properties=properties) as writer:
            writer.write_table(data)
    return make


@pytest.mark.parametrize("make, message", [
    (lambda path: path.write_bytes(b""), "not a Parquet file that can be read: "),
    (lambda path: path.write_bytes(b"PAR1"), "not a Parquet file that can be read: "),
    (lambda path: path.write_bytes(b"pixels,label\n1,2\n" * 9), "not a Parquet file that can be read: Parquet magic bytes not found in footer"),
    (os.mkfifo, "d.parquet: must be a regular file"),
    (damaged(lambda whole: whole[:-1]), "not a Parquet file that can be read: "),
    (damaged(lambda whole: whole[: len(whole) // 2]), "not a Parquet file that can be read: "),
    (damaged(lambda whole: whole[:-8] + b"\xff\xff\xff\x7f" + whole[-4:]), "not a Parquet file that can be read: "),
    (damaged(without_schema), "not a Parquet file that can be read: "),
    (damaged(lambda whole: whole[:4] + bytes(len(whole) // 4) + whole[4 + len(whole) // 4 :]), "d.parquet: row group 0 (rows 0 to 49): "),
    (table(pixels=pa.array([], pa.list_(pa.float32()))), "d.parquet: has no rows"),
    (table(pixel=[[1.0] * 64]), "there is no column 'pixels'; did you mean 'pixel'?"),
    (table(pixels=["text"]), "d.parquet, row 0: column 'pixels': the text 'text', numbers of type f32 are wanted"),
    (table(pixels=[[1.0] * 63]), "d.parquet, row 0: column 'pixels': has shape [63], [64] is wanted"),
    (table(pixels=[[[1.0] * 32, [1.0] * 31]]), "d.parquet, row 0: column 'pixels': lists of different lengths"),
    (two_of_one_name, "d.parquet: two columns have the name 'pixels'"),
    (encrypted(plaintext_footer=False), "not a Parquet file that can be read: "),
    (encrypted(plaintext_footer=True), "not a Parquet file that can be read: it is encrypted"),
])
def test_bad_files_are_named(tmp_path, make, message):
    make(tmp_path / "d.parquet")
    done = serin("predict", DIGITS, tmp_path / "d.parquet", tmp_path / "o.npz")
    assert done.returncode in (2, 3) and done.stderr.startswith("serin predict: ") and done.stderr.count("\n") == 1, done.stderr
    assert f"{tmp_path}/d.parquet" in done.stderr and message in done.stderr


def test_a_checksum_finds_each_flipped_bit_of_the_data(tmp_path, digits):
    pq.write_table(pa.table(LAYOUTS["list of float"](digits["pixels"])), tmp_path / "whole.parquet", write_page_checksum=True, compression="none",
                   use_dictionary=False, write_statistics=False)
    whole = (tmp_path / "whole.parquet").read_bytes()
    first = pq.ParquetFile(tmp_path / "whole.parquet").metadata.row_group(0).column(0)
    for at in np.random.default_rng(6).integers(first.data_page_offset + 100, first.data_page_offset + first.total_compressed_size, 8):
        flipped = bytearray(whole)
        flipped[at] ^= 4
        (tmp_path / "flipped.parquet").write_bytes(flipped)
        said = refused(DIGITS, tmp_path / "flipped.parquet", tmp_path / f"{at}.npz", exit_code=3)
        assert "flipped.parquet: row group 0 (rows 0 to 539): " in said and "CRC checksum verification failed" in said, at


def test_without_the_plugin_the_error_names_it(tmp_path, digits):
    (tmp_path / "bin").mkdir()
    shutil.copy(SERIN, tmp_path / "bin/serin")
    pq.write_table(pa.table(LAYOUTS["list of float"](digits["pixels"])), tmp_path / "d.parquet")
    done = subprocess.run([tmp_path / "bin/serin", "predict", DIGITS, tmp_path / "d.parquet", tmp_path / "o.npz"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"{tmp_path}/d.parquet: Parquet is read with libserin_parquet.so, which is not installed" in done.stderr
