"""router.yaml and the command line of `serin route`: a mistake is one line that says where it is and what is allowed, and exit code 2."""

import json
import socket

import pytest

from conftest import serin

GOOD = """listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: STORE
services:
  - name: digits
    initial_stable: "1"
    versions:
      - name: "1"
        endpoints: [{url: "http://127.0.0.1:9/v2/models/digits/versions/1"}]
      - name: "2"
        endpoints: [{url: "http://127.0.0.1:9/v2/models/digits/versions/2"}]
"""


def write(folder, text):
    path = folder / "router.yaml"
    path.write_bytes((text if isinstance(text, bytes) else text.encode()).replace(b"STORE", str(folder / "router.db").encode()))
    return path


def refusal(folder, text, *arguments):
    """What `serin route` says of a configuration that it does not start with."""
    done = serin("route", "--config", write(folder, text), *arguments, timeout=20)
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_good_one_passes_the_check_without_starting_anything(tmp_path):
    done = serin("route", "--config", write(tmp_path, GOOD), "--check", timeout=20)
    assert done.returncode == 0 and not (tmp_path / "router.db").exists()


def guarded(guard):
    return GOOD.replace("    versions:", f"    guard: {guard}\n    versions:")


MISTAKES = {
    "unknown-key": (GOOD.replace("store:", "stor:"), ["router.yaml:3:1", "'stor'", "allowed", "store"]),
    "unknown-key-deep-down": (GOOD.replace('- name: "2"', '- naem: "2"'), ["router.yaml:10:", "'naem'", "name"]),
    "unknown-guard": (guarded("{errors: {treshold: 1%}}"), ["router.yaml:7:", "'treshold'", "max"]),
    "duplicate-key": (GOOD.replace("admin: 127.0.0.1:0", "listen: 127.0.0.1:1"), ["router.yaml:2:", "listen"]),
    "list-for-a-map": (GOOD.replace("admin: 127.0.0.1:0", "admin: [1, 2]"), ["router.yaml:2:", "admin"]),
    "text-for-a-list": (GOOD.split("services:", maxsplit=1)[0] + "services: digits\n", ["router.yaml:4:", "list"]),
    "no-services": (GOOD.split("services:", maxsplit=1)[0], ["services"]),
    "tab": (GOOD.replace("  - name: digits", "\t- name: digits"), ["router.yaml:5:"]),
    "no-yaml": ("{{{", ["router.yaml:"]),
    "binary": (b"\x00\x01\x02\xff", ["router.yaml"]),
    "empty": ("", ["services"]),
    "port-too-large": (GOOD.replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:65536"), ["router.yaml:1:", "65536"]),
    "no-port": (GOOD.replace("listen: 127.0.0.1:0", "listen: localhost"), ["router.yaml:1:", "localhost"]),
    "no-such-stable": (GOOD.replace('initial_stable: "1"', 'initial_stable: "7"'), ["router.yaml:6:", "'7'", "1, 2"]),
    "version-twice": (GOOD.replace('name: "2"', 'name: "1"'), ["router.yaml:10:", "'1'", "twice"]),
    "no-endpoints": (GOOD.replace('[{url: "http://127.0.0.1:9/v2/models/digits/versions/2"}]', "[]"), ["router.yaml:11:"]),
    "not-a-url": (GOOD.replace("http://127.0.0.1:9/v2/models/digits/versions/2", "127.0.0.1"), ["router.yaml:11:", "http://"]),
    "negative-threshold": (guarded("{latency: {p99: -5ms}}"), ["router.yaml:7:", "p99", "50ms"]),
    "alpha-too-large": (guarded("{falseRollback: 0.9}"), ["router.yaml:7:", "0.5"]),
    "two-listeners-on-one-port": (GOOD.replace("127.0.0.1:0", "127.0.0.1:18080"), ["router.yaml:2:", "18080"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_c1_a_mistake_is_named_with_its_line(tmp_path, name):
    text, words = MISTAKES[name]
    said = refusal(tmp_path, text)
    assert all(word in said for word in words), said
    assert serin("route", "--config", tmp_path / "router.yaml", "--check").returncode == 2


def test_c1_a_byte_order_mark_is_read_over(tmp_path):
    assert serin("route", "--config", write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()), "--check").returncode == 0


def test_c1_json_is_yaml(tmp_path):
    versions = [{"name": "1", "endpoints": [{"url": "http://h:1"}]}]
    document = {"store": "STORE", "services": [{"name": "d", "initial_stable": "1", "versions": versions}]}
    assert serin("route", "--config", write(tmp_path, json.dumps(document)), "--check").returncode == 0


def test_c1_a_missing_file_is_named():
    done = serin("route", "--config", "/nowhere/router.yaml")
    assert done.returncode == 2 and "/nowhere/router.yaml" in done.stderr


@pytest.mark.parametrize("listener", ["listen", "admin"])
def test_c2_a_port_in_use_is_named(tmp_path, listener):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = GOOD.replace(f"{listener}: 127.0.0.1:0", f"{listener}: 127.0.0.1:{port}")
        assert str(port) in refusal(tmp_path, text, "--log-level", "off")


@pytest.mark.parametrize("address", ["192.0.2.1:0", "nonsense:0"])
def test_c2_an_address_that_is_not_ours_is_named(tmp_path, address):
    said = refusal(tmp_path, GOOD.replace("listen: 127.0.0.1:0", f"listen: {address}"), "--log-level", "off")
    assert address.split(":")[0] in said


@pytest.mark.parametrize("arguments, named", [([], "--config"), (["--config"], "--config"), (["--config", "x.yaml", "--nope"], "--nope"),
                                              (["--config", "x.yaml", "--log-format", "xml"], "--log-format")])
def test_c5_usage_mistakes_are_one_line_and_exit_code_2(arguments, named):
    done = serin("route", *arguments, timeout=20)
    assert done.returncode == 2 and named in done.stderr and len(done.stderr.strip().splitlines()) == 1
