"""A Deployment as far as processes on this machine can be its pods: args, environment, mounts, ports, probes, hook, grace period, limits, strategy.

    template = read_template(deployment)
    template.command(address="127.1.0.1", ports={"http": 21000, ...}, folders={"models": folder, "tmp": folder})

What is known and has no counterpart here (users, a read-only root, placement) is listed. Any other field is refused: a test must not pass because its
manifest asks for something that nobody does.
"""

import dataclasses
import math
import re

# Of pods and containers: images, rights and placement, which processes of one user on one machine do not have.
NOT_HERE = {"affinity", "automountServiceAccountToken", "enableServiceLinks", "image", "imagePullPolicy", "imagePullSecrets", "nodeSelector",
            "priorityClassName", "securityContext", "serviceAccountName", "tolerations", "topologySpreadConstraints"}
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
PORT_FLAGS = {"http": "--port", "grpc": "--grpc-port", "metrics": "--metrics-port"}  # of `serin serve`, by the names of a container's ports


class NotUnderstood(Exception):
    """A field that the harness does not have."""


def only(of, known, where):
    unknown = of.keys() - known
    if unknown:
        raise NotUnderstood(f"{where}: {', '.join(sorted(unknown))}")
    return of


def quantity(text):
    """`500m`, `2`, `64Mi`."""
    number, unit = re.fullmatch(r"([\d.]+)(m|k|M|G|Ki|Mi|Gi|)", str(text)).groups()
    return float(number) / 1000 if unit == "m" else float(number) * UNITS[unit]


@dataclasses.dataclass(frozen=True)
class Probe:
    """With the defaults of Kubernetes."""

    path: str
    port: object  # a name, or a number of containerPort
    scheme: str = "HTTP"
    delay: float = 0
    period: float = 10
    timeout: float = 1
    successes: int = 1
    failures: int = 3
    grace: object = None  # of a container that fails it, instead of the pod's

    NAMES = {"initialDelaySeconds": "delay", "periodSeconds": "period", "timeoutSeconds": "timeout", "successThreshold": "successes",
             "failureThreshold": "failures", "terminationGracePeriodSeconds": "grace"}

    @classmethod
    def read(cls, probe, where):
        if probe is None:
            return None
        only(probe, {"httpGet", *cls.NAMES}, where)
        return cls(**only(probe["httpGet"], {"path", "port", "scheme"}, where), **{name: probe[key] for key, name in cls.NAMES.items() if key in probe})


@dataclasses.dataclass(frozen=True)
class Template:
    args: list
    env: list
    secrets: list  # names of Secrets whose entries are variables
    ports: dict    # name: containerPort
    mounts: dict   # path in the container: name of the volume
    volumes: dict  # name: {its kind: ...}
    startup: object
    readiness: object
    liveness: object
    pre_stop: float  # seconds of its sleep
    grace: float
    cores: object    # limits; None without one
    memory: object

    def command(self, address, ports, folders):
        """The args as a process on this machine needs them: paths of mounts are folders, it listens at the pod's own address and on its own ports."""
        if self.args[0] != "serve":
            raise NotUnderstood(f"the ports of `serin {self.args[0]}`")
        args = [self._mapped(word, folders) for word in self.args]
        args = [address + word.removeprefix("0.0.0.0") if re.match(r"0\.0\.0\.0(:|$)", word) else word for word in args]
        for name, flag in PORT_FLAGS.items():
            if name in ports:
                at = args.index(flag) if flag in args else len(args)
                args[at:at + 2] = [flag, str(ports[name])]
        return args

    def environment(self, address, pod, folders, secrets=None):
        """`secrets`: the folder of each, a file for each entry."""
        fields = {"status.podIP": address, "metadata.name": pod}
        given = {}
        for secret in self.secrets:
            if secret not in (secrets or {}):
                raise NotUnderstood(f"no Secret {secret}")
            given |= {file.name: file.read_text() for file in sorted(secrets[secret].iterdir())}
        for each in self.env:
            only(each, {"name", "value", "valueFrom"}, "env")
            if "valueFrom" in each:
                field = only(each["valueFrom"], {"fieldRef"}, f"env {each['name']}")["fieldRef"]["fieldPath"]
                if field not in fields:
                    raise NotUnderstood(f"env {each['name']}: {field}")
            given[each["name"]] = fields[field] if "valueFrom" in each else self._mapped(each["value"], folders)
        return given

    def port(self, probe, ports):
        name = probe.port if isinstance(probe.port, str) else next(name for name, number in self.ports.items() if number == probe.port)
        return ports[name]

    def _mapped(self, word, folders):
        for path, volume in self.mounts.items():
            if word == path or word.startswith(path + "/"):
                return f"{folders[volume]}{word[len(path):]}"
        return word


def read_template(deployment):
    spec = only(deployment["spec"]["template"]["spec"], {"terminationGracePeriodSeconds", "containers", "volumes", *NOT_HERE}, "pod")
    if len(spec["containers"]) != 1:
        raise NotUnderstood("a pod of several containers")
    container = only(spec["containers"][0], {"name", "args", "env", "envFrom", "ports", "startupProbe", "livenessProbe", "readinessProbe", "lifecycle",
                                             "resources", "volumeMounts", *NOT_HERE}, "container")
    hook = only(container.get("lifecycle", {}), {"preStop"}, "lifecycle").get("preStop", {})
    limits = container.get("resources", {}).get("limits", {})
    for each in container.get("volumeMounts", []):
        only(each, {"name", "mountPath", "readOnly"}, "volumeMounts")
    return Template(
        args=list(map(str, container.get("args", []))),
        env=container.get("env", []),
        secrets=[only(only(each, {"secretRef"}, "envFrom")["secretRef"], {"name"}, "secretRef")["name"] for each in container.get("envFrom", [])],
        ports={port["name"]: port["containerPort"] for port in container.get("ports", [])},
        mounts={each["mountPath"]: each["name"] for each in container.get("volumeMounts", [])},
        volumes={each["name"]: {key: value for key, value in each.items() if key != "name"} for each in spec.get("volumes", [])},
        **{name: Probe.read(container.get(f"{name}Probe"), f"{name}Probe") for name in ("startup", "readiness", "liveness")},
        pre_stop=only(hook, {"sleep"}, "preStop").get("sleep", {}).get("seconds", 0),
        grace=spec.get("terminationGracePeriodSeconds", 30),
        cores=quantity(limits["cpu"]) if "cpu" in limits else None,
        memory=int(quantity(limits["memory"])) if "memory" in limits else None)


def read_strategy(deployment):
    """(pods beyond the replicas, replicas that may be missing) of a rolling update."""
    strategy = only(deployment["spec"].get("strategy", {}), {"type", "rollingUpdate"}, "strategy")
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        raise NotUnderstood(f"strategy {strategy['type']}")
    replicas = deployment["spec"].get("replicas", 1)
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%", **strategy.get("rollingUpdate", {})}

    def pods(value, rounded):
        return rounded(replicas * int(value[:-1]) / 100) if isinstance(value, str) else value
    return pods(rolling["maxSurge"], math.ceil), pods(rolling["maxUnavailable"], math.floor)
