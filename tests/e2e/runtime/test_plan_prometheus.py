"""serin plan --observe and --load by Debian's Prometheus: figures of all servers of a model next to their plan, and the load of a fleet's cards."""

import contextlib
import http.server
import json
import re
import threading

import pytest
import yaml

from conftest import MODELS, ON_FREE_PORTS, call, free_port, infer_body, serin, wait_until
from prometheus_server import Exporter, program, scraping

pytestmark = pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it")

DIGIT = MODELS / "digits/2/model.onnx"
EXPORTED = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).\n"


def dcgm(metric, node, gpu, value, model="NVIDIA L4", **more):
    """A line of NVIDIA's exporter 4.x."""
    labels = {"gpu": gpu, "UUID": f"GPU-{node}-{gpu}", "pci_bus_id": f"00000000:0{gpu}:00.0", "device": f"nvidia{gpu}", "modelName": model, "Hostname": node,
              "DCGM_FI_DRIVER_VERSION": "580.95.05", **more}
    return f"{metric}{{{','.join(f'{key}={json.dumps(str(text))}' for key, text in labels.items())}}} {value}\n"


def card(node, gpu, busy, mebibytes, **more):
    return dcgm("DCGM_FI_DEV_GPU_UTIL", node, gpu, busy, **more) + dcgm("DCGM_FI_DEV_FB_USED", node, gpu, mebibytes, **more)


def slice_of(node, gpu, instance, share, mebibytes):
    more = {"model": "NVIDIA A100-SXM4-40GB", "GPU_I_PROFILE": "1g.5gb", "GPU_I_ID": instance}
    return dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE", node, gpu, share, **more) + dcgm("DCGM_FI_DEV_FB_USED", node, gpu, mebibytes, **more)


CARDS = (EXPORTED + card("gpu-0", 0, 67, 12000) + card("gpu-0", 1, 0, 0) + card("gpu-1", 0, 23, 2000) + card("gpu-1", 1, 100, 23034, exported_pod="serin-0", pod="dcgm-exporter-x") +
         slice_of("mig", 0, 7, 0.25, 1024) + slice_of("mig", 0, 8, 0, 0) + card("elsewhere", 0, 5, 5))
ODD = 'process_resident_memory_bytes 1e6\nserin_model_weight_bytes{model="odd",version="1"} NaN\nserin_model_arena_bytes{model="odd",version="1"} 5\n'


class World:
    """Two servers of one model, the exporter of DCGM and an odd target, scraped by a Prometheus, and by one that misses a part of its storage."""

    def __init__(self, servers, whole, partial):
        self.servers, self.whole, self.partial = servers, whole, partial

    @property
    def address(self):
        return "prometheus+" + self.whole.url


@pytest.fixture(scope="module")
def world(start_once, tmp_path_factory):
    servers = [start_once("serve", DIGIT, *ON_FREE_PORTS) for _ in range(2)]
    cards, odd = (Exporter(free_port()) for _ in range(2))
    cards.text, odd.text = CARDS, ODD
    targets = {"serin": [server.ports["metrics"] for server in servers], "dcgm": [cards.server.server_port], "odd": [odd.server.server_port]}
    scrapes = [{"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]} for name, ports in targets.items()]
    broken = {"remote_read": [{"url": f"http://127.0.0.1:{free_port()}/read", "remote_timeout": "1s"}]}
    with contextlib.ExitStack() as stack:
        stack.callback(cards.end)
        stack.callback(odd.end)
        partial, whole = (stack.enter_context(scraping(tmp_path_factory.mktemp("prometheus"), scrapes, until="count(up == 1) == 4", more=more)) for more in (broken, None))
        for server, requests, rows in zip(servers, (30, 10), (4, 2)):
            for _ in range(requests):
                assert call(f"{server.url}/v2/models/model/infer", infer_body([[0.5] * 64] * rows)).status == 200
        for prometheus in whole, partial:
            wait_until(lambda prometheus=prometheus: prometheus.query("sum(nv_inference_count) == 140"), 20, "all rows are scraped")
        yield World(servers, whole, partial)


@pytest.fixture
def plan(tmp_path):
    def ask(*arguments, code=0):
        done = serin("plan", *arguments, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert done.returncode == code, done.stdout + done.stderr
        return done
    return ask


@pytest.fixture
def observed(plan):
    def ask(*arguments, models=(DIGIT,)):
        return json.loads(plan(*models, *arguments, "--json").stdout)["observed"]
    return ask


def model_named(folder, name):
    version = folder / name / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(DIGIT.read_bytes())
    return folder / name


def lines(observed):
    return {line["what"]: line for line in observed["lines"]}


# --- servers ---------------------------------------------------------------------------------------------------------------------------


def test_figures_of_all_servers_stand_next_to_the_plan(world, plan, observed):
    plan(DIGIT, "--calibrate", 0.3)
    answer = observed("--observe", world.address)
    assert answer["url"] == world.whole.url.removeprefix("http://") and answer["window"] == "5m" and answer["notes"] == []
    found = lines(answer)
    named = {re.sub("run, .* rows", "run, N rows", what): line for what, line in found.items()}
    assert set(named) == {"memory of the process, the most of 2 servers", "model:1 weights", "model:1 arenas of an instance", "model:1 rows a second, of all servers",
                          "model:1 rows of a run, on average", "model:1 run, N rows on average", "model:1 part of the time that instances run"}
    assert not any(line["too_low"] for line in found.values())
    memory = found["memory of the process, the most of 2 servers"]
    assert memory["measured_bytes"] >= max(server.metric("process_resident_memory_bytes") for server in world.servers) * 0.9
    weights = found["model:1 weights"]
    assert weights["planned_bytes"] == weights["measured_bytes"] == world.servers[0].metric("serin_model_weight_bytes", model="model")
    rows = found["model:1 rows of a run, on average"]
    assert 2 < rows["measured_rows"] < 4 and "planned_rows" not in rows  # 3.5, but Prometheus extrapolates the counters of each server
    assert found["model:1 rows a second, of all servers"]["measured_per_second"] == pytest.approx(140 / 300, rel=0.5)
    run = named["model:1 run, N rows on average"]
    own = sum(server.metric("nv_inference_compute_infer_duration_us") for server in world.servers) / 40 / 1e6
    assert run["planned_seconds"] > 0 and run["measured_seconds"] == pytest.approx(own, rel=0.5)
    busy = found["model:1 part of the time that instances run"]
    assert 0 < busy["planned_share"] < 1 and 0 <= busy["measured_share"] < 1
    text = plan(DIGIT, "--observe", world.address).stdout
    assert f"measured at {world.whole.url.removeprefix('http://')}, in the last 5m" in text and "/s" in text and "% of the plan" in text


def test_labels_of_the_address_choose_servers(world, observed):
    port = world.servers[1].ports["metrics"]
    found = lines(observed("--observe", f"{world.address}/?instance=127.0.0.1:{port}&job=~s.r[i]n", "--window", "1h"))
    assert "memory of the process" in found and found["model:1 rows of a run, on average"]["measured_rows"] == pytest.approx(2, rel=1e-6)
    assert found["model:1 rows a second, of all servers"]["measured_per_second"] == pytest.approx(20 / 3600, rel=0.5)
    assert observed("--observe", world.address, "--window", "1h")["window"] == "1h"


def test_several_models_are_asked_for_at_once(world, observed, tmp_path):
    answer = observed("--observe", world.address, models=(DIGIT, model_named(tmp_path, "a.b-c")))
    note = next(note for note in answer["notes"] if note.startswith("a.b-c:1: no series answers"))
    assert r'model=~"model|a\\.b\\-c"' in note and "is it served, and scraped?" in note and "model:1 weights" in lines(answer)


def test_figures_that_are_no_number_or_absent_are_left_out(world, observed, tmp_path):
    answer = observed("--observe", world.address, models=(model_named(tmp_path, "odd"),))
    assert set(lines(answer)) == {"memory of the process", "odd:1 arenas of an instance"} and lines(answer)["memory of the process"]["measured_bytes"] == 1e6
    assert 'the answer is NaN by the query max by (model, version) (max_over_time(serin_model_weight_bytes{model="odd"}[5m])): it is left out' in answer["notes"]
    assert 'odd:1: no series answers sum by (model, version) (increase(nv_inference_exec_count{model="odd"}[5m]))' in answer["notes"]


def test_a_server_that_misses_a_part_says_so(world, observed):
    answer = observed("--observe", "prometheus+" + world.partial.url)
    assert "model:1 weights" in lines(answer)
    assert any("may be of a part of the servers, because Prometheus warns: " in note for note in answer["notes"]), answer["notes"]


class Refuses(http.server.BaseHTTPRequestHandler):
    """A proxy before a Prometheus that lets no request without its token pass, and to which nothing is behind it."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(502 if self.headers["Authorization"] == "Bearer secret" else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_errors_name_the_server_and_the_query(world, plan, tmp_path):
    def said(address, *more, code=5):
        return plan(DIGIT, "--observe", address, *more, code=code).stderr
    nothing = f"prometheus+http://127.0.0.1:{free_port()}"
    assert f"--observe {nothing}: {nothing[18:]}: cannot connect: Connection refused" in said(nothing)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        address = f"prometheus+http://127.0.0.1:{proxy.server_port}"
        assert "the server answers 401: it requires credentials" in said(address)
        (tmp_path / "token").write_text("secret\n")
        assert "the server answers 502" in said(address, "--token-file", tmp_path / "token")
        proxy.shutdown()
    assert "the server answers 404" in said(f"prometheus+{world.whole.url}/prefix")
    assert "the server answers 40" in said(f"prometheus+{world.servers[0].url}")
    assert "error parsing regexp" in said(world.address + "?job=~(")
    assert 'model:1: no series answers max by (model, version) (max_over_time(serin_model_weight_bytes{job="none",model="model"}[5m]))' in said(world.address + "?job=none")
    for address, more, words in (("prometheus+ftp://x", (), "is no address such as prometheus+http://"), (world.address + "?a-b=c", (), "must be NAME=VALUE or NAME=~PATTERN"),
                                 (world.address, ("--window", "5"), "--window 5: must be a duration"), (world.address, ("--window", "10ms"), "--window 10ms: must be"),
                                 (world.address, ("--token-file", "/no/such"), "--token-file /no/such"),
                                 (f"127.0.0.1:{world.servers[0].ports['metrics']}", ("--window", "5m"), "--window: is for an address that begins with prometheus+")):
        assert words in said(address, *more, code=2)
    assert "--window: nothing asks Prometheus" in plan(DIGIT, "--window", "5m", code=2).stderr


# --- cards -----------------------------------------------------------------------------------------------------------------------------


def fleet(tmp_path, **changes):
    nodes = [{"name": "gpu", "count": 2, "cores": 32, "memory": "256Gi", "accelerators": [{"device": "L4", "count": 2, "load": "90%", "memory_used": "1G"}]},
             {"name": "mig", "cores": 32, "memory": "256Gi", "accelerators": [{"device": "A100-SXM4-40GB", "slice": "1g.5gb", "count": 3}]}]
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({"nodes": nodes, "models": [{"name": "m", "needs": {"device_memory": "8G", "busy": 0.5, "cores": 1}}], "scheduler": {"timeout": 10}, **changes}))
    return path


def test_the_load_of_a_fleet_is_that_of_its_cards_now(world, plan, tmp_path):
    path = fleet(tmp_path)
    assert "not placed" in plan("--fleet", path, code=1).stdout  # by what the file says, all cards are 90 % busy
    answer = json.loads(plan("--fleet", path, "--load", world.address, "--json").stdout)
    (placed,) = answer["placed"]
    assert (placed["node"], placed["accelerator"]) == ("gpu-1", 0)  # it has run something, and has room for both
    before = answer["use"]["before"]
    assert before["in_use"] == 4 and before["accelerators"] == 7
    assert before["time"] == pytest.approx((0.67 + 0.23 + 1 + 0.25) / 4) and 0.4 < before["memory"] < 0.55
    notes = answer["notes"]
    assert any("the load of 6 of 7 accelerators was measured: " in note and "in the last 5m" in note for note in notes), notes
    assert "node mig: 1 of 3 NVIDIA A100-SXM4-40GB 1g.5gb are not measured: their load stays as it is" in notes
    assert "cards 0 of the host 'elsewhere' are measured, but the fleet has no such node" in notes


def test_a_cluster_of_kubectl_gets_the_load_of_cards_that_no_pod_has(world, plan, tmp_path):
    def node(name):
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name + ".example.org", "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-L4"}},
                "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "serin-0", "namespace": "prod"}, "status": {"phase": "Running"},
           "spec": {"nodeName": "gpu-1.example.org", "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "items": [node("gpu-0"), node("gpu-1"), pod], "kind": "List"}))
    needs = {"device_memory": "20G", "busy": 0.2, "cores": 1}
    path = fleet(tmp_path, nodes="cluster.json", models=[{"name": f"m{i}", "needs": needs} for i in range(3)])
    before = json.loads(plan("--fleet", path, "--json").stdout)["use"]["before"]
    assert before["in_use"] == 1  # what pods have requested is all that the cluster says
    answer = json.loads(plan("--fleet", path, "--load", world.address, "--json", code=1).stdout)
    assert answer["use"]["before"]["in_use"] == 3 and len(answer["placed"]) == 2
    assert {(each["node"], each["accelerator"]) for each in answer["placed"]} == {("gpu-0.example.org", 1), ("gpu-1.example.org", 1)}


def test_loads_that_cannot_be_measured_are_named(world, plan, tmp_path):
    path = fleet(tmp_path)
    def said(address, *more, code=5):
        return plan("--fleet", path, "--load", address, *more, code=code).stderr
    nothing = f"prometheus+http://127.0.0.1:{free_port()}"
    assert f"--load {nothing}: {nothing[18:]}: cannot connect" in said(nothing)
    assert 'no series answers DCGM_FI_DEV_FB_USED{job="serin"}: does it scrape the exporter of DCGM?' in said(world.address + "?job=serin")
    assert "is no address such as prometheus+http://" in said(world.whole.url, code=2)
    assert "--load" in plan(DIGIT, "--load", world.address, code=2).stderr
