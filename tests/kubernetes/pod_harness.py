"""The pods of a Deployment as real processes, with what kubelet and the Deployment's controller do to them on the manifest's own timings.

    with Pods(deployment, tmp_path, volumes={"models": MODELS}, publish=EndpointFile(tmp_path / "endpoints.txt"), replicas=6) as pods:
        pods.await_ready()
        pods.restart()                # as `kubectl rollout restart`
        pods.await_rollout()
        pods.drain("node-1", notice=120)
        pods.scale(0)

Each pod has an address of its own on loopback, or ports of its own at one address. Of kubelet there are: startup, readiness and liveness probes, preStop, SIGTERM, the grace period, SIGKILL,
restarts with their back-off, and limits as cgroups where this user may make some. Of controllers there are: rolling updates by maxSurge and
maxUnavailable, replacement of pods that go, spreading over nodes, and endpoints as an EndpointSlice has them.
"""

import dataclasses
import http.client
import itertools
import os
import queue
import signal
import ssl
import subprocess
import threading
import time

from conftest import SERIN, free_port, wait_until
from pod_cgroup import Groups
from pod_manifest import NotUnderstood, only, read_strategy, read_template

SHORTEST_GRACE = 2  # seconds that kubelet leaves between SIGTERM and SIGKILL, however long the hook took
RELIST = 1  # second until kubelet sees that a process has ended
BACK_OFF = [0, 10, 20, 40, 80, 160, 300]  # seconds before each restart of a container


@dataclasses.dataclass(frozen=True)
class PodEndpoint:
    """One entry of an EndpointSlice."""

    pod: str
    node: str
    address: str
    ports: dict  # name: number
    serving: bool
    terminating: bool

    @property
    def ready(self):
        return self.serving and not self.terminating


class EndpointFile:
    """Tells a router by a file (`endpoints: {file: ...}`): the ready ones, as kube-proxy would choose. Whatever else has publish() can take its place."""

    def __init__(self, path, port="http"):
        self.path, self.port = path, port
        self.publish([])

    def publish(self, endpoints):
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"http://{each.address}:{each.ports[self.port]}\n" for each in endpoints if each.ready))
        os.replace(new, self.path)


class Prober(threading.Thread):
    """Asks at the probe's pace until it is stopped, and tells its verdict whenever that was reached once more."""

    def __init__(self, probe, address, port, tell):
        super().__init__(daemon=True)
        self.probe, self.address, self.port, self.tell = probe, address, port, tell
        self._stop_asking = threading.Event()
        self.start()

    def stop(self):
        self._stop_asking.set()

    def run(self):
        due, last, times = time.monotonic() + self.probe.delay, None, 0
        while not self._stop_asking.wait(max(0, due - time.monotonic())):
            good = self._ask()
            last, times = good, times + 1 if good == last else 1
            if times >= (self.probe.successes if good else self.probe.failures) and not self._stop_asking.is_set():
                self.tell(good)
            due = max(time.monotonic(), due + self.probe.period)

    def _ask(self):
        of_tls = {"context": ssl._create_unverified_context()} if self.probe.scheme == "HTTPS" else {}
        kind = http.client.HTTPSConnection if of_tls else http.client.HTTPConnection
        connection = kind(self.address, self.port, timeout=self.probe.timeout, **of_tls)
        try:
            connection.request("GET", self.probe.path, headers={"User-Agent": "kube-probe/1.36", "Connection": "close"})
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class Run:
    """One process of a container, from its start to its end."""

    def __init__(self, command, env, log, group, ended):
        self.started, self.ready_after, self.killed = time.monotonic(), None, False
        self.gone = threading.Event()
        with open(log, "ab") as out:
            self.process = subprocess.Popen([*(group.run_by if group else []), SERIN, *command], stdout=out, stderr=out, env=env)
        threading.Thread(target=self._wait, args=(ended,), daemon=True).start()

    def _wait(self, ended):
        self.process.wait()
        self.gone.set()
        ended()

    @property
    def code(self):
        return self.process.returncode


class Pod:
    """`changed()` is called after each change of what an EndpointSlice says of it, and once it is gone."""

    def __init__(self, template, name, revision, node, address, ports, home, volumes, groups, changed):
        self.template, self.name, self.revision, self.node, self.address, self.ports = template, name, revision, node, address, ports
        self.log, self.runs = home / f"{name}.log", []
        self.serving = self.terminating = False
        self.gone = threading.Event()
        self._home, self._changed, self._grace, self._probers = home / name, changed, template.grace, {}
        self._sources = volumes
        self._events = queue.Queue()  # (run or None, what, value)
        self._folders = {volume: self._folder(volume, kind, volumes) for volume, kind in template.volumes.items()}
        self._group = groups.make(name, template.cores, template.memory) if groups else None
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def restarts(self):
        return len(self.runs) - 1

    @property
    def process(self):
        return self.runs[-1].process

    def endpoint(self):
        return PodEndpoint(self.name, self.node, self.address, self.ports, self.serving, self.terminating)

    def delete(self, grace=None):
        """As of `kubectl delete pod`: it is no ready endpoint from now on, while hook, SIGTERM and grace period follow."""
        if self.terminating:
            return
        self._grace = self.template.grace if grace is None else min(grace, self.template.grace)
        self.terminating = True
        self._events.put((None, "delete", None))
        self._changed()

    def end_at_once(self):
        """After the test: a second signal cuts the drain short."""
        self.delete()
        for run in self.runs[-1:]:
            for number in (signal.SIGTERM, signal.SIGINT) if not run.gone.is_set() else ():
                run.process.send_signal(number)

    def _folder(self, volume, kind, volumes):
        """Of a claim, a ConfigMap or a Secret it is the test's own; an emptyDir is new."""
        if "emptyDir" in only(kind, {"emptyDir", "persistentVolumeClaim", "configMap", "secret"}, f"volume {volume}"):
            (self._home / volume).mkdir(parents=True)
            return self._home / volume
        names = {"persistentVolumeClaim": "claimName", "configMap": "name", "secret": "secretName"}
        return next(volumes[source[names[key]]] for key, source in kind.items())

    def _keep(self):
        delays = itertools.chain(BACK_OFF, itertools.repeat(BACK_OFF[-1]))
        while not self.terminating:
            run = self._begin()
            grace = self._watch(run)
            if run.gone.is_set():
                self._await_deletion(RELIST)
            else:
                self._stop(run, grace)
            self._stop_probing(*self._probers)
            self._report(run, False)
            if not self.terminating:
                self._await_deletion(next(delays))
        if self._group:
            self._group.remove()
        self.gone.set()
        self._changed()

    def _begin(self):
        command = self.template.command(self.address, self.ports, self._folders)
        env = {"PATH": os.environ["PATH"], **self.template.environment(self.address, self.name, self._folders, self._sources)}
        run = Run(command, env, self.log, self._group, lambda: self._events.put((None, "ended", None)))
        self.runs.append(run)
        self._probe(run, *(["startup"] if self.template.startup else ["readiness", "liveness"]))
        if not self.template.readiness and not self.template.startup:
            self._report(run, True)
        return run

    def _probe(self, run, *kinds):
        for kind in kinds:
            probe = getattr(self.template, kind)
            if probe:
                tell = (lambda good: self._report(run, good)) if kind == "readiness" else (lambda good, kind=kind: self._events.put((run, kind, good)))
                self._probers[kind] = Prober(probe, self.address, self.template.port(probe, self.ports), tell)

    def _stop_probing(self, *kinds):
        for kind in kinds:
            if kind in self._probers:
                self._probers.pop(kind).stop()

    def _watch(self, run):
        """Until the process has ended, or must; then within how many seconds."""
        while True:
            of, what, good = self._events.get()
            if run.gone.is_set() or self.terminating:
                self._stop_probing("startup", "liveness")  # readiness is asked to the end
                return self._grace
            if of is not run:
                continue
            if good and what == "startup" and what in self._probers:
                self._stop_probing("startup")
                self._probe(run, "readiness", "liveness")
                if not self.template.readiness:
                    self._report(run, True)
            elif not good:
                self._stop_probing("startup", "liveness")
                own = getattr(self.template, what).grace
                return self.template.grace if own is None else own

    def _stop(self, run, grace):
        """preStop, SIGTERM, SIGKILL; the hook's time counts."""
        began = time.monotonic()
        if not run.gone.wait(min(self.template.pre_stop, grace)):
            run.process.terminate()
            if not run.gone.wait(max(SHORTEST_GRACE, grace - (time.monotonic() - began))):
                run.killed = True
                run.process.kill()
                run.gone.wait()

    def _await_deletion(self, seconds):
        due = time.monotonic() + seconds
        while not self.terminating and (left := due - time.monotonic()) > 0:
            try:
                self._events.get(timeout=left)
            except queue.Empty:
                return

    def _report(self, run, good):
        good = good and not run.gone.is_set()
        if good and run.ready_after is None:
            run.ready_after = time.monotonic() - run.started
        if good != self.serving:
            self.serving = good
            self._changed()


class Pods:
    """`volumes`: the folder of each claim, ConfigMap and Secret by its name. `publish`: what has publish([PodEndpoint]). `address`: of all pods, whose ports
    then differ; None: addresses on loopback, and the same ports."""

    def __init__(self, deployment, home, volumes, publish, replicas=None, nodes=("node-1", "node-2", "node-3"), address=None):
        spec = deployment["spec"]
        self.replicas = spec.get("replicas", 1) if replicas is None else replicas
        self.template = read_template(deployment)
        self.surge, self.missing = read_strategy({"spec": {**spec, "replicas": self.replicas}})
        if spec.get("minReadySeconds"):
            raise NotUnderstood("minReadySeconds")
        self.all, self.gone = [], []  # pods
        self._name, self._home, self._volumes, self._publish, self._nodes = deployment["metadata"]["name"], home, volumes, publish, list(nodes)
        self._address, self._ports = address, {name: free_port() for name in self.template.ports}
        self._numbers, self._revision, self._told = itertools.count(1), 1, None
        self._lock = threading.RLock()
        self._wake, self._over = threading.Event(), False
        self._groups, self.no_limits = Groups.find()
        self._controller = threading.Thread(target=self._control, daemon=True)

    def __enter__(self):
        print(f"limits of pods: {self.no_limits or f'{self.template.cores} cores, {self.template.memory} bytes'}")
        self._wake.set()
        self._controller.start()
        return self

    def __exit__(self, *_):
        self._over = True
        self._wake.set()
        self._controller.join()
        left = self.all
        for pod in left:
            pod.end_at_once()
        for pod in left:
            assert pod.gone.wait(60), f"{pod.name} does not end"
        if self._groups:
            self._groups.remove()
        bad = {pod.name: pod.log.read_text(errors="replace")[-2000:] for pod in left if pod.runs and pod.runs[-1].code}
        assert not bad, bad

    def scale(self, replicas):
        self.replicas = replicas
        self._wake.set()

    def restart(self):
        self._revision += 1
        self._wake.set()

    def drain(self, node, notice=120):
        """A node that goes after a notice: nothing is placed there, its pods end within the notice or their own grace period, and replacements start now."""
        with self._lock:
            self._nodes.remove(node)
            leaving = [pod for pod in self.all if pod.node == node]
        for pod in leaving:
            pod.delete(notice)
        return leaving

    def await_ready(self, seconds=60):
        """As many ready pods of this revision as there should be, and no other but those that go."""
        def ready():
            with self._lock:
                alive = [pod for pod in self.all if not pod.terminating]
                return len(alive) == self.replicas and all(pod.serving and pod.revision == self._revision for pod in alive)
        wait_until(ready, seconds, f"{self.replicas} pods ready")
        return [pod for pod in self.all if not pod.terminating]

    def await_rollout(self, seconds=180):
        """The same, and the pods before are gone."""
        self.await_ready(seconds)
        wait_until(lambda: len(self.all) == self.replicas, seconds, "the pods before gone")

    def _control(self):
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                self.gone += [pod for pod in self.all if pod.gone.is_set()]
                self.all = [pod for pod in self.all if not pod.gone.is_set()]
                if self._over:
                    return
                self._reconcile()
                endpoints = [pod.endpoint() for pod in self.all]
                if endpoints != self._told:
                    self._publish.publish(endpoints)
                    self._told = endpoints

    def _reconcile(self):
        """One round of a rolling update; without an older revision the same rules only fill up or scale down."""
        alive = [pod for pod in self.all if not pod.terminating]
        new = [pod for pod in alive if pod.revision == self._revision]
        old = [pod for pod in alive if pod.revision != self._revision]
        for _ in range(min(self.replicas - len(new), self.replicas + self.surge - len(alive) if old else self.replicas)):
            self._create()
        for pod in sorted(new, key=lambda pod: pod.serving)[:max(0, len(new) - self.replicas)]:
            pod.delete()
        spare = sum(pod.serving for pod in alive) - (self.replicas - self.missing)
        for pod in sorted(old, key=lambda pod: pod.serving):
            if not pod.serving:
                pod.delete()  # it is missed by nobody
            elif spare > 0:
                spare -= 1
                pod.delete()

    def _create(self):
        number = next(self._numbers)
        taken = [pod.node for pod in self.all if not pod.terminating]
        node = min(self._nodes, key=taken.count)
        address, ports = f"127.1.{number // 250}.{number % 250 + 1}", self._ports
        if self._address:
            address, ports = self._address, {name: free_port() for name in self._ports}
        self.all.append(Pod(self.template, f"{self._name}-{number}", self._revision, node, address, ports, self._home, self._volumes, self._groups, self._wake.set))
