"""Three etcd members on loopback, and a TCP proxy before each that can lose what comes through it.

    with Cluster(tmp_path) as etcd:
        urls = etcd.proxied_urls()        # a way of its own for each router
        etcd.leader().kill()
        etcd.members[1].freeze()          # as a partition: its connections stay open, and nobody answers
"""

import base64
import contextlib
import json
import pathlib
import selectors
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

from conftest import ROOT, wait_until

ETCD = pathlib.Path(ROOT / ".deps" / "etcd" / "usr" / "bin" / "etcd")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Member:
    def __init__(self, folder, name, client_port, peer_port, initial_cluster):
        self.name, self.url = name, f"http://127.0.0.1:{client_port}"
        self.port = client_port
        self.log = open(folder / f"{name}.log", "ab")
        self.arguments = [ETCD, "--name", name, "--data-dir", folder / name, "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                          "--listen-peer-urls", f"http://127.0.0.1:{peer_port}",
                          "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer_port}", "--initial-cluster", initial_cluster]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(list(map(str, self.arguments)), stdout=self.log, stderr=self.log)

    def call(self, path, body, timeout=5, token=None):
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read())

    def leads(self):
        try:
            status = self.call("/v3/maintenance/status", {}, timeout=1)
        except (OSError, urllib.error.URLError):
            return False
        return status["header"]["member_id"] == status.get("leader")

    def alive(self):
        try:
            self.call("/v3/kv/range", {"key": text64("x")}, timeout=1)
        except (OSError, urllib.error.URLError):
            return False
        return True

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


class Proxy:
    """Passes bytes on; cut, it keeps connections open and passes nothing: what a client of a partitioned server sees."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut = threading.Event()
        self.ended = threading.Event()
        self.listener.settimeout(0.1)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.ended.is_set():
            try:
                client, _ = self.listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client, contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
            with socket.create_connection(("127.0.0.1", self.target), timeout=5) as server:
                for one, other in ((client, server), (server, client)):
                    selector.register(one, selectors.EVENT_READ, other)
                while not self.ended.is_set():
                    if self.cut.is_set():
                        self.ended.wait(0.02)
                        continue
                    for key, _ in selector.select(0.05):
                        piece = key.fileobj.recv(65536)
                        if not piece:
                            return
                        key.data.sendall(piece)

    def end(self):
        self.ended.set()
        self.listener.close()


class Way:
    """How one router reaches the three members."""

    def __init__(self, members):
        self.proxies = [Proxy(member.port) for member in members]
        self.urls = [f"http://127.0.0.1:{proxy.port}" for proxy in self.proxies]

    def cut(self):
        for proxy in self.proxies:
            proxy.cut.set()

    def mend(self):
        for proxy in self.proxies:
            proxy.cut.clear()

    def end(self):
        for proxy in self.proxies:
            proxy.end()


class Cluster:
    def __init__(self, folder):
        self.folder = folder / "etcd"
        self.folder.mkdir()
        self.members, self.ways = [], []

    def __enter__(self):
        clients, peers = free_ports(3), free_ports(3)
        initial = ",".join(f"m{i}=http://127.0.0.1:{peers[i]}" for i in range(3))
        self.members = [Member(self.folder, f"m{i}", clients[i], peers[i], initial) for i in range(3)]
        wait_until(lambda: all(member.alive() for member in self.members), 30, "three etcd members")
        return self

    def __exit__(self, *_):
        for way in self.ways:
            way.end()
        for member in self.members:
            member.kill()
            member.log.close()

    def way(self):
        self.ways.append(Way(self.members))
        return self.ways[-1]

    def leader(self):
        return wait_until(lambda: next((member for member in self.members if member.process.poll() is None and member.leads()), None), 20, "a leader")

    def followers(self):
        leader = self.leader()
        return [member for member in self.members if member is not leader]

    def keys(self, prefix="/serin/"):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = next(m for m in self.members if m.alive()).call("/v3/kv/range", {"key": text64(prefix), "range_end": text64(end)})
        return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv.get("value", "")).decode() for kv in answer.get("kvs", [])}
