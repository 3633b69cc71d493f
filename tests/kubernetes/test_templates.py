"""The objects of `serin plan --template` on a real API server: taken strictly and without a warning, in a namespace for restricted pods; replicas get ready."""

import pytest
import yaml
from conftest import MODELS, ROOT, serin
from manifests import await_ready, kinds, strictly

TEMPLATES = ROOT / "deploy/templates"


@pytest.mark.parametrize("name", sorted(path.stem for path in TEMPLATES.glob("*.yaml")))
def test_a_template_is_taken_and_gets_ready(cluster, namespace, name):
    model = [] if name == "digits" else [MODELS / "digits/2/model.onnx"]
    done = serin("plan", *model, "--template", TEMPLATES / f"{name}.yaml", "--explain", "--format", "kubernetes", env={"XDG_CACHE_HOME": "/dev/null"})
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    verdict = strictly(cluster, namespace, objects)
    assert (verdict.complaints, verdict.taken) == ("", 4)
    cluster.create_volumes(1)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
             "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    assert strictly(cluster, namespace, [claim, *objects], dry_run=False).complaints == ""
    least = kinds(objects, "HorizontalPodAutoscaler")[0]["spec"]["minReplicas"]
    assert set(await_ready(cluster, namespace).values()) <= {1, least}
