"""`serin rollout import`: each file of imports/ becomes the one next to it, and what comes out is a valid specification."""

import pytest

from conftest import ROOT, serin

FOLDER = ROOT / "tests" / "e2e" / "router" / "imports"
CASES = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.endswith(".rollout.yaml"))


@pytest.mark.parametrize("source", CASES, ids=lambda path: path.stem)
def test_a_rollout_of_another_system_is_carried_over(source, tmp_path):
    options = [line.removeprefix("# options: ").split() for line in source.read_text().splitlines() if line.startswith("# options: ")]
    done = serin("rollout", "import", source, *(options[0] if options else []))
    assert done.returncode == 0, done.stderr
    assert done.stdout == source.with_suffix(".rollout.yaml").read_text()
    assert done.stderr == source.with_suffix(".lost").read_text()
    written = tmp_path / "rollout.yaml"
    written.write_text(done.stdout)
    assert serin("rollout", "validate", written).returncode == 0


@pytest.mark.parametrize("text, words", [
    ("kind: Deployment\napiVersion: apps/v1\n", ["Argo", "Flagger", "KServe", "Seldon"]),
    ("", ["can be imported"]),
    ("{{{", ["not YAML"]),
    ("kind: Rollout\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: x}\n", ["spec.strategy.canary"]),
    ("kind: Rollout\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: x}\nspec: {strategy: {canary: {}}}\n", ["--canary"]),
    ("kind: Canary\napiVersion: flagger.app/v1beta1\n", ["spec.analysis"]),
    ("kind: SeldonDeployment\napiVersion: machinelearning.seldon.io/v1\nspec: {predictors: [{name: a}]}\n", ["one version only"]),
    ("kind: InferenceService\napiVersion: serving.kserve.io/v1beta1\nmetadata: {name: x}\nspec: [1, 2]\n", ["canaryTrafficPercent"]),
])
def test_c1_what_cannot_be_imported_is_said(tmp_path, text, words):
    path = tmp_path / "manifest.yaml"
    path.write_text(text)
    done = serin("rollout", "import", path)
    assert done.returncode == 2 and done.stdout == "" and all(word in done.stderr for word in words), done.stderr
