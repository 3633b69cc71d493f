"""Three etcd members on loopback, with TCP proxies between them and before them that can lose what comes through.

    with Cluster(tmp_path) as etcd:
        way = etcd.way()                  # for one router: way.urls, way.cut(), way.mend()
        etcd.leader().kill()
        etcd.members[1].freeze()          # its connections stay open, and nobody answers
        etcd.part([etcd.members[0]])      # from the other two; clients reach all three
        etcd.unite()
"""

import base64
import contextlib
import json
import pathlib
import re
import selectors
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

from conftest import ROOT, free_port, wait_until

ETCD = pathlib.Path(ROOT / ".deps" / "etcd" / "usr" / "bin" / "etcd")


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Member:
    def __init__(self, folder, name, client_port, peer_port, advertised_port, initial_cluster):
        self.name, self.url = name, f"http://127.0.0.1:{client_port}"
        self.port = client_port
        self.log = open(folder / f"{name}.log", "ab")
        self.arguments = [ETCD, "--name", name, "--data-dir", folder / name, "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                          "--listen-peer-urls", f"http://127.0.0.1:{peer_port}",
                          "--initial-advertise-peer-urls", f"http://127.0.0.1:{advertised_port}", "--initial-cluster", initial_cluster]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(list(map(str, self.arguments)), stdout=self.log, stderr=self.log)

    def call(self, path, body, timeout=5, token=None):
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read())

    @property
    def id(self):
        return int(self.call("/v3/maintenance/status", {})["header"]["member_id"])

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

    def put(self, values):
        """In one transaction."""
        self.call("/v3/kv/txn", {"success": [{"request_put": {"key": text64(key), "value": text64(value)}} for key, value in values.items()]})

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
    """Passes bytes on; where it is cut, connections stay open and nothing comes through: what a client of a partitioned server sees."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut = threading.Event()
        self.unanswered = None  # requests that hold these bytes get through, and their answers are lost with the connection
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

    def _is_cut(self, head):
        """For the client whose connection began with `head`."""
        return self.cut.is_set()

    def _carry(self, client):
        head, lost = b"", False
        with client, contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
            with socket.create_connection(("127.0.0.1", self.target), timeout=5) as server:
                for one, other in ((client, server), (server, client)):
                    selector.register(one, selectors.EVENT_READ, other)
                while not self.ended.is_set():
                    for key, _ in selector.select(0.05):
                        piece = key.fileobj.recv(65536)
                        if not piece or (lost and key.fileobj is server):
                            return
                        lost = lost or (self.unanswered is not None and key.fileobj is client and self.unanswered in piece)
                        if key.fileobj is client and len(head) < 4096:
                            head += piece
                        while self._is_cut(head) and not self.ended.is_set():
                            self.ended.wait(0.02)
                        key.data.sendall(piece)

    def end(self):
        self.ended.set()
        self.listener.close()


class PeerProxy(Proxy):
    """Before the peer port of one member. Whoever asks there says in his first request which member he is."""

    def __init__(self, target):
        super().__init__(target)
        self.refused = frozenset()  # ids of members

    def _is_cut(self, head):
        source = re.search(rb"(?i)x-server-from: ([0-9a-f]+)", head)
        return source is not None and int(source[1], 16) in self.refused


class Way:
    """How one router reaches the three members."""

    def __init__(self, members):
        self.proxies = [Proxy(member.port) for member in members]
        self.urls = [f"http://127.0.0.1:{proxy.port}" for proxy in self.proxies]

    def cut(self):
        for proxy in self.proxies:
            proxy.cut.set()

    def lose_answers_about(self, key):
        """To requests that write it."""
        for proxy in self.proxies:
            proxy.unanswered = json.dumps({"request_put": {"key": text64(key)}}, separators=(",", ":")).rstrip("}").encode()

    def mend(self):
        for proxy in self.proxies:
            proxy.cut.clear()
            proxy.unanswered = None

    def end(self):
        for proxy in self.proxies:
            proxy.end()


class Cluster:
    def __init__(self, folder):
        self.folder = folder / "etcd"
        self.folder.mkdir()
        self.members, self.ways, self.between = [], [], []

    def __enter__(self):
        clients, peers = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
        self.between = [PeerProxy(port) for port in peers]
        initial = ",".join(f"m{i}=http://127.0.0.1:{self.between[i].port}" for i in range(3))
        self.members = [Member(self.folder, f"m{i}", clients[i], peers[i], self.between[i].port, initial) for i in range(3)]
        wait_until(lambda: all(member.alive() for member in self.members), 30, "three etcd members")
        return self

    def __exit__(self, *_):
        for way in [*self.ways, *self.between]:
            way.end()
        for member in self.members:
            member.kill()
            member.log.close()

    def cleared(self):
        """Forgets all keys and ways. False: a test has broken something, such as a member that does not answer, and another cluster is needed."""
        while self.ways:
            self.ways.pop().end()
        if any(proxy.refused for proxy in self.between) or not all(member.process.poll() is None and member.alive() for member in self.members):
            return False
        self.leader().call("/v3/kv/deleterange", {"key": text64("\0"), "range_end": text64("\0")})  # from the first key to the last
        return True

    def part(self, *groups):
        """No member speaks with one of another group; who is in none is in a group with the rest."""
        groups = [*groups, [member for member in self.members if not any(member in group for group in groups)]]
        ids = {member: member.id for member in self.members}
        for member, proxy in zip(self.members, self.between):
            own = next(group for group in groups if member in group)
            proxy.refused = frozenset(ids[other] for other in self.members if other not in own)

    def unite(self):
        for proxy in self.between:
            proxy.refused = frozenset()

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
        return self._read(next(member for member in self.members if member.alive()), prefix, end)

    def keys_known_to(self, member, prefix="/serin/"):
        """Whatever the others know."""
        return self._read(member, prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), serializable=True)

    @staticmethod
    def _read(member, prefix, end, **more):
        answer = member.call("/v3/kv/range", {"key": text64(prefix), "range_end": text64(end), **more})
        return {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv.get("value", "")).decode() for kv in answer.get("kvs", [])}


class SecureEtcd:
    """One member that speaks TLS only, and only with clients whose certificates its authority has signed."""

    def __init__(self, folder, authority, server, client):
        self.folder, self.authority, self.server, self.client = folder / "secure-etcd", authority, server, client
        self.folder.mkdir()
        port, peer = free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.arguments = [ETCD, "--name", "m", "--data-dir", self.folder / "m", "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                          "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                          "--initial-cluster", f"m=http://127.0.0.1:{peer}", "--cert-file", server.cert, "--key-file", server.key,
                          "--trusted-ca-file", authority.ca, "--client-cert-auth"]
        self.process = None

    def __enter__(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(list(map(str, self.arguments)), stdout=log, stderr=log)
        wait_until(self._alive, 30, "etcd")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def _call(self, path, body):
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5, context=self.authority.client(self.client)) as answer:
            return json.loads(answer.read())

    def _alive(self):
        try:
            self._call("/v3/kv/range", {"key": text64("x")})
        except OSError:
            return False
        return True

    def enable_users(self, user, password):
        for path, body in (("/v3/auth/user/add", {"name": user, "password": password}), ("/v3/auth/role/add", {"name": "root"}),
                           ("/v3/auth/user/grant", {"user": user, "role": "root"}), ("/v3/auth/enable", {})):
            self._call(path, body)
