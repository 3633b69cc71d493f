"""serin eval against scikit-learn and SciPy: metrics, gates, paired comparisons, slices, and reports that are the same to the last bit."""

import html.parser
import json
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.stats
import sklearn.metrics as metrics
from onnx import TensorProto, helper

from conftest import MODELS, SERIN, serin

DIGITS = MODELS / "digits"
EVAL = DIGITS / "eval.npz"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def digits():
    with np.load(EVAL) as file:
        return {name: file[name] for name in file}


def scores_of(version, digits):
    return onnxruntime.InferenceSession(DIGITS / f"{version}/model.onnx").run(None, {"pixels": digits["pixels"]})[0]


def evaluate(*arguments, exit_code=0):
    done = serin("eval", *arguments, "--json")
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


def refused(*arguments, exit_code=2):
    done = serin("eval", *arguments)
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert done.stderr.startswith("serin eval: ") and done.stderr.count("\n") == 1
    return done.stderr


def close(actual, expected, tolerance=1e-6):
    assert actual == pytest.approx(expected, rel=tolerance, abs=tolerance)


def ece(probabilities, truth, bins=15):
    confidence, right = probabilities.max(1), probabilities.argmax(1) == truth
    bin_of = np.clip(np.ceil(confidence * bins) - 1, 0, bins - 1)
    return sum(abs(right[bin_of == b].mean() - confidence[bin_of == b].mean()) * (bin_of == b).mean() for b in set(bin_of))


# --- Classification -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metrics_are_those_of_scikit_learn(digits, version):
    truth, scores = digits["label"], scores_of(version, digits)
    said = scores.argmax(1)
    names = ["top1", "top3", "precision_macro", "recall_macro", "f1_macro", "f1_micro", "auc", "log_loss", "ece", "f1[3]", "precision[8]", "recall[0]"]
    report = evaluate(DIGITS / str(version), EVAL, *(word for name in names for word in ("--metric", name)))
    found = {name: entry["value"] for name, entry in report["metrics"].items()}
    assert list(found) == names and report["task"] == "classification" and report["schema"] == "serin.eval/1" and report["rows"] == 540
    close(found["top1"], metrics.accuracy_score(truth, said))
    close(found["top3"], metrics.top_k_accuracy_score(truth, scores, k=3))
    close(found["precision_macro"], metrics.precision_score(truth, said, average="macro", zero_division=0))
    close(found["recall_macro"], metrics.recall_score(truth, said, average="macro"))
    close(found["f1_macro"], metrics.f1_score(truth, said, average="macro"))
    close(found["f1_micro"], metrics.f1_score(truth, said, average="micro"))
    close(found["auc"], metrics.roc_auc_score(truth, scores, multi_class="ovr"), 1e-5)
    close(found["log_loss"], metrics.log_loss(truth, scores), 1e-4)
    close(found["ece"], ece(scores, truth), 1e-4)
    close(found["f1[3]"], metrics.f1_score(truth, said, labels=[3], average="macro"))
    close(found["precision[8]"], metrics.precision_score(truth, said, labels=[8], average="macro", zero_division=0))
    close(found["recall[0]"], metrics.recall_score(truth, said, labels=[0], average="macro"))
    assert report["confusion"]["counts"] == metrics.confusion_matrix(truth, said, labels=range(10)).tolist()
    interval = scipy.stats.binomtest(int((said == truth).sum()), 540).proportion_ci(method="wilson")
    close(report["metrics"]["top1"]["low"], interval.low)
    close(report["metrics"]["top1"]["high"], interval.high)


def test_worst_rows_are_the_surest_mistakes(digits):
    scores = scores_of(1, digits)
    wrong = np.flatnonzero(scores.argmax(1) != digits["label"])
    order = wrong[np.argsort(-scores[wrong].max(1), kind="stable")]
    worst = evaluate(DIGITS / "1", EVAL)["worst"]
    assert [row["row"] for row in worst] == order[:24].tolist()
    assert worst[0]["truth"] == str(digits["label"][order[0]]) and worst[0]["answer"].startswith(f"{scores[order[0]].argmax()} (")


def test_the_digests_are_those_of_sha256sum():
    report = evaluate(DIGITS / "2/model.onnx", EVAL)
    for file in report["model"], report["data"]:
        assert file["sha256"] == subprocess.run(["sha256sum", file["path"]], capture_output=True, text=True, check=True).stdout.split()[0]


def test_binary_scores_and_softmax(tmp_path):
    random = np.random.default_rng(1)
    logits = random.normal(size=(300, 2)).astype(np.float32)
    truth = (logits[:, 1] - logits[:, 0] + random.normal(size=300) > 0).astype(np.int64)
    save_model(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], 2, 2)
    np.savez(tmp_path / "d.npz", x=logits, label=truth)
    arguments = [tmp_path / "m.onnx", tmp_path / "d.npz"]
    assert "metric 'log_loss' needs probabilities, which the scores are not: --softmax" in refused(*arguments, "--metric", "log_loss")
    found = evaluate(*arguments, "--softmax", "--metric", "auc", "--metric", "log_loss")["metrics"]
    chance = np.exp(logits[:, 1]) / np.exp(logits).sum(1)
    close(found["auc"]["value"], metrics.roc_auc_score(truth, chance), 1e-5)
    close(found["log_loss"]["value"], metrics.log_loss(truth, chance), 1e-4)


def test_labels_by_name(tmp_path, digits):
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
    lines = [json.dumps({"pixels": pixels.tolist(), "digit": names[label]}) for pixels, label in zip(digits["pixels"], digits["label"])]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    arguments = [DIGITS / "2", tmp_path / "d.jsonl", "--label", "digit"]
    report = evaluate(*arguments, "--labels", tmp_path / "names.txt", "--metric", "top1", "--metric", "f1[seven]")
    close(report["metrics"]["top1"]["value"], 538 / 540)
    assert report["confusion"]["classes"] == names
    assert "row 0: label '" in refused(*arguments) and "--labels FILE names them" in refused(*arguments)


# --- Gates --------------------------------------------------------------------------------------------------------------------------


def test_thresholds_are_the_exit_code():
    report = evaluate(DIGITS / "1", EVAL, "--require", "top1 >= 95%", "--require", "log_loss<0.2", exit_code=0)
    assert report["verdict"] == "yes" and all(entry["holds"] for entry in report["requirements"])
    report = evaluate(DIGITS / "3", EVAL, "--require", "top1 >= 0.95", "--require", "f1[1] >= 0", exit_code=1)
    assert report["verdict"] == "no" and [entry["holds"] for entry in report["requirements"]] == [False, True]


def test_a_worse_model_is_told_from_a_better_one(digits):
    right = {version: scores_of(version, digits).argmax(1) == digits["label"] for version in (1, 2, 3)}
    better = evaluate(DIGITS / "2", EVAL, "--against", DIGITS / "1", "--no-worse-by", "0.5pt")
    assert better["verdict"] == "yes" and better["comparison"]["verdict"] == "no worse"
    close(better["comparison"]["difference"], right[2].mean() - right[1].mean())
    only_new, only_old = int((right[2] & ~right[1]).sum()), int((right[1] & ~right[2]).sum())
    assert (better["comparison"]["only_new_right"], better["comparison"]["only_old_right"]) == (only_new, only_old)
    close(better["comparison"]["mcnemar_p"], scipy.stats.binomtest(only_new, only_new + only_old).pvalue, 1e-9)
    worse = evaluate(DIGITS / "3", EVAL, "--against", DIGITS / "1", "--no-worse-by", "0.5pt", exit_code=1)
    assert worse["comparison"]["verdict"] == "worse" and worse["comparison"]["high"] < -0.005
    told = evaluate(DIGITS / "3", EVAL, "--against", DIGITS / "1")  # without a margin it is no gate
    assert told["verdict"] == "yes" and told["comparison"]["gate"] is False


def test_too_few_rows_are_inconclusive():
    report = evaluate(DIGITS / "2", EVAL, "--against", DIGITS / "2", "--no-worse-by", "0.1pt", exit_code=4)  # 540 rows cannot show a thousandth
    assert report["verdict"] == "inconclusive" and report["comparison"]["difference"] == 0


def test_a_resampled_comparison_of_a_loss(digits):
    report = evaluate(DIGITS / "3", EVAL, "--against", DIGITS / "1", "--metric", "log_loss", "--no-worse-by", "0.01", exit_code=1)
    assert report["comparison"]["verdict"] == "worse" and report["comparison"]["low"] > 0.01 and "mcnemar_p" not in report["comparison"]
    loss = {version: -np.log(np.clip(scores_of(version, digits)[np.arange(540), digits["label"]], np.finfo(np.float32).eps, 1)) for version in (1, 3)}
    mean = (loss[3] - loss[1]).mean()
    spread = (loss[3] - loss[1]).std() / np.sqrt(540)
    close(report["comparison"]["difference"], mean, 1e-4)
    close(report["comparison"]["low"], mean - 1.645 * spread, 0.05)  # as the central limit says


def test_slices_have_counts_and_intervals(tmp_path, digits):
    shop = np.where(np.arange(540) % 3 == 0, 1, 2)
    np.savez(tmp_path / "d.npz", pixels=digits["pixels"], label=digits["label"], shop=shop)
    report = evaluate(DIGITS / "1", tmp_path / "d.npz", "--slice", "shop", "--metric", "top1", "--metric", "f1_macro")
    assert report["slices"]["column"] == "shop" and [entry["name"] for entry in report["slices"]["values"]] == ["1", "2"]
    said = scores_of(1, digits).argmax(1)
    for entry, number in zip(report["slices"]["values"], (1, 2)):
        mine = shop == number
        assert entry["rows"] == mine.sum()
        close(entry["metrics"]["top1"]["value"], (said == digits["label"])[mine].mean())
        assert entry["metrics"]["top1"]["low"] < entry["metrics"]["top1"]["value"] < entry["metrics"]["top1"]["high"]
        close(entry["metrics"]["f1_macro"]["value"], metrics.f1_score(digits["label"][mine], said[mine], average="macro"))


# --- Other tasks --------------------------------------------------------------------------------------------------------------------


def save_model(path, nodes, inputs, outputs, constants=()):
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", inputs), ("y", outputs))]
    graph = helper.make_graph(nodes, "model", shapes[:1], shapes[1:], [onnx.numpy_helper.from_array(value, name) for name, value in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@pytest.mark.parametrize("outputs", [1, 3])
def test_regression_errors_are_those_of_scikit_learn(tmp_path, outputs):
    random = np.random.default_rng(2)
    weights = random.normal(size=(5, outputs)).astype(np.float32)
    inputs = random.normal(size=(200, 5)).astype(np.float32)
    truth = inputs @ weights + random.normal(size=(200, outputs)).astype(np.float32)
    save_model(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], 5, outputs, [("w", weights)])
    np.savez(tmp_path / "d.npz", x=inputs, target=truth[:, 0] if outputs == 1 else truth)
    report = evaluate(tmp_path / "m.onnx", tmp_path / "d.npz", "--label", "target")
    assert report["task"] == "regression"
    found = {name: entry["value"] for name, entry in report["metrics"].items()}
    said = inputs @ weights
    close(found["mae"], metrics.mean_absolute_error(truth, said), 1e-5)
    close(found["rmse"], metrics.root_mean_squared_error(truth, said), 1e-5)
    close(found["r2"], metrics.r2_score(truth, said), 1e-5)
    assert report["worst"][0]["row"] == np.abs(truth - said).max(1).argmax()


def test_an_unclear_task_is_asked_for(tmp_path):
    save_model(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], 1, 1)
    np.savez(tmp_path / "d.npz", x=np.float32([[0.2], [0.8]]), label=[0, 1])
    arguments = [tmp_path / "m.onnx", tmp_path / "d.npz"]
    assert "labels fit more than one task: give --task classification, regression or embedding" in refused(*arguments)
    assert evaluate(*arguments, "--task", "classification")["metrics"]["top1"]["value"] == 1
    close(evaluate(*arguments, "--task", "regression")["metrics"]["mae"]["value"], 0.2, 1e-5)


def test_recall_of_vectors_is_that_of_numpy(tmp_path, digits):
    save_model(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], 64, 64)
    vectors, truth = digits["pixels"][:200], digits["label"][:200].copy()
    truth[7] = 77  # no other row has it
    np.savez(tmp_path / "d.npz", x=vectors, label=truth)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    nearest = np.argsort(-cosines, axis=1, kind="stable")
    arguments = [tmp_path / "m.onnx", tmp_path / "d.npz", "--task", "embedding"]
    found = evaluate(*arguments, "--metric", "recall@1", "--metric", "recall@3")["metrics"]
    for k in (1, 3):
        close(found[f"recall@{k}"]["value"], (truth[nearest[:, :k]] == truth[:, None]).any(1).mean())
    assert "there is no metric 'recall@0'" in refused(*arguments, "--metric", "recall@0")


# --- Runs ---------------------------------------------------------------------------------------------------------------------------


def test_reports_are_the_same_to_the_last_bit(tmp_path):
    flags = ["--against", DIGITS / "1", "--slice", "label"]
    reports = {}
    for name, more in {"one": ["--jobs", 1], "four": ["--jobs", 4]}.items():
        evaluate(DIGITS / "2", EVAL, *flags, *more, "--out", tmp_path / f"{name}.json")
        reports[name] = (tmp_path / f"{name}.json").read_bytes()
    for shard in "2/2", "1/2":
        assert serin("eval", DIGITS / "2", EVAL, *flags, "--out", tmp_path / "shards.json", "--shard", shard).returncode == 0
    reports["shards"] = (tmp_path / "shards.json").read_bytes()
    assert len(set(reports.values())) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["four.json", "one.json", "shards.json"]


def test_a_stopped_run_goes_on(tmp_path):
    command = ["eval", DIGITS / "4", tmp_path / "few.npz", "--batch", "2", "--jobs", "1"]
    with np.load(EVAL) as file:
        np.savez(tmp_path / "few.npz", pixels=file["pixels"][:40], label=file["label"][:40])
    process = subprocess.Popen([SERIN, *command, "--out", tmp_path / "out.json"], stdout=subprocess.DEVNULL)
    blocks = tmp_path / "out.json.work/1-of-1.blocks"
    while process.poll() is None and not (blocks.exists() and blocks.stat().st_size > 1000):
        pass
    process.kill()
    process.wait()
    for name in "out.json", "whole.json":
        assert serin(*command, "--out", tmp_path / name).returncode == 0
    assert (tmp_path / "out.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


class Page(html.parser.HTMLParser):
    """The tags that are open, and addresses that a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    evaluate(DIGITS / "1", EVAL, "--html", tmp_path / "r.html", "--slice", "label", "--against", DIGITS / "2", "--require", "top1 >= 0.9")
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert not page.open and not page.loads and page.tags.count("svg") == 3 and "script" not in page.tags
    assert not re.search(r"nan|inf\b", text) and "Worst rows" in text and "top1 &gt;= 0.9" in text


# --- Bad input ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    (["--label", "lable"], "--label: there is no column 'lable'; did you mean 'label'?"),
    (["--metric", "acc"], "there is no metric 'acc'"),
    (["--metric", "top11"], "metric 'top11': the answers have the best 10 classes"),
    (["--metric", "f1_makro"], "did you mean 'f1_macro'?"),
    (["--require", "top1"], "--require top1: must be METRIC >= NUMBER"),
    (["--require", "top1 >= much"], "must be METRIC >= NUMBER"),
    (["--require", "rmse < 1"], "--require: there is no metric 'rmse'"),
    (["--no-worse-by", "1pt"], "--no-worse-by needs --against"),
    (["--against", DIGITS / "1", "--no-worse-by", "-1pt"], "--no-worse-by -1pt: must be like 0.5pt"),
    (["--against", DIGITS / "9"], "digits/9: no such model"),
    (["--output", "logits"], "--output logits: the model has no such output; outputs: scores"),
    (["--slice", "shop"], "--slice: there is no column 'shop'"),
    (["--task", "text"], "--task text: output 'scores' is of numbers"),
    (["--labels", "/nowhere/names.txt"], "/nowhere/names.txt"),
])
def test_mistakes_are_named(tmp_path, arguments, message):
    assert message in refused(DIGITS / "2", EVAL, "--work", tmp_path / "work", *arguments)


def test_rows_at_fault_stop_or_are_counted(tmp_path, digits):
    lines = [json.dumps({"pixels": pixels.tolist(), "label": int(label)}) for pixels, label in zip(digits["pixels"][:30], digits["label"])]
    lines[4], lines[9] = '{"pixels": [1], "label": 1}', json.dumps({"pixels": [0] * 64})
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    arguments = [DIGITS / "2", tmp_path / "d.jsonl", "--work", tmp_path / "work"]
    assert "d.jsonl, row 4 (line 5): column 'pixels': has shape [1]" in refused(*arguments, exit_code=3)
    report = evaluate(*arguments[:2], "--on-error", "skip")
    assert (report["rows"], report["faults"]) == (28, 2)
