"""A real Kubernetes control plane on loopback and on free ports: etcd, API server, controllers, scheduler, and nodes that kwok pretends to be.

    with Cluster(tmp_path, nodes=3) as cluster:
        cluster.kubectl("get", "nodes")                   # as an administrator; its output
        cluster.kubeconfig, cluster.url, cluster.ca, cluster.token
        cluster.api("/api/v1/nodes").json                 # the same without kubectl
        name = cluster.create_namespace()                 # refuses pods below the standard `restricted`
        token = cluster.service_account(name, "router", [{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["watch"]}])
        cluster.kill_api_server(); cluster.start_api_server()      # the same port, and what was stored
        cluster.install_crds("keda", "istio")

`tests/kubernetes/build-control-plane` builds the programs. Pods run nowhere: kwok reports them as ready. An EndpointSlice cannot have an address on loopback.
"""

import itertools
import json
import os
import pathlib
import ssl
import subprocess

import yaml
from certificates import Authority, openssl
from conftest import call, free_port, wait_until

VERSION = "1.36.3"
BUILT = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "serin" / "kubernetes" / VERSION
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl", "kustomize", "helm")
BUILD_COMMAND = "tests/kubernetes/build-control-plane"
ADMIN, SYSTEM = "admin-of-the-test", "system-of-the-test"  # tokens of this cluster alone


def program(name):
    return BUILT / "bin" / name


def why_not(*programs):
    """Why no cluster can start here, or an empty string."""
    missing = [name for name in programs or PROGRAMS if not program(name).exists()]
    return f"no {', '.join(missing)} of Kubernetes {VERSION} here: run {BUILD_COMMAND}" if missing else ""


class Daemon:
    """One of the programs: its log, its end by its own process id."""

    def __init__(self, folder, name, *arguments, env=None):
        self.name, self.log_file = name, folder / f"{name}.log"
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen([program(name), *map(str, arguments)], stdout=log, stderr=log, cwd=folder, env={**os.environ, **(env or {})})

    def await_(self, condition, seconds=60):
        wait_until(lambda: self.process.poll() is not None or condition(), seconds, f"{self.name} ready")
        assert self.process.returncode is None, f"{self.name} ended with {self.process.returncode}:\n{self.log[-3000:]}"

    @property
    def log(self):
        return self.log_file.read_text(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """None of them holds anything that a test reads afterwards, so none is given time."""
        if self.process.poll() is None:
            self.kill()


class Cluster:
    """`api_server_arguments`: more flags of it. `nodes`: fake ones, with two GPUs each. `controllers`, `scheduler`: whether those programs run, too."""

    def __init__(self, folder, controllers=True, scheduler=True, nodes=0, api_server_arguments=()):
        self.folder = pathlib.Path(folder)
        self._wants_controllers, self._wants_scheduler, self._nodes = controllers, scheduler, nodes
        self._more_arguments = api_server_arguments
        self._names, self._volumes = itertools.count(), itertools.count()
        self._etcd = self.api_server = self.controllers = self.scheduler = self.kwok = None

    def __enter__(self):
        try:
            self._prepare()
            self._start_etcd()
            self.start_api_server()
            if self._wants_controllers:
                self.start_controllers()
            if self._wants_scheduler:
                self.scheduler = Daemon(self.folder, "kube-scheduler", f"--kubeconfig={self._system_kubeconfig}", "--leader-elect=false", "--secure-port=0")
            if self._nodes:
                self.start_kwok(self._nodes)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in (self.kwok, self.scheduler, self.controllers, self.api_server, self._etcd):
            if daemon:
                daemon.end()

    # --- how it starts ---

    def _prepare(self):
        self._port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        self.url, self.token = f"https://127.0.0.1:{self._port}", ADMIN
        authority = Authority(self.folder, "kubernetes-ca")
        self.ca = authority.ca
        self._serving = authority.issue("api-server", names="DNS:localhost,IP:127.0.0.1,DNS:kubernetes.default.svc")
        self._front_proxy = authority.issue("front-proxy")
        self._tls = ssl.create_default_context(cafile=self.ca)
        self._account_key, self._account_public = self.folder / "accounts.key", self.folder / "accounts.pub"
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self._account_key)
        openssl("ec", "-in", self._account_key, "-pubout", "-out", self._account_public)
        (self.folder / "tokens.csv").write_text("".join(f'{token},{token},{token},"system:masters"\n' for token in (ADMIN, SYSTEM)))
        self.kubeconfig, self._system_kubeconfig = self.kubeconfig_of(ADMIN), self.kubeconfig_of(SYSTEM, "system")

    def kubeconfig_of(self, token, name="admin", namespace="default"):
        """The path of a kubeconfig that logs in with this token."""
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": self.ca}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name, "namespace": namespace}}],
        }))
        return path

    def _start_etcd(self):
        url, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self._etcd = Daemon(
            self.folder, "etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync")
        self._etcd.await_(lambda: _answers(f"{url}/health"))

    def start_api_server(self):
        """For the first time, or again after kill_api_server(): at the same port, with what was stored."""
        self.api_server = Daemon(
            self.folder, "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd_port}", "--bind-address=127.0.0.1", f"--secure-port={self._port}",
            f"--tls-cert-file={self._serving.cert}", f"--tls-private-key-file={self._serving.key}", f"--cert-dir={self.folder}",
            "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._account_public}", f"--service-account-signing-key-file={self._account_key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}", "--authorization-mode=RBAC", "--anonymous-auth=false",
            f"--requestheader-client-ca-file={self.ca}", "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-", f"--proxy-client-cert-file={self._front_proxy.cert}",
            f"--proxy-client-key-file={self._front_proxy.key}", "--shutdown-delay-duration=0s", *self._more_arguments)
        self.api_server.await_(self.ready)

    def kill_api_server(self):
        self.api_server.kill()

    def ready(self):
        return _answers(f"{self.url}/readyz", {"Authorization": f"Bearer {ADMIN}"}, self._tls)

    def start_controllers(self):
        """The controller manager, whose autoscaler looks every two seconds and takes new pods seriously at once."""
        kubeconfig = self._system_kubeconfig
        self.controllers = Daemon(
            self.folder, "kube-controller-manager", f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}", f"--service-account-private-key-file={self._account_key}", f"--root-ca-file={self.ca}",
            "--secure-port=0", "--leader-elect=false", "--horizontal-pod-autoscaler-sync-period=2s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=0s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s")

    def start_kwok(self, nodes):
        """That many nodes, in three zones, each with two GPUs and two slices of one."""
        stages = BUILT / "kwok" / "stage"
        configs = [stage for folder in ("pod/fast", "node/fast", "node/heartbeat-with-lease") for stage in sorted((stages / folder).glob("*.yaml"))
                   if not stage.name.startswith("kustomiz")]
        self.kwok = Daemon(self.folder, "kwok", f"--kubeconfig={self._system_kubeconfig}", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                           "--node-lease-duration-seconds=40", *(word for path in configs for word in ("--config", path)))
        self.apply([fake_node(number) for number in range(nodes)])
        wait_until(lambda: self.ready_nodes() == nodes, 90, f"{nodes} fake nodes ready")

    def ready_nodes(self):
        listed = self.api("/api/v1/nodes").json["items"]
        return sum(condition["status"] == "True" for node in listed for condition in node["status"].get("conditions", []) if condition["type"] == "Ready")

    # --- what tests ask it ---

    def run_kubectl(self, *arguments, stdin=None, kubeconfig=None, timeout=120):
        """What kubectl printed, warnings of the server among them, and its exit status."""
        command = [program("kubectl"), "--kubeconfig", kubeconfig or self.kubeconfig, *map(str, arguments)]
        env = {**os.environ, "HOME": str(self.folder)}  # where it keeps what it has found out about a server
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False, env=env)

    def kubectl(self, *arguments, stdin=None, kubeconfig=None, timeout=120):
        """Its output; a failure fails the test."""
        done = self.run_kubectl(*arguments, stdin=stdin, kubeconfig=kubeconfig, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr}"
        return done.stdout

    def get(self, *arguments):
        """The object, or the list, that `kubectl get` prints."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, objects, *arguments):
        """On the server, as tools of GitOps do."""
        return self.kubectl("apply", "--server-side", "--force-conflicts", *arguments, "-f", "-", stdin=yaml.safe_dump_all(objects))

    def api(self, path, body=None, method=None, token=ADMIN, content_type="application/json", timeout=30):
        """One request to the API, as an Answer: its status, headers, body."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": content_type}
        return call(self.url + path, body, headers, method, timeout, self._tls)

    def create_namespace(self, standard="restricted"):
        """A new one, once pods can be created in it; its name."""
        name = f"test-{next(self._names)}"
        labels = {f"pod-security.kubernetes.io/{mode}": standard for mode in ("enforce", "warn", "audit")}
        self.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])
        if self.controllers:
            wait_until(lambda: self.api(f"/api/v1/namespaces/{name}/serviceaccounts/default").status == 200, 30, "the account `default`")
        return name

    def service_account(self, namespace, name, rules, seconds=3600):
        """A token of a new account that may do what these rules of a Role say, and nothing else. The API server grants no token for less than 600 seconds."""
        meta = {"name": name, "namespace": namespace}
        rbac = "rbac.authorization.k8s.io"
        self.apply([
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": rules},
            {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]},
        ])
        return self.kubectl("-n", namespace, "create", "token", name, f"--duration={seconds}s").strip()

    def may_read_nodes(self, namespace, name):
        """As deploy/helm/serin/templates/router_account.yaml grants it."""
        rbac, role = "rbac.authorization.k8s.io", f"{namespace}-{name}-nodes"
        self.apply([
            {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": role},
             "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]},
            {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
             "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]},
        ])

    def install_crds(self, *names):
        """The kinds of neighbours, as they publish them: the folders of crds/ next to the programs."""
        missing = [name for name in names if not (BUILT / "crds" / name).is_dir()]
        assert not missing, f"no definitions of {', '.join(missing)}: run {BUILD_COMMAND}"
        for name in names:
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", BUILT / "crds" / name)
            wait_until(lambda name=name: self._are_established(BUILT / "crds" / name), 60, f"the kinds of {name} established")

    def _are_established(self, folder):
        """`kubectl wait` fails where a definition was created this moment, and has no conditions yet."""
        found = self.get("-f", folder)
        conditions = [each.get("status", {}).get("conditions") or [] for each in found.get("items", [found])]
        return all(any((one["type"], one["status"]) == ("Established", "True") for one in each) for each in conditions)

    def create_volumes(self, count, gibibytes=100):
        """More volumes, for claims of any access mode that name no storage class; each serves one claim."""
        self.apply([{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{next(self._volumes)}"}, "spec": {
            "capacity": {"storage": f"{gibibytes}Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/nowhere"}}} for _ in range(count)])


def fake_node(number):
    name, sizes = f"node-{number}", {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "500Gi", "nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "2"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                   "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}"}}, "status": {"capacity": sizes, "allocatable": sizes}}


def _answers(url, headers=None, tls=None):
    try:
        return call(url, headers=headers, tls=tls, timeout=5).status == 200
    except OSError:
        return False
