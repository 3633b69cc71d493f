"""Manifests as users get them: overlays that kustomize builds, and charts that helm renders; and what a strict API server says of them."""

import dataclasses
import os
import pathlib
import subprocess

import yaml
from cluster import VERSION, program
from conftest import ROOT, wait_until

CHART = ROOT / "deploy/helm/serin"
KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
NEIGHBOURS = ("prometheus-operator", "keda", "istio", "kserve")  # whose kinds the overlays have
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")


def overlay(name):
    """The objects of an overlay; of the base by that name."""
    folder = KUBERNETES / (name if name == "base" else f"overlays/{name}")
    return list(yaml.safe_load_all(_output(program("kustomize"), "build", folder)))


def chart(values, *arguments, release="serin"):
    """The objects that helm makes of values, without its test."""
    done = helm_template(values, "--skip-tests", *arguments, release=release)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def helm_template(values, *arguments, release="serin"):
    command = [program("helm"), "template", release, CHART, "--namespace", "models", "--kube-version", VERSION, "--values", "-", *arguments]
    return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False, timeout=60)


def _output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def helm(cluster, namespace, *arguments, values=None):
    """A helm that works on the cluster; its output."""
    home = cluster.folder / "helm"
    env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    command = [program("helm"), *arguments, "--kubeconfig", cluster.kubeconfig, "--namespace", namespace, *(["--values", "-"] if values is not None else [])]
    done = subprocess.run([str(word) for word in command], input=yaml.safe_dump(values or {}), capture_output=True, text=True, check=False, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kinds(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def pod_templates(objects):
    return [each for each in objects if each["kind"] in ("Deployment", "StatefulSet")]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the API server said: an empty text where it has taken all, and warned of nothing."""

    complaints: str
    taken: int


def strictly(cluster, namespace, objects, dry_run=True):
    """Creates them, or only asks whether it could, with no unknown and no repeated field."""
    done = cluster.run_kubectl("-n", namespace, "create", "--validate=strict", *(["--dry-run=server"] if dry_run else []), "-f", "-",
                               stdin=yaml.safe_dump_all(objects))
    return Verdict(done.stderr + ("" if done.returncode == 0 else f"exit code {done.returncode}"), len(done.stdout.splitlines()))


def await_ready(cluster, namespace, seconds=90):
    """Until all replicas of all that makes pods are ready; {name: how many}."""
    def ready():
        listed = cluster.get("-n", namespace, "deployments,statefulsets")["items"]
        counts = {each["metadata"]["name"]: each["status"].get("readyReplicas", 0) for each in listed}
        done = all(each["status"].get("observedGeneration") == each["metadata"]["generation"] and
                   counts[each["metadata"]["name"]] == each["spec"]["replicas"] == each["status"].get("updatedReplicas", 0) for each in listed)
        return counts if listed and done else None
    return wait_until(ready, seconds, f"all replicas in {namespace} ready")


def files_of(folder):
    """{relative path: text} of the YAML files below a folder."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.yaml"))}
