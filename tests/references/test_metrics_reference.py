"""runtime/serving/host/METRICS.md against the names in the code and against the pages that servers have."""

import re
import shutil
import urllib.error
import urllib.request

import pytest
from reference_pages import MODELS, ROOT, Server, page, rows, strings, words

PAGE = "runtime/serving/host/METRICS.md"
NAME = re.compile(r"(?:nv_|serin_|ovms_|process_|:tensorflow:serving:)[a-z_]+")
NO_METRICS = {"serin_ignored"}
REQUEST = b'{"inputs": [{"name": "pixels", "shape": [1, 64], "datatype": "FP32", "data": [' + b"0, " * 63 + b"0]}]}"


def documented():
    """{name: (type, labels)}"""
    found = {}
    for row in rows(page(PAGE)):
        if len(row) == 4:
            name, = words(row[0])
            assert name not in found, f"{name} stands there twice"
            found[name] = row[1], set(words(row[2]))
    return found


def without_values():
    return set(re.search(r"```\n(.*?)```", page(PAGE), re.S)[1].split())


def test_each_name_in_the_code():
    names = set()
    for room in ("serving", "net", "engine", "base", "registry"):
        for path in (ROOT / "runtime" / room).rglob("*.cc"):
            names |= {text for text in strings(path.read_text()) if NAME.fullmatch(text)}
    assert set(documented()) | without_values() == names - NO_METRICS
    assert not set(documented()) & without_values()


def families(text):
    """{name: (type, labels)} of a page in Prometheus' text format."""
    found = {name: (kind, set()) for name, kind in re.findall(r"^# TYPE (\S+) (\w+)$", text, re.M)}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = re.match(r"[^ {]+", line)[0]
        family = name if name in found else re.sub(r"_(bucket|count|sum)$", "", name)
        found[family][1].update(set(re.findall(r'(\w+)="', line)) - {"le", "quantile"})
    return found


def ask(url, body=None):
    try:
        with urllib.request.urlopen(url, body, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "models/digits"
    folder.mkdir(parents=True)
    shutil.copytree(MODELS / "digits/1", folder / "1")
    (folder / "serin.yaml").write_text("response_cache: true\n")
    return folder.parent


PORTS = ["--port=0", "--grpc-port=0", "--metrics-port=0"]
SERVERS = {
    "serin": PORTS,
    "tritonserver": ["--as=tritonserver", "--http-port=0", *PORTS[1:], "--metrics-config=summary_latencies=true"],
    "tensorflow_model_server": ["--as=tensorflow_model_server", "--metrics-port=0"],
    "ovms": ["--as=ovms", "--metrics-port=0", "--metrics_enable=true"],
}


@pytest.mark.parametrize("server", SERVERS)
def test_each_metric_of_a_server(server, repository, tmp_path, unused_ports):
    flags, told = list(SERVERS[server]), documented()
    http, grpc = unused_ports
    if server == "serin":
        flags += ["--tokens", tokens(tmp_path), repository]
    elif server == "tritonserver":
        flags += [f"--model-repository={repository}"]
    elif server == "tensorflow_model_server":
        flags += [f"--port={grpc}", f"--rest_api_port={http}", "--model_name=digits", f"--model_base_path={repository / 'digits'}"]
    else:
        names = [name for name in told if name.startswith("ovms_")]
        flags += [f"--port={grpc}", f"--rest_port={http}", "--model_name=digits", f"--model_path={repository / 'digits'}", "--metrics_list=" + ",".join(names)]
    with Server(tmp_path, *flags) as running:
        url = f"http://127.0.0.1:{running.ports['http']}"
        for body in (REQUEST, REQUEST, b"{broken"):
            ask(f"{url}/v2/models/digits/infer", body)
        seen = families(ask(f"http://127.0.0.1:{running.ports['metrics']}/metrics"))
    assert seen
    for name, (kind, labels) in seen.items():
        assert name in told, f"{name} is not in {PAGE}"
        assert kind == told[name][0] and labels <= told[name][1] and (labels == told[name][1] or not labels), name
    expected = {"serin": "serin_tokens_stale", "tritonserver": "nv_cache_hit_summary_per_model", "ovms": "ovms_infer_req_active",
                "tensorflow_model_server": ":tensorflow:serving:request_count"}
    assert expected[server] in seen


def tokens(folder):
    path = folder / "tokens.yaml"
    path.write_text("tokens: [{name: one, role: infer, sha256: " + "0" * 64 + "}]\n")
    return path


@pytest.fixture
def unused_ports():
    import socket  # noqa: PLC0415
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    numbers = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return numbers
