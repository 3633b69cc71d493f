"""The objects of deploy/neighbours on a real API server: taken strictly and without a warning, by the definitions that each neighbour publishes."""

import copy
import re

import pytest
import yaml
from cluster import BUILT, why_not
from conftest import ROOT
from manifests import chart, kinds, strictly

FOLDER = ROOT / "deploy/neighbours"
FILES = {"versions": [], "argo-rollouts": ["argo-rollouts"], "flagger": ["flagger"], "gateway-api": ["gateway-api"],
         "inference-pool": ["inference-extension", "gateway-api"], "knative": ["knative"], "seldon-v1": ["seldon-v1"], "seldon-v2": ["seldon-v2"]}


def objects(name):
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


@pytest.fixture(scope="module")
def definitions_of(cluster):
    """definitions_of(file): installs once what a file needs. The Go module proxy does not have Seldon's, so they are only where somebody has put them."""
    installed = set()

    def install(name):
        for each in set(FILES[name]) - installed:
            if each.startswith("seldon") and not (BUILT / "crds" / each).is_dir():
                pytest.skip(f"no definitions of Seldon in {BUILT / 'crds' / each}: copy its CustomResourceDefinitions there")
            cluster.install_crds(each)
            installed.add(each)
    return install


def test_every_file_is_tried():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_taken(cluster, namespace, definitions_of, name):
    definitions_of(name)
    verdict = strictly(cluster, namespace, objects(name))
    assert (verdict.complaints, verdict.taken) == ("", len(objects(name)))


def places(value, path=()):
    """The path of each map in a document, but for those whose keys a user chooses."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            if key not in ("labels", "matchLabels", "selector", "annotations", "metadata", "templateVariables", "requests", "limits"):
                yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


@pytest.mark.parametrize("name", FILES)
def test_a_misspelt_field_is_found(cluster, namespace, definitions_of, name):
    """So that the test above can fail: a field too many in one object after the other, at its deepest place."""
    definitions_of(name)
    for document in objects(name):
        wrong = copy.deepcopy(document)
        place = wrong
        for key in max(places(document["spec"], ("spec",)), key=len):
            place = place[key]
        place["mispelt"] = 1
        assert 'mispelt"' in strictly(cluster, namespace, [wrong]).complaints, f"{document['kind']}: not found"


def pods(document):
    """The specifications of pods in a document."""
    if isinstance(document, dict):
        if any("image" in each for each in document.get("containers", [])):
            yield document
        for inner in document.values():
            yield from pods(inner)
    elif isinstance(document, list):
        for inner in document:
            yield from pods(inner)


@pytest.mark.parametrize("name", ["knative", "seldon-v1", "seldon-v2"])
def test_the_pods_meet_the_standard_restricted(cluster, namespace, name):
    """Each as a pod of its own, which a namespace of that standard refuses otherwise."""
    found = [pod for document in objects(name) for pod in pods(document)]
    assert found
    for pod in found:
        spec = {key: pod[key] for key in pod.keys() & {"containers", "volumes", "securityContext"}}
        containers = [{key: each[key] for key in each if key not in ("ports", "readinessProbe", "livenessProbe")} for each in spec["containers"]]
        verdict = strictly(cluster, namespace, [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": {**spec, "containers": containers}}])
        assert (verdict.complaints, verdict.taken) == ("", 1)


@pytest.mark.skipif(bool(why_not("helm")), reason=why_not("helm"))
def test_the_router_of_the_page_knows_the_services_of_the_versions():
    values, = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)]
    values["router"]["enabled"] = True
    config, = [yaml.safe_load(each["data"]["router.yaml"]) for each in kinds(chart(values), "ConfigMap") if "router.yaml" in each["data"]]
    hosts = {version["name"]: re.match(r"http://([^:/]+):8000/", version["endpoints"]["dns"])[1] for version in config["services"][0]["versions"]}
    services = {each["spec"]["selector"]["serin.dev/version"]: each["metadata"]["name"] for each in kinds(objects("versions"), "Service")}
    assert hosts == services
