"""The manifests and the chart on a real API server: every object is taken strictly and without a warning, in a namespace for restricted pods; replicas get ready."""

import pytest
import yaml
from conftest import wait_until
from manifests import CHART, KUBERNETES, NEIGHBOURS, OVERLAYS, await_ready, chart, helm, kinds, overlay, pod_templates, strictly
from value_sets import GOOD

OF_THE_CLUSTER = {"PriorityClass", "ClusterServingRuntime"}
DEFINITION = "CustomResourceDefinition"


@pytest.fixture(scope="module", autouse=True)
def neighbours(cluster):
    """Their kinds, and Serin's own."""
    cluster.install_crds(*NEIGHBOURS)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-k", KUBERNETES / "crds")


def is_taken_and_gets_ready(cluster, namespace, objects):
    objects = [each for each in objects if each["kind"] != DEFINITION]  # the fixture above has created them
    verdict = strictly(cluster, namespace, objects)
    assert (verdict.complaints, verdict.taken) == ("", len(objects))
    objects = [each for each in objects if each["kind"] != "APIService"]  # behind which nobody is: namespaces would not go
    cluster.create_volumes(3)
    everything = [{**each, "metadata": {**each["metadata"], "namespace": namespace}} if each["kind"] not in OF_THE_CLUSTER else each for each in objects]
    for each in kinds(objects, "PriorityClass"):
        cluster.kubectl("delete", "priorityclass", each["metadata"]["name"], "--ignore-not-found")
    verdict = strictly(cluster, namespace, everything, dry_run=False)
    assert (verdict.complaints, verdict.taken) == ("", len(objects))
    if not pod_templates(objects):
        return {}
    smallest = {each["spec"]["scaleTargetRef"]["name"]: each["spec"]["minReplicas"] for each in kinds(objects, "HorizontalPodAutoscaler")}
    wait_until(lambda: all(cluster.get("-n", namespace, "deployment", name)["spec"]["replicas"] >= count for name, count in smallest.items()), 60, "scaled")
    counts = await_ready(cluster, namespace)
    expected = {each["metadata"]["name"]: smallest.get(each["metadata"]["name"], each["spec"].get("replicas", 1)) for each in pod_templates(objects)}
    assert counts == expected
    return counts


@pytest.mark.parametrize("name", ["base", *(name for name in OVERLAYS if name != "kserve")])
def test_an_overlay_is_taken_and_gets_ready(cluster, namespace, name):
    assert is_taken_and_gets_ready(cluster, namespace, overlay(name))


def test_the_overlay_of_kserve_is_taken(cluster, namespace):
    objects = overlay("kserve")
    assert sorted({each["kind"] for each in objects}) == ["ClusterServingRuntime", "InferenceService"]
    verdict = strictly(cluster, namespace, objects)
    assert (verdict.complaints, verdict.taken) == ("", len(objects))


@pytest.mark.parametrize("name", GOOD)
def test_a_chart_is_taken_and_gets_ready(cluster, namespace, name):
    is_taken_and_gets_ready(cluster, namespace, chart(GOOD[name]))


def test_what_is_wrong_is_found(cluster, namespace):
    """So that the tests above can fail."""
    objects = overlay("base")
    pod = kinds(objects, "Deployment")[0]["spec"]["template"]["spec"]
    pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    assert 'would violate PodSecurity "restricted:latest"' in strictly(cluster, namespace, objects).complaints
    pod["containers"][0]["livenesProbe"] = {}
    assert 'unknown field "spec.template.spec.containers[0].livenesProbe"' in strictly(cluster, namespace, objects).complaints


def test_an_upgrade_leaves_the_number_of_replicas_alone(cluster, namespace):
    cluster.create_volumes(1)
    values = GOOD["defaults"]
    helm(cluster, namespace, "install", "serin", CHART, values=values)
    await_ready(cluster, namespace)
    cluster.kubectl("-n", namespace, "scale", "deployment/serin", "--replicas=7")
    assert await_ready(cluster, namespace) == {"serin": 7}
    helm(cluster, namespace, "upgrade", "serin", CHART, values={**values, "image": {"tag": "next"}})
    changed = cluster.get("-n", namespace, "deployment", "serin")["spec"]
    assert (changed["replicas"], changed["template"]["spec"]["containers"][0]["image"]) == (7, "serin:next")
    assert await_ready(cluster, namespace) == {"serin": 7}
    notes = helm(cluster, namespace, "get", "notes", "serin")
    assert f"http://serin.{namespace}.svc:8000" in notes and f"helm -n {namespace} test serin" in notes


@pytest.mark.parametrize("way", [[], ["--server-side"]], ids=["client", "server"])
def test_applying_again_leaves_the_number_of_replicas_alone(cluster, namespace, way):
    objects = overlay("cpu")
    cluster.create_volumes(1)
    for tag in ("one", "two"):
        kinds(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["image"] = f"serin:{tag}"
        cluster.kubectl("-n", namespace, "apply", *way, "-f", "-", stdin=yaml.safe_dump_all(objects))
        if tag == "one":
            cluster.kubectl("-n", namespace, "scale", "deployment/serin", "--replicas=5")
    assert await_ready(cluster, namespace) == {"serin": 5}
