"""Servers that share the files of a remote registry: `serin serve --registry-peers`. Each has an address of its own, 127.0.0.N, as a pod has."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import types

import pytest

from certificates import Authority
from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, call, free_port, serin, wait_until
from false_peers import MIB, FalsePeer
from file_server import FileServer
from registries import tag
from registry_server import RegistryServer
from s3_server import S3Server

SIZE = 24 * MIB + 4711
RATE = 16 * MIB  # bytes a second of the registry, for all its clients together


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A registry with a version of the digits that has a large file: its folder, the contents, and its digest."""
    folder, model, contents = tmp_path_factory.mktemp("large") / "registry", tmp_path_factory.mktemp("large") / "model", os.urandom(SIZE)
    shutil.copytree(MODELS / "digits/1", model)
    (model / "more.bin").write_bytes(contents)
    done = serin("registry", "add", folder, "digits", model, "--json")
    assert done.returncode == 0, done.stderr
    tag(folder, "digits:1", "production")
    digest = f"sha256:{hashlib.sha256(contents).hexdigest()}"
    return types.SimpleNamespace(folder=folder, contents=contents, digest=digest, path=f"digits/blobs/{digest.replace(':', '/')}")


class Pods:
    """Servers with a cache of their own each; `names` is what each is told of the others."""

    def __init__(self, folder, stack, place):
        self.folder, self.stack, self.place, self.port, self.env, self.run_by = folder, stack, place, free_port(), None, ()
        self.flags, self.trust = {}, None  # flags of each number, and the context of a client, where they have TLS

    def address(self, number):
        return f"127.0.0.{number}"

    def names(self, numbers):
        return ",".join(f"{self.address(number)}:{self.port}" for number in numbers)

    def arguments(self, number, names):
        more = [*(["--registry-peers", names] if names else []), *self.flags.get(number, [])]
        return ["--models", self.place, "--address", self.address(number), "--registry-cache", self.cache(number), "--threads", 1, *ON_FREE_PORTS, *more]

    def cache(self, number):
        return self.folder / f"cache-{number}"

    def start(self, number, names):
        folder = self.folder / f"pod-{number}"
        folder.mkdir(exist_ok=True)
        pod = self.stack.enter_context(Process(folder, "serve", *self.arguments(number, names), env=self.env, run_by=self.run_by))
        secure = self.trust is not None and self.flags.get(number)
        ready = call(f"http{'s' if secure else ''}://{self.address(number)}:{pod.ports['http']}/v2/models/digits/ready", tls=self.trust if secure else None)
        assert ready.status == 200
        assert [path.read_bytes() for path in self.cache(number).rglob("digits/1/more.bin")] == [self.contents]
        assert not list(self.cache(number).rglob("*.chunks"))
        return pod

    def start_all(self, numbers, names):
        with concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
            return list(pool.map(lambda number: self.start(number, names), numbers))

    def begin(self, number, names):
        """Not waited for; killed after the test, if not before."""
        process = subprocess.Popen([SERIN, "serve", *map(str, self.arguments(number, names))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(lambda: (process.kill(), process.wait()))
        return process

    def ask(self, number, path):
        return call(f"http://{self.address(number)}:{self.port}/v1/blobs/{path}")

    def counted(self, number, pod):
        """The metrics of sharing, without what their names have in common."""
        page = call(f"http://{self.address(number)}:{pod.ports['metrics']}/metrics").body.decode()
        return {name: int(value) for name, value in re.findall(r"^serin_registry_(\w+) (\d+)$", page, re.M)}


@pytest.fixture
def pods(tmp_path, large):
    with contextlib.ExitStack() as stack:
        def make(place):
            made = Pods(tmp_path, stack, place)
            made.contents = large.contents
            return made
        yield make


@pytest.fixture
def files(large):
    with FileServer(large.folder) as files:
        yield files


def place_of(files):
    return f"registry+{files.url}/digits"


def helpers(pod):
    """Bytes from the registry, bytes from peers, number of these: what the log says of the large file."""
    line = next(line for line in pod.log.splitlines() if "bytes were read from there" in line)
    words = line.split(": ")[-1].split()
    return int(words[0]), int(words[6]), int(words[8])


def test_eight_cold_servers_read_the_registry_about_once_and_a_ninth_not_at_all(large, pods):
    with FileServer(large.folder, rate=RATE) as files:
        group = pods(place_of(files))
        began = time.monotonic()
        group.start_all(range(11, 19), None)
        alone, alone_bytes = time.monotonic() - began, files.sent.total()
        files.sent.clear()
        names = group.names(range(1, 10))
        began = time.monotonic()
        started = group.start_all(range(1, 9), names)
        together, total = time.monotonic() - began, files.sent.total()
        print(f"8 servers: {alone:.1f} s and {alone_bytes / SIZE:.2f} times the file alone, {together:.1f} s and {total / SIZE:.2f} times as peers")
        assert total <= 1.2 * SIZE, total / SIZE
        assert all(taken > SIZE / 2 and count >= 5 for _, taken, count in map(helpers, started))
        before, alone = files.sent[large.path], files.sent.total()
        ninth = group.start(9, names)
        assert files.sent[large.path] == before and helpers(ninth)[:2] == (0, SIZE)
        small = sum(file.stat().st_size for file in (MODELS / "digits/1").iterdir())
        assert group.counted(9, ninth) == {"peer_bytes_total": SIZE, "origin_bytes_total": small, "peer_sent_bytes_total": 0, "peer_refused_chunks_total": 0, "refused_peers": 0}
        assert files.sent.total() - alone >= small
        all_counted = [group.counted(number, pod) for number, pod in enumerate([*started, ninth], 1)]
        assert all(each["peer_bytes_total"] + each["origin_bytes_total"] >= SIZE + small for each in all_counted[:-1])
        assert sum(each["peer_sent_bytes_total"] for each in all_counted) >= sum(each["peer_bytes_total"] for each in all_counted) >= SIZE


def test_a_corrupt_peer_is_named_and_refused_and_the_model_is_served(large, files, pods):
    group = pods(place_of(files))
    names = group.names((1, 2, 9))
    with FalsePeer(group.address(9), group.port, "corrupt", {large.digest: large.contents}) as false:
        for number in 1, 2:  # the first has only that peer, the second a good one, too
            before = files.sent[large.path]
            pod = group.start(number, names)
            errors = [line for line in pod.log.splitlines() if "wrong bytes" in line]
            assert len(errors) == 1 and f"{group.address(9)} has sent wrong bytes of {large.digest}" in errors[0], pod.log
            assert any("/v1/blobs/" in path and path.count("/") == 4 for path in false.asked)
            counted = group.counted(number, pod)
            assert counted["refused_peers"] == 1 and 1 <= counted["peer_refused_chunks_total"] <= 25
            assert counted["peer_bytes_total"] + counted["origin_bytes_total"] >= SIZE
        assert files.sent[large.path] - before <= 4 * MIB  # one chunk of each of them tells
        assert group.address(2) not in "".join(errors)


@pytest.mark.parametrize("deed", ["short", "long", "dies", "hangs", "stalls", "other", "page", "lies"])
def test_a_peer_that_is_of_no_use_is_passed_over(large, files, pods, deed):
    group = pods(place_of(files))
    with FalsePeer(group.address(9), group.port, deed, {large.digest: large.contents}) as false:
        pod = group.start(1, group.names((1, 8, 9)))  # the eighth is nobody
        assert helpers(pod) == (SIZE, 0, 0) and false.asked and "wrong bytes" not in pod.log
        counted = group.counted(1, pod)
        assert counted["peer_bytes_total"] == counted["refused_peers"] == 0 < SIZE < counted["origin_bytes_total"]
        assert (counted["peer_refused_chunks_total"] > 0) == (deed in ("short", "long"))


def test_a_server_of_another_registry_offers_nothing_of_this_one(large, files, pods, tmp_path):
    other = tmp_path / "other"
    model = tmp_path / "model"
    shutil.copytree(MODELS / "digits/2", model)
    (model / "more.bin").write_bytes(large.contents[:-1])
    assert serin("registry", "add", other, "digits", model).returncode == 0
    tag(other, "digits:1", "production")
    group = pods(place_of(files))
    with FileServer(other) as others:
        stranger = pods(place_of(others))
        stranger.port, stranger.contents, stranger.folder = group.port, large.contents[:-1], tmp_path / "other-cache"
        stranger.folder.mkdir()
        stranger.start(2, group.names((1, 2)))
        assert helpers(group.start(1, group.names((1, 2)))) == (SIZE, 0, 0)
        assert group.ask(2, large.digest).status == 404


def offered(group, number, digest):
    with contextlib.suppress(OSError):
        answer = group.ask(number, digest)
        return answer.json["chunks"].count("+") if answer.status == 200 else 0
    return 0


def test_a_peer_that_is_killed_in_the_middle_is_done_without_and_goes_on_after_a_restart(large, pods):
    with FileServer(large.folder, rate=6 * MIB) as files:
        group = pods(place_of(files))
        names = group.names((1, 2))
        victim = group.begin(2, names)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(group.start, 1, names)
            wait_until(lambda: offered(group, 2, large.digest) >= 3 and offered(group, 1, large.digest) >= 3, 30, "both offer chunks")
            victim.kill()
            victim.wait()
            other.result()
        kept = list(group.cache(2).rglob("*.chunks"))
        assert len(kept) == 1 and kept[0].stat().st_size == SIZE + -(-SIZE // MIB)
        before = files.sent[large.path]
        again = group.start(2, names)
        assert files.sent[large.path] == before
        assert helpers(again)[1] <= SIZE - 3 * MIB


def test_only_chunks_of_files_of_models_are_offered(large, files, pods, tmp_path):
    group = pods(place_of(files))
    group.start(1, group.names((1,)))
    version = json.loads(serin("registry", "show", large.folder, "digits:1", "--json").stdout)
    states = group.ask(1, large.digest)
    assert states.status == 200 and states.json["bytes"] == SIZE and states.json["chunks"] == "+" * 25
    assert b"".join(group.ask(1, f"{large.digest}/{chunk}").body for chunk in range(25)) == large.contents
    hex_digits = large.digest.removeprefix("sha256:")
    unknown = ["sha256:" + "0" * 64, version["digest"], hex_digits, large.digest.upper(), "", f"{large.digest}/25", f"{large.digest}/-1", f"{large.digest}/", f"{large.digest}/0/0",
               f"{large.digest}/0x0", f"{large.digest}/{2**64}", f"{large.digest}/+1", f"{large.digest}/../index.json", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd",
               "..%2f..%2fetc%2fpasswd", f"sha256:../sha256/{hex_digits}", "sha256%00", "//etc/passwd"]
    for path in unknown:
        with socket.create_connection((group.address(1), group.port)) as raw:
            raw.sendall(f"GET /v1/blobs/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            assert raw.recv(1000).split()[1] in (b"404", b"400"), path
    for path in "/", "/v2", "/v2/models/digits", "/metrics", "/etc/passwd":
        assert call(f"http://{group.address(1)}:{group.port}{path}").status == 404
    for method in "POST", "PUT", "DELETE", "HEAD":
        assert call(f"http://{group.address(1)}:{group.port}/v1/blobs/{large.digest}", method=method).status == 405
    blob, = group.cache(1).rglob(hex_digits)
    blob.unlink()  # as if somebody had emptied the cache
    assert group.ask(1, f"{large.digest}/0").status == 404


def test_a_name_stands_for_all_its_addresses_as_that_of_a_headless_service_does(large, files, pods, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.{number} serin-peers\n" for number in range(1, 6)))
    enter = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file of names")
    group = pods(place_of(files))
    group.run_by = enter
    names = f"serin-peers:{group.port}"
    group.start(1, names)
    before = files.sent[large.path]
    assert helpers(group.start(2, names)) == (0, SIZE, 1)
    assert helpers(group.start(3, names))[1:] == (SIZE, 2)
    assert files.sent[large.path] == before


def test_a_server_without_ranges_is_read_by_each_alone(large, files, pods):
    files.do(large.path, "plain")
    group = pods(place_of(files))
    pod = group.start(1, group.names((1, 2)))
    assert "does not answer the range that it is asked for; the file is read from there alone" in pod.log
    assert helpers(group.start(2, group.names((1, 2)))) == (0, SIZE, 1)  # it is offered all the same


def test_wrong_contents_of_the_registry_are_its_own_fault(large, files, pods):
    files.do(large.path, "corrupt")
    group = pods(place_of(files))
    done = serin("serve", *group.arguments(1, group.names((1,))))
    assert done.returncode == 2 and f"{large.path}: has other contents than its digest {large.digest} says" in done.stderr
    assert not list(group.cache(1).rglob("*.chunks"))


def test_files_of_buckets_and_of_container_registries_are_shared_too(large, pods, tmp_path):
    with S3Server(tmp_path) as s3, RegistryServer(tmp_path) as containers:
        env = s3.settings(HOME=tmp_path)
        pushed = serin("registry", "push", large.folder, "digits:production", "s3://models/registry", "--registry-cache", tmp_path / "pushing", env=env)
        assert pushed.returncode == 0, pushed.stderr
        containers.copy(large.folder, "digits:production", "models")
        for place, env in ("s3://models/registry", env), (f"oci+http://{containers.host}/models/digits", {"HOME": str(tmp_path), **containers.settings()}):
            group = pods(place)
            group.env, group.folder = env, tmp_path / f"pods-{place.partition(':')[0]}"
            group.folder.mkdir()
            names = group.names((1, 2, 3))
            read = [helpers(pod)[0] for pod in group.start_all((1, 2), names)]
            assert SIZE <= sum(read) <= SIZE + 6 * MIB
            assert helpers(group.start(3, names))[0] == 0


@pytest.mark.parametrize("names, models, words", [
    ("serin-peers", None, "registry peers: 'serin-peers' is not HOST:PORT"), ("a:1,", None, "'' is not HOST:PORT"), ("a:1,b:2", None, "'b:2' has another port than 1"),
    ("a:0", None, "'a:0' is not HOST:PORT"), ("http://a:1", None, "is not HOST:PORT"), ("a:1/x", None, "is not HOST:PORT"),
    ("a:1", MODELS, "--registry-peers: no model is in a remote registry"),
])
def test_wrong_names_are_refused(files, tmp_path, names, models, words):
    done = serin("serve", "--models", models or place_of(files), "--registry-cache", tmp_path, "--registry-peers", names, *ON_FREE_PORTS)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_port_in_use_is_named(files, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serin("serve", "--models", place_of(files), "--registry-cache", tmp_path, "--registry-peers", f"127.0.0.1:{port}", *ON_FREE_PORTS)
    assert done.returncode == 2 and str(port) in done.stderr


# ---- TLS ----

def secured(group, authority, number, pair, *more):
    """The flags of a server with TLS, whose peers are signed by that authority."""
    group.flags[number] = ["--tls-cert", pair.cert, "--tls-key", pair.key, "--registry-peers-ca", authority.ca, *more]


ADDRESSES = "IP:127.0.0.1,IP:127.0.0.2"


@pytest.mark.parametrize("names, flags", [
    (ADDRESSES, []), (f"DNS:models.corp,{ADDRESSES}", ["--registry-peers-name", "models.corp"]), (ADDRESSES, ["--tls-client-ca"]),
], ids=["by-address", "by-name", "mutual"])
def test_servers_with_tls_share_over_tls(large, files, pods, tmp_path, names, flags):
    authority = Authority(tmp_path)
    pair = authority.issue("pod", names=names)
    group = pods(place_of(files))
    mutual = flags == ["--tls-client-ca"]
    group.trust = authority.client(pair if mutual else None)
    for number in (1, 2):
        secured(group, authority, number, pair, *flags, *([authority.ca] if mutual else []))
    first, second = group.start(1, group.names((1, 2))), group.start(2, group.names((1, 2)))
    assert helpers(second) == (0, SIZE, 1) and group.counted(2, second)["peer_bytes_total"] == SIZE
    assert group.counted(1, first)["peer_sent_bytes_total"] == SIZE
    url = f"{group.address(1)}:{group.port}/v1/blobs/{large.digest}"
    assert call(f"https://{url}", tls=group.trust).json["bytes"] == SIZE
    assert call(f"http://{url}").status == 400, "in the clear, to a port with TLS"
    if mutual:
        with pytest.raises(OSError):
            call(f"https://{url}", tls=authority.client())


@pytest.mark.parametrize("why, words", [
    ("other authority", "TLS: its certificate"), ("other name", "TLS: its certificate (CN=first) is for DNS:models.corp, not for '127.0.0.1'"),
    ("no TLS", "TLS: the other side does not speak it"), ("no certificate", "TLS: the other side refuses: "),
])
def test_nothing_is_taken_from_a_peer_whose_tls_does_not_fit(large, files, pods, tmp_path, why, words):
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    group = pods(place_of(files))
    group.trust = authority.client()
    group.trust.check_hostname = False
    group.trust.load_verify_locations(other.ca)
    signer = other if why == "other authority" else authority
    pair = signer.issue("first", names="DNS:models.corp" if why == "other name" else ADDRESSES)
    if why != "no TLS":
        secured(group, authority, 1, pair)
    if why == "no certificate":
        group.trust.load_cert_chain(pair.cert, pair.key)
        group.flags[1] += ["--tls-client-ca", authority.ca]
    secured(group, authority, 2, (other if why == "no certificate" else authority).issue("second", names=ADDRESSES))
    first, second = group.start(1, group.names((1,))), group.start(2, group.names((1, 2)))
    assert helpers(second) == (SIZE, 0, 0) and group.counted(1, first)["peer_sent_bytes_total"] == 0
    said = [line for line in second.log.splitlines() if "registry peers: 127.0.0.1: " in line and words in line]
    assert len(said) == 1, second.log


def test_authorities_of_peers_are_read_again_when_their_file_changes(large, pods, tmp_path):
    """As a manager of certificates renews them: the next version comes from the peer that was not trusted before."""
    registry, model, old, new = tmp_path / "registry", tmp_path / "model", Authority(tmp_path, "old"), Authority(tmp_path, "new")
    shutil.copytree(large.folder, registry)
    trusted = tmp_path / "trusted.crt"
    shutil.copy(old.ca, trusted)
    with FileServer(registry) as files:
        group = pods(place_of(files))
        group.trust = new.client()
        pair = new.issue("pod", names=ADDRESSES)
        for number in (1, 2):
            secured(group, new, number, pair, "--poll-seconds", 0.1 if number == 1 else 3)  # the first one has a version before the second asks
        group.flags[2][group.flags[2].index(new.ca)] = trusted
        group.start(1, group.names((1, 2)))
        second = group.start(2, group.names((1, 2)))
        assert helpers(second) == (SIZE, 0, 0) and "TLS: its certificate" in second.log
        page = f"http://{group.address(2)}:{second.ports['metrics']}/metrics"
        for text, stale in ("no certificate", 1), (pathlib.Path(new.ca).read_text(), 0):
            trusted.write_text(text)
            wait_until(lambda stale=stale: f'serin_tls_certificate_stale{{file="{pair.cert}"}} {stale}\n' in call(page).body.decode(), 20, f"stale is {stale}")
        shutil.copytree(MODELS / "digits/2", model)
        (model / "more.bin").write_bytes(large.contents[::-1])
        assert serin("registry", "add", registry, "digits", model).returncode == 0
        tag(registry, "digits:2", "production")
        ready = f"https://{group.address(2)}:{second.ports['http']}/v2/models/digits/versions/2/ready"
        wait_until(lambda: call(ready, tls=group.trust).status == 200, 30, "version 2 is there")
        assert group.counted(2, second)["peer_bytes_total"] > MIB


@pytest.mark.parametrize("flags, words", [
    (["--registry-peers", "a:1", "--registry-peers-ca", "ca.crt"], "--registry-peers-ca requires --tls-cert"),
    (["--registry-peers", "a:1", "--registry-peers-name", "a"], "--registry-peers-name requires --tls-cert"),
    (["--tls"], "--registry-peers-ca requires --registry-peers"), (["--tls", "--registry-peers", "a:1"], "registry peers: TLS: "),
])
def test_wrong_flags_of_tls_are_refused(files, tmp_path, flags, words):
    if "--tls" in flags:
        pair = Authority(tmp_path).issue("pod")
        flags = [*flags[1:], "--tls-cert", pair.cert, "--tls-key", pair.key, "--registry-peers-ca", tmp_path / "missing.crt"]
    done = serin("serve", "--models", place_of(files), "--registry-cache", tmp_path / "cache", *flags, *ON_FREE_PORTS)
    assert done.returncode == 2 and words in done.stderr, done.stderr
