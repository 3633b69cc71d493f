"""serin plan with a task file or a load: which place, how many replicas, what it costs, and what starts it."""

import json
import pathlib
import shlex
import sys

import pytest
import yaml

from conftest import MODELS, ON_FREE_PORTS, ROOT, Process, call, infer_body, serin

sys.path.append(str(ROOT / "tests/deploy"))

DIGIT = MODELS / "digits/2/model.onnx"
TASK = """
task: {type: "training", framework: "paddlepaddle", model_name: "ernie-gram", sequence_length: 512, batch_size_per_gpu: 16, num_gpus_estimate: "auto"}
resource_policy: {memory_threshold: 0.85, allow_mixed_precision: true, distributed_strategy: "ddp", preferred_devices: ["A100-SXM4-40GB", "V100-32GB", "RTX_3090"]}
scheduler: {algorithm: "rl_based", timeout: 300}
"""
PRICES = "currency: EUR\nsource: invented\nhour: {NVIDIA L4: 0.7, A10: 1.0, T4: 0.4, H100: 4, core: 0.03, gigabyte: 0.004}\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What was measured on the model, here and now."""
    kept = tmp_path_factory.mktemp("measured") / "plan.json"
    done = serin("plan", DIGIT, "--calibration", kept, "--calibrate", 0.3)
    assert done.returncode == 0, done.stderr
    return kept


def plan(*arguments, code=0):
    done = serin("plan", *arguments, env={"XDG_CACHE_HOME": "/dev/null"})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def demand(*arguments, code=0):
    return json.loads(plan(*arguments, "--json", code=code))["demand"]


def chosen(*arguments):
    answer = demand(*arguments)
    assert answer["holds"], answer["advice"]
    return answer["offers"][0]


def refusal(*arguments):
    done = serin("plan", *arguments)
    assert done.returncode == 2 and not done.stdout, done.stdout + done.stderr
    return done.stderr


# --- task files ----------------------------------------------------------------------------------------------------------------------------


def test_a_task_file_of_another_planner_is_answered_as_it_lies(tmp_path):
    (tmp_path / "task.yaml").write_text(TASK)
    text = plan(DIGIT, "--task", tmp_path / "task.yaml")
    for said in ("task.type: Serin does not train", "task.framework: ignored", "distributed_strategy: ddp is ignored", "rl_based is replaced by an exact solver",
                 "task.sequence_length: ignored: the model has no open dimension", "85 % of a memory is planned"):
        assert said in text, text
    answer = demand(DIGIT, "--task", tmp_path / "task.yaml")
    best = answer["offers"][0]
    assert best["place"].startswith("NVIDIA A100-SXM4-40GB") and best["batch"] == 16, best  # the first that is preferred
    v100 = [offer for offer in answer["offers"] if "V100" in offer["place"]]
    assert len(v100) == 2 and all("CUDA 13 has no code for sm_70" in offer["why_not"] for offer in v100)


def test_the_file_may_name_the_model_and_a_sequence(tmp_path):
    (tmp_path / "task.yaml").write_text(f"model: {MODELS}\ntask: {{model_name: digits, batch_size: 4}}\n")
    assert "a load is that of one model" in refusal("--task", tmp_path / "task.yaml")  # two versions of it
    (tmp_path / "task.yaml").write_text(f"model: {DIGIT}\ntask: {{batch_size: 4}}\n")
    assert chosen("--task", tmp_path / "task.yaml")["batch"] == 4
    (tmp_path / "task.yaml").write_text("task: {model_name: ernie}\n")
    assert "task.model_name is 'ernie', which is no file" in refusal("--task", tmp_path / "task.yaml")
    (tmp_path / "task.yaml").write_text("task:\n  batch_sise: 4\n")
    assert "task.yaml:2:3: unknown key 'batch_sise' under task" in refusal(DIGIT, "--task", tmp_path / "task.yaml")


def test_a_sequence_length_is_the_size_of_the_open_dimension(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "seq"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "model.onnx")
    (tmp_path / "task.yaml").write_text("task: {sequence_length: 77, batch_size: 2}\n")
    answer = json.loads(plan(tmp_path / "model.onnx", "--task", tmp_path / "task.yaml", "--json"))
    assert answer["models"][0]["buckets"][-1]["sizes"] == {"batch": 2, "seq": 77}
    assert {"key": "task.sequence_length", "text": "is the size of dimension 'seq'"} in answer["demand"]["notes"]


def test_mixed_precision_is_used_only_where_it_is_permitted(tmp_path):
    task = tmp_path / "task.yaml"
    slow = ["--rps", 2_000_000, "--device", "L4"]
    for permitted in "true", "false":
        task.write_text(f"resource_policy: {{allow_mixed_precision: {permitted}}}\n")
        best = chosen(DIGIT, "--task", task, *slow)
        assert (best["precision"] == "fp32") == (permitted == "false"), best
    assert "--precision fp16 contradicts resource_policy.allow_mixed_precision" in refusal(DIGIT, "--task", task, "--precision", "fp16")


def test_quotas_and_numbers_of_cards_are_kept(tmp_path):
    task = tmp_path / "task.yaml"
    load = ["--rps", 5_000_000, "--device", "T4"]
    needed = chosen(DIGIT, *load)["replicas"]
    assert needed > 2
    task.write_text("task: {num_gpus_estimate: 2}\n")
    assert f"needs {needed} replicas, and num_gpus_estimate is 2" in demand(DIGIT, "--task", task, *load, code=1)["advice"]
    task.write_text("resource_policy: {tenant: vision}\ntenants: {vision: {devices: 1}}\n")
    assert f"needs {needed} devices, and tenant 'vision' may take 1" in demand(DIGIT, "--task", task, *load, code=1)["advice"]


def test_labelled_cards_come_first_if_they_hold(tmp_path):
    own = tmp_path / "own.yaml"
    device = {"name": "Home Card", "kind": "gpu", "memory": {"gb": 32, "source": "a label"}, "bandwidth": {"gbps": 800, "source": "a label"},
              "peak": {"fp32": 20, "fp16": 100, "source": "a label"}, "runs": True, "labels": ["domestic"]}
    own.write_text(json.dumps({"devices": [device]}))
    task = tmp_path / "task.yaml"
    task.write_text("resource_policy: {prefer: domestic}\n")
    best = chosen(DIGIT, "--task", task, "--catalogue", own)
    assert best["place"] == "Home Card" and best["preferred"]
    task.write_text("resource_policy: {prefer: domestic}\ndemand: {slo: 1us}\n")
    assert not demand(DIGIT, "--task", task, "--catalogue", own, code=1)["holds"]  # a preference does not make it faster


# --- loads ---------------------------------------------------------------------------------------------------------------------------------


def test_replicas_follow_the_load_and_the_slow_end_decides():
    small, large = (chosen(DIGIT, "--rps", rps, "--slo", "p99<=20ms", "--device", "L4") for rps in (1000, 10_000_000))
    assert small["replicas"] == 1 < large["replicas"]
    assert large["replicas"] * large["rate"] >= 10_000_000 > (large["replicas"] - 1) * large["rate"]
    assert large["fewest_replicas"] < large["replicas"] and not large["calibrated"]
    text = plan(DIGIT, "--rps", 10_000_000, "--slo", "p99<=20ms", "--device", "L4")
    assert "uncalibrated: the slow end of the range decides" in text and f"{large['fewest_replicas']} would do by the fast end" in text


def test_this_machine_is_offered_once_it_was_measured(measured):
    without = demand(DIGIT, "--rps", 100)["offers"]
    assert any(offer["place"] == "this machine's CPU" and "not measured" in offer["why_not"] for offer in without)
    offers = demand(DIGIT, "--rps", 100, "--slo", "p99<=50ms", "--calibration", measured)["offers"]
    cpu = next(offer for offer in offers if offer["place"] == "this machine's CPU")
    assert cpu["calibrated"] and cpu["rate"] == cpu["best_rate"] > 100 and not cpu["why_not"]
    assert cpu["latency_seconds"] <= 0.05


def test_a_limit_below_one_batch_is_refused_with_advice():
    answer = demand(DIGIT, "--rps", 10, "--slo", "p99<=1us", "--device", "L4", code=1)
    assert "which p99 <= 1us does not permit" in answer["advice"] and "a longer SLO" in answer["advice"]
    assert not any(offer["why_not"] == "" for offer in answer["offers"])


def test_the_cheapest_is_chosen_and_a_million_answers_have_a_price(tmp_path, measured):
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    answer = demand(DIGIT, "--rps", 1000, "--prices", prices, "--calibration", measured)
    priced = [offer for offer in answer["offers"] if offer["cost_per_million"] is not None]
    assert answer["currency"] == "EUR" and priced[0] is answer["offers"][0]
    assert priced[0]["cost_per_million"] == min(offer["cost_per_million"] for offer in priced if not offer["why_not"])
    for offer in priced:
        assert offer["cost_per_million"] == pytest.approx(offer["hourly_cost"] / 3600 / 1000 * 1e6)
    card = next(offer for offer in priced if offer["place"] == "NVIDIA L4")
    cores, gigabytes = card["instances"] * card["threads"], card["process_bytes"] / 1e9
    assert card["hourly_cost"] == pytest.approx(card["replicas"] * (0.7 + 0.03 * cores + 0.004 * gigabytes))
    assert "EUR an hour" in plan(DIGIT, "--rps", 1000, "--prices", prices, "--calibration", measured)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((DIGIT, "--rps", "0"), "--rps"),
        ((DIGIT, "--rps", "many"), "--rps"),
        ((DIGIT, "--slo", "fast"), "--slo: 'fast' must be a percentile"),
        ((DIGIT, "--prices", "/no/such.yaml"), "/no/such.yaml"),
        ((DIGIT, "--task", "/no/such.yaml"), "/no/such.yaml"),
        ((DIGIT, "--format", "helm"), "--format"),
        ((DIGIT, "--format", "docker", "--image", "serin:latest"), "latest is another program tomorrow"),
        ((DIGIT, "--format", "docker", "--image", "registry:5000/serin"), "has no tag"),
        (("--rps", "3"), "name the model's file or folder"),
        ((), "name a model's file or folder"),
    ],
)
def test_bad_loads_are_named(arguments, said):
    assert said in refusal(*arguments)


# --- what starts -----------------------------------------------------------------------------------------------------------------------------


def on_this_machine(arguments, inside, host):
    """What a container would start, with its folder where it is here, and on free ports."""
    assert arguments[0] == "serve"
    words = [word.replace(inside, str(host)) if word.startswith(inside) else word for word in arguments[1:]]
    words[words.index("--address") + 1] = "127.0.0.1"
    return [*words, *ON_FREE_PORTS]


def answers(process, model):
    answer = call(f"{process.url}/v2/models/{model}/infer", infer_body([[0.0] * 64]))
    assert answer.status == 200, answer.body
    return call(f"{process.url}/v2/models/{model}/config").json


def test_the_line_for_docker_starts(tmp_path, measured):
    line = plan(DIGIT, "--rps", 500, "--slo", "p99<=50ms", "--calibration", measured, "--device", "cpu", "--format", "docker")
    words = shlex.split(line)
    assert words[:2] == ["docker", "run"] and line.count("\n") == 1
    host, inside, mode = words[words.index("-v") + 1].split(":")
    assert pathlib.Path(host) == DIGIT.parent and mode == "ro"
    image = next(at for at, word in enumerate(words) if word.startswith("serin:"))
    with Process(tmp_path, "serve", *on_this_machine(words[image + 1:], inside, host)) as server:
        config = answers(server, "model")
        assert config["max_batch_size"] == int(words[words.index("--max-batch") + 1])


def test_the_manifest_is_valid_and_starts(tmp_path, measured):
    from test_manifests import misfits

    file = tmp_path / "pod.yaml"
    file.write_text(plan(DIGIT, "--rps", 500, "--slo", "p99<=50ms", "--calibration", measured, "--device", "cpu", "--format", "kubernetes"))
    deployment, autoscaler = yaml.safe_load_all(file.read_text())
    assert misfits(file) == []
    assert deployment["metadata"]["labels"] == deployment["spec"]["template"]["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"].startswith("serin:") and not container["image"].endswith(":latest")
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert autoscaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert autoscaler["spec"]["minReplicas"] == 1 and "replicas" not in deployment["spec"]
    metric = autoscaler["spec"]["metrics"][0]["pods"]
    assert metric["metric"]["name"] in (ROOT / "deploy/prometheus/adapter.yml").read_text() and int(metric["target"]["averageValue"]) >= 1
    with Process(tmp_path, "serve", *on_this_machine(container["args"], "/models/model", DIGIT.parent)) as server:
        answers(server, "model")
        assert server.metric(metric["metric"]["name"], model="model") == 0  # it exists, and nothing is under way


def test_the_base_of_deploy_has_the_same_probes_and_ports(tmp_path):
    made = yaml.safe_load(plan(DIGIT, "--format", "kubernetes", "--device", "cpu"))["spec"]["template"]["spec"]["containers"][0]
    base = yaml.safe_load((ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]
    for probe in "startupProbe", "livenessProbe", "readinessProbe":
        assert made[probe]["httpGet"].items() <= base[probe]["httpGet"].items(), probe
    for key in "ports", "securityContext", "volumeMounts":
        assert made[key] == base[key], key


def test_a_card_is_asked_for_by_its_resource(tmp_path):
    for device, resource in (("L4", "nvidia.com/gpu"), ("A100-SXM4-40GB", "nvidia.com/mig-1g.5gb")):
        pod = yaml.safe_load(plan(DIGIT, "--device", device, "--format", "kubernetes"))["spec"]["template"]["spec"]
        assert pod["containers"][0]["resources"]["limits"][resource] == 1 and pod["tolerations"]
        assert pod["containers"][0]["image"] == "serin:cuda" and "cuda" in pod["containers"][0]["args"]


def test_nothing_is_printed_to_start_where_nothing_holds():
    done = serin("plan", DIGIT, "--rps", 10, "--slo", "p99<=1us", "--device", "L4", "--format", "docker")
    assert done.returncode == 1 and not done.stdout and "no place holds it" in done.stderr


def test_serve_takes_the_numbers_of_a_plan_where_settings_say_nothing(serve, repository):
    server = serve(repository({"digits/1": DIGIT}), "--instances", 3, "--max-batch", 5)
    config = call(f"{server.url}/v2/models/digits/config").json
    assert config["max_batch_size"] == 5 and config["instance_group"][0]["count"] == 3


def test_a_pod_with_a_card_has_room_for_the_driver():
    """On the host, too: libraries of NVIDIA take hundreds of megabytes there, and a limit of the model's own bytes would kill the pod."""
    made = serin("plan", MODELS / "digits/1", "--rps", 50, "--slo", "p99<=50ms", "--format", "kubernetes").stdout
    limits = next(each for each in yaml.safe_load_all(made) if each["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert any(name.startswith("nvidia.com/") for name in limits) and int(limits["memory"].removesuffix("Mi")) > 1024
    assert "memory: 1" in serin("plan", MODELS / "digits/1", "--device", "L4").stdout.partition("resources:")[2]
