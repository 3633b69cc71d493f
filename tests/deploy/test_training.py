"""The examples of deploy/training: their pods as Kubernetes knows them, and the objects of other projects by the definitions that these publish."""

import os
import pathlib
import re

import pytest
import yaml
from test_manifests import ROOT, misfits

FOLDER = ROOT / "deploy/training"
BUILT = sorted(pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")).glob("serin/kubernetes/*/crds"))
OF_KUBERNETES = ("", "apps", "batch", "rbac.authorization.k8s.io")
FOREIGN = ("argo-cd", "argo-workflow", "flux", "mpijob", "paddlejob", "pytorchjob", "tfjob")


def objects(name):
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def group_of(document):
    return document["apiVersion"].rpartition("/")[0]


def foreign(name):
    return [document for document in objects(name) if group_of(document) not in OF_KUBERNETES]


def pods(value):
    """All pod templates in a document."""
    if isinstance(value, dict):
        if "containers" in value.get("template", {}).get("spec", {}) if isinstance(value.get("template"), dict) else False:
            yield value["template"]
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def test_the_page_names_every_file():
    page = (FOLDER / "README.md").read_text()
    assert {path.name for path in FOLDER.iterdir()} - {"README.md"} == set(re.findall(r"`([\w-]+\.ya?ml|Jenkinsfile)`", page.partition("## Once")[0]))


def test_kubernetes_knows_every_field(tmp_path):
    assert misfits(FOLDER / "release.yaml", FOLDER / "slots.yaml") == []
    made = [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}, "template": pod} for name in FOREIGN for pod in pods(foreign(name))]
    assert len(made) == 7
    written = tmp_path / "pods.yaml"
    written.write_text(yaml.safe_dump_all(made))
    assert misfits(written) == []


def test_jobs_and_runtimes_fit_each_other():
    made = {(each["kind"], each["metadata"]["name"]): each for name in ("release", "slots") for each in objects(name)}
    policy = yaml.safe_load(made["ConfigMap", "digits-release"]["data"]["release.yaml"])
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())["router"]["services"][0]
    for slot, entry in policy["slots"].items():
        runtime = made["StatefulSet", f"serin-{slot}"]["spec"]
        assert f"registry:///registry/digits:{slot}" in runtime["template"]["spec"]["containers"][0]["args"]
        assert runtime["serviceName"] == made["Service", f"serin-{slot}"]["metadata"]["name"]
        assert entry["runtimes"] == [f"http://serin-{slot}-{index}.serin-{slot}:8000" for index in range(runtime["replicas"])]
    assert [(version["name"], version["url"]) for version in values["versions"]] == [(slot, f"http://serin-{slot}:8000/v2/models/digits") for slot in policy["slots"]]
    claims = {name for kind, name in made if kind == "PersistentVolumeClaim"}
    mounted = {volume["persistentVolumeClaim"]["claimName"] for each in made.values() for pod in pods(each) for volume in pod["spec"]["volumes"]
               if "persistentVolumeClaim" in volume}
    assert mounted == claims
    permitted = {f"{resource}.kubeflow.org/digits" for resource in made["Role", "digits-release"]["rules"][0]["resources"]}
    waited = {objects(name)[0]["data"]["job"] for name in FOREIGN if name.endswith("job")}
    assert waited == permitted


# --- by the definitions of other projects ------------------------------------------------------------------------------------------------


def schemas():
    """{(group, version, kind): schema} of everything that build-control-plane has fetched."""
    found = {}
    for file in (file for folder in BUILT for file in folder.glob("*/*.yaml")):
        for each in yaml.load_all(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            for version in each["spec"]["versions"] if each and each["kind"] == "CustomResourceDefinition" else []:
                found[each["spec"]["group"], version["name"], each["spec"]["names"]["kind"]] = version["schema"]["openAPIV3Schema"]
    return found


@pytest.fixture(scope="module")
def schema_of():
    known = schemas()

    def find(document):
        group, _, version = document["apiVersion"].rpartition("/")
        schema = known.get((group, version, document["kind"]))
        if schema is None:
            pytest.skip(f"no definition of {document['kind']} of {group}: run tests/kubernetes/build-control-plane")
        return schema
    return find


def complaints(value, schema, path):
    """As an API server that validates strictly: a field that the definition does not have, one that is missing, another type."""
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, (int, str)) else [path]
    kind = schema.get("type")
    if kind == "object":
        return complaints_of_object(value, schema, path)
    if kind == "array":
        return [each for index, item in enumerate(value) for each in complaints(item, schema["items"], f"{path}[{index}]")] if isinstance(value, list) else [path]
    types = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}
    wrong = kind in types and (not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool)))
    refused = ("enum" in schema and value not in schema["enum"]) or (kind == "string" and not wrong and not re.search(schema.get("pattern", ""), value))
    return [path] if wrong or refused else []


def complaints_of_object(value, schema, path):
    if not isinstance(value, dict):
        return [path]
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    found = [f"{path}.{key}" for key in schema.get("required", []) if key not in value]
    for key, inner in value.items():
        if key in known:
            found += complaints(inner, known[key], f"{path}.{key}")
        elif isinstance(others, dict):
            found += complaints(inner, others, f"{path}.{key}")
        elif known and not others and not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.append(f"{path}.{key}")
    return found


@pytest.mark.parametrize("name", FOREIGN)
def test_an_object_fits_the_definition_of_its_kind(schema_of, name):
    for document in foreign(name):
        assert complaints(document, schema_of(document), "") == []
        document["spec"]["misspelt"] = 1
        assert complaints(document, schema_of(document), "") == [".spec.misspelt"]
