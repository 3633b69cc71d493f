"""serin plan --fleet: many models on a fleet, with a bound, and reasons for those that have no place."""

import json
import re

import pytest
import yaml

from conftest import MODELS, serin

DIGIT = MODELS / "digits/2/model.onnx"


def fleet(tmp_path, **changes):
    content = {
        "nodes": [
            {"name": "gpu", "count": 2, "cores": 32, "memory": "256Gi", "labels": {"zone": "a"},
             "accelerators": [{"device": "L4", "count": 2}, {"device": "A100-SXM4-40GB", "slice": "1g.5gb", "count": 2}]},
            {"name": "cpu", "cores": 16, "memory": "64Gi", "load": {"cores": "50%", "memory": 0.25}},
        ],
        "models": [{"name": f"m{i}", "needs": {"device_memory": f"{2 + i}G", "busy": 0.1 * (i + 1), "cores": 2, "memory": "2Gi"}} for i in range(6)],
        "scheduler": {"timeout": 20, "gap": 0.01},
        **changes,
    }
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def packed(*arguments, code=0):
    done = serin("plan", *arguments, "--json", env={"XDG_CACHE_HOME": "/dev/null"})
    assert done.returncode == code, done.stdout + done.stderr
    answer = json.loads(done.stdout)  # the solver prints nothing there
    assert answer["schema"] == "serin.fleet/1"
    return answer


def test_a_fleet_is_packed_with_a_bound(tmp_path):
    answer = packed("--fleet", fleet(tmp_path))
    assert answer["solver"].startswith("CBC ") and answer["gap"] <= 0.05 and not answer["not_placed"]
    assert {each["model"] for each in answer["placed"]} == {f"m{i}" for i in range(6)}
    use = answer["use"]
    assert use["before"]["in_use"] == 0 and use["packed"]["in_use"] < use["one_each"]["in_use"]
    assert use["packed"]["memory"] > use["one_each"]["memory"]
    by_place = {}
    for each in answer["placed"]:
        by_place.setdefault((each["node"], each["accelerator"]), []).append(each)
    assert all(sum(each["time"] for each in place) <= 1 for place in by_place.values())
    text = serin("plan", "--fleet", fleet(tmp_path)).stdout
    assert "6 of 6 models are placed on 3 nodes" in text and re.search(r"no packing costs less than .*: gap \d", text), text
    assert "an accelerator for each replica" in text and "packed" in text


def test_models_are_planned_for_the_cards_of_the_fleet(tmp_path):
    path = fleet(tmp_path, models=[{"model": str(DIGIT), "name": "digits", "demand": {"rps": 1000, "slo": "p99<=50ms"}, "on": {"zone": "a"},
                                    "resource_policy": {"allow_mixed_precision": True, "preferred_devices": ["L4"]}}])
    (placed,) = packed("--fleet", path)["placed"]
    assert placed["kind"] == "NVIDIA L4" and placed["node"].startswith("gpu-") and "batches up to" in placed["how"] and placed["time"] > 0
    both = packed(MODELS / "digits/1/model.onnx", "--fleet", path)
    assert len({each["model"] for each in both["placed"]}) == 2  # and one of the command line
    (tmp_path / "task.yaml").write_text(f"model: {DIGIT}\nname: by-task\ntask: {{type: inference}}\n")
    answer = packed("--fleet", fleet(tmp_path, models=[{"file": "task.yaml", "replicas": 3}]))
    assert sum(each["replicas"] for each in answer["placed"]) == 3 and answer["placed"][0]["model"] == "by-task"


def test_demands_that_cannot_be_met_are_named(tmp_path):
    models = [
        {"name": "large", "needs": {"device_memory": "31G"}},
        {"name": "wide", "needs": {"cores": 40}},
        {"name": "vision", "needs": {"device_memory": "1G"}, "replicas": 3, "resource_policy": {"tenant": "vision"}},
        {"name": "fine", "needs": {"device_memory": "1G"}},
    ]
    path = fleet(tmp_path, models=models, tenants={"vision": {"devices": 2}})
    answer = packed("--fleet", path, code=1)
    why = {each["model"]: each["why"] for each in answer["not_placed"]}
    assert set(why) == {"large", "wide", "vision"} and [each["model"] for each in answer["placed"]] == ["fine"]
    assert "needs 31.0 GB of device memory" in why["large"] and "are missing" in why["large"] and "would help" in why["large"]
    assert "needs 40 cores, and the most that is free on node 'gpu-0' is 32 cores" in why["wide"]
    assert "needs 3 devices, and the quota of tenant 'vision' has 2 left" in why["vision"]
    text = serin("plan", "--fleet", path).stdout
    assert "1 of 4 models are placed" in text and "not placed\n  large: " in text


def test_without_the_solver_first_fit_answers_and_says_so(tmp_path):
    answer = packed("--fleet", fleet(tmp_path), "--solver", "/no/such/plugin.so")
    assert answer["solver"] == "" and not answer["not_placed"]
    assert "an exact answer needs libserin_packing.so: /no/such/plugin.so" in answer["why_no_solver"]
    assert "first fit, without a bound" in serin("plan", "--fleet", fleet(tmp_path), "--solver", "/no/such/plugin.so").stdout


def test_prices_decide_where_all_accelerators_have_one(tmp_path):
    (tmp_path / "prices.yaml").write_text("currency: EUR\nhour: {L4: 5, A100-SXM4-40GB: 4}\n")  # a slice is an eighth of it
    answer = packed("--fleet", fleet(tmp_path, prices="prices.yaml", models=[{"name": "m", "needs": {"device_memory": "1G", "busy": 0.1}}]))
    assert answer["priced"] and answer["cost"] == pytest.approx(4 * 5 / 40) and answer["placed"][0]["kind"].endswith("1g.5gb")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": []}, "nodes: must be a list of nodes"),
        ({"nodes": [{"name": "a", "cores": 4}]}, "key 'memory' is missing"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "much"}]}, "nodes[0].memory: must be bytes"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G"}] * 2}, "there are two nodes 'a'"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "gpus": 3}]}, "unknown key 'gpus' under nodes[0]"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "accelerators": [{"device": "L5"}]}]}, "nodes[0].accelerators[0].device: the catalogue has no device 'L5'"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "accelerators": [{"device": "A100"}]}]}, "'A100' may be NVIDIA A100-SXM4-80GB or"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "accelerators": [{"device": "L4", "load": "120%"}]}]}, "nodes[0].accelerators[0].load"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "accelerators": [{"device": "L4", "memory_used": "30G"}]}]}, "is above the"),
        ({"nodes": [{"name": "a", "cores": 4, "memory": "1G", "accelerators": [{"device": "H100", "slice": "5g.5gb"}]}]}, "has no slice '5g.5gb'; it has: 1g.10gb"),
        ({"models": [{"name": "m"}]}, "models[0]: must have one of: model, needs"),
        ({"models": [{"needs": {}}]}, "models[0]: key 'name' is missing"),
        ({"models": [{"name": "m", "needs": {"gpu": 1}}]}, "unknown key 'gpu' under models[0].needs"),
        ({"models": [{"name": "m", "needs": {}, "resource_policy": {"tenant": "x"}}]}, "tenant 'x' has no quota"),
        ({"models": [{"name": "m", "model": "/no/such.onnx"}]}, "model m: /no/such.onnx"),
        ({"models": []}, "has no models, and the command names none"),
        ({"tenants": {"a": {"hourly_cost": 3}}}, "tenants.a: hourly_cost is for one task"),
        ({"scheduler": {"timeout": -1}}, "scheduler.timeout"),
        ({"fleet": {}}, "unknown key 'fleet'"),
    ],
)
def test_bad_fleets_are_named(tmp_path, changes, said):
    done = serin("plan", "--fleet", fleet(tmp_path, **changes))
    assert done.returncode == 2 and said in done.stderr and not done.stdout, done.stderr
    assert "fleet.yaml" in done.stderr or "/no/such" in done.stderr
