"""Pods that are real processes of this machine, by the container of a manifest: what the kubelet and the controllers of a Deployment and of EndpointSlices do.

    with Deployment(manifest, pods, host, models, folder, replicas=6) as deployment:
        deployment.restart()        # kubectl rollout restart

From the manifest: arguments, ports, startup, liveness and readiness probes, preStop, terminationGracePeriodSeconds, maxSurge and maxUnavailable. The process
gets SIGTERM after preStop, and SIGKILL once its grace period is over. Without containers there are no limits of memory and CPU.
"""

import contextlib
import signal
import subprocess
import threading
import time

from conftest import SERIN, call, free_port, wait_until

FLAGS = {"http": "--port", "grpc": "--grpc-port", "metrics": "--metrics-port"}


class Probe:
    """One of a container, with the defaults of Kubernetes."""

    def __init__(self, given, host, ports):
        self.period, self.timeout = given.get("periodSeconds", 10), given.get("timeoutSeconds", 1)
        self.failures, self.successes = given.get("failureThreshold", 3), given.get("successThreshold", 1)
        self.url = f"http://{host}:{ports[given['httpGet']['port']]}{given['httpGet']['path']}"

    def ask(self):
        try:
            return 200 <= call(self.url, timeout=self.timeout).status < 400
        except OSError:
            return False


class Watcher(threading.Thread):
    """Asks one probe for as long as the process runs, and tells each change of its result."""

    def __init__(self, probe, process, changed, result=False):
        super().__init__(daemon=True)
        self.probe, self.process, self.changed, self.result = probe, process, changed, result

    def run(self):
        row, good = 0, None
        while self.process.poll() is None:
            answer = self.probe.ask()
            row, good = (row + 1 if answer == good else 1), answer
            if good != self.result and row >= (self.probe.successes if good else self.probe.failures):
                self.result = good
                self.changed()
            time.sleep(self.probe.period)


class Pod:
    def __init__(self, template, pods, host, models, log):
        self.spec, self.pods, self.host = template["spec"], pods, host
        self.container = self.spec["containers"][0]
        self.ports = {port["name"]: free_port() for port in self.container["ports"]}
        self.port = self.ports["http"]
        self.killed = self.dead = self.terminating = self.started = False
        self.lock = threading.Lock()
        with open(log, "wb") as file:
            self.process = subprocess.Popen([SERIN, *self._arguments(models)], stdout=file, stderr=file)
        self.starting, self.alive, self.readiness = (self._watch(*each) for each in (
            ("startupProbe", self._begin), ("livenessProbe", self._die, True), ("readinessProbe", self._publish)))
        self.starting.start()

    def _watch(self, name, changed, result=False):
        return Watcher(Probe(self.container[name], self.host, self.ports), self.process, changed, result)

    def _arguments(self, models):
        paths = {mount["mountPath"]: str(models) for mount in self.container["volumeMounts"] if mount["name"] == "models"}
        arguments = [paths.get(word, self.host if word == "0.0.0.0" else word) for word in self.container["args"]]
        return arguments + [str(word) for name, port in self.ports.items() for word in (FLAGS[name], port)]

    def _begin(self):
        if not self.started:
            self.started = True
            self.readiness.start()
            self.alive.start()

    def _die(self):
        self.dead = not self.alive.result

    @property
    def ready(self):
        return self.readiness.result

    def _publish(self):
        """The conditions of its endpoint, as the controller of EndpointSlices makes them."""
        with self.lock:
            if self.process.poll() is None:
                self.pods.set(self, ready=self.ready and not self.terminating, serving=self.ready, terminating=self.terminating)

    def delete(self):
        """In a thread of its own; its end is the end of the pod."""
        thread = threading.Thread(target=self._terminate, daemon=True)
        thread.start()
        return thread

    def _terminate(self):
        deadline = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        self.terminating = True
        self._publish()
        time.sleep(self.container["lifecycle"]["preStop"]["sleep"]["seconds"])
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            self.killed = True
            self.process.kill()
            self.process.wait()
        with self.lock:
            self.pods.remove(self)


class Deployment:
    def __init__(self, manifest, pods, host, models, folder, replicas):
        self.template = manifest["spec"]["template"]
        self.surge = manifest["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
        assert manifest["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0, "restart() takes none away before another is ready"
        self.make = lambda: Pod(self.template, pods, host, models, folder / f"pod-{len(self.all)}.log")
        self.all, self.running, self.ending = [], [], []
        self.replicas = replicas

    def __enter__(self):
        try:
            self.running = self._more(self.replicas)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pod in self.all:
            with contextlib.suppress(ProcessLookupError):
                pod.process.kill()
            pod.process.wait()

    def _more(self, count):
        new = []
        for _ in range(count):
            new.append(self.make())
            self.all.append(new[-1])
        wait_until(lambda: all(pod.ready for pod in new), 60, "ready")
        return new

    def restart(self):
        """Every pod is replaced; returns once all new ones are ready. The old ones may still be draining."""
        old, self.running = self.running, []
        while old:
            new = self._more(min(self.surge, len(old)))
            self.running += new
            self.ending += [pod.delete() for pod in old[:len(new)]]
            old = old[len(new):]

    def settle(self):
        """Returns once every pod that was deleted is gone."""
        for thread in self.ending:
            thread.join(self.template["spec"]["terminationGracePeriodSeconds"] + 10)
            assert not thread.is_alive()
