"""serin plan --template: layers of resources and settings, where each value comes from, which template is for a model, what starts, and the smoke run."""

import json
import shutil
import sys

import pytest
import yaml

from conftest import DATA, MODELS, ON_FREE_PORTS, ROOT, Process, call, infer_body, serin

sys.path.append(str(ROOT / "tests/deploy"))

DIGIT = MODELS / "digits/2/model.onnx"
SHIPPED = ROOT / "deploy/templates"
BASE = """
image: registry.example.com:5000/team/serin:0.1.0
cpu: 2
memory: 2Gi
replicas: 2
labels: {team: platform, tier: gold}
settings:
  max_batch: 16
  queue_limit: 100
"""
DOMAIN = """
extends: base.yaml
memory: 4Gi
labels: {team: vision, tier: null}
settings: {slo: 50ms}
"""
PROJECT = """
extends: domain/domain.yaml
replicas: null
autoscaling: {min: 2, max: 8, in_flight: 4}
settings: {max_batch: 4}
nodeSelector: {pool: cpu}
tolerations:
  - {key: dedicated, operator: Equal, value: serving, effect: NoSchedule}
env: {OMP_NUM_THREADS: 1}
annotations: {example.com/owner: "team: vision"}
args: [--drain-seconds, 10]
"""


def plan(*arguments, code=0):
    done = serin("plan", *arguments, env={"XDG_CACHE_HOME": "/dev/null"})
    assert done.returncode == code, done.stdout + done.stderr
    return done


def refusal(*arguments, code=2):
    done = plan(*arguments, code=code)
    assert not done.stdout, done.stdout
    return done.stderr


def manifest(*arguments):
    """{kind: object}"""
    return {each["kind"]: each for each in yaml.safe_load_all(plan(*arguments, "--format", "kubernetes").stdout)}


def values(*arguments):
    """{key: (value, place)}"""
    return {each["key"]: (each["value"], each["from"]) for each in json.loads(plan(*arguments, "--json").stdout)["template"]["values"]}


def container(objects):
    return objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]


@pytest.fixture
def layers(tmp_path):
    (tmp_path / "domain").mkdir()
    (tmp_path / "domain/base.yaml").write_text(BASE)
    (tmp_path / "domain/domain.yaml").write_text(DOMAIN)
    (tmp_path / "project.yaml").write_text(PROJECT)
    return tmp_path


@pytest.fixture
def template(tmp_path):
    """template(text): the file with that."""
    def write(text, name="t.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name
    return write


# --- layers ----------------------------------------------------------------------------------------------------------------------------------


def test_three_layers_become_one_set_of_objects(layers):
    from test_manifests import misfits

    text = plan(DIGIT, "--template", layers / "project.yaml", "--format", "kubernetes").stdout
    (layers / "objects.yaml").write_text(text)
    assert misfits(layers / "objects.yaml") == []
    objects = {each["kind"]: each for each in yaml.safe_load_all(text)}
    assert list(objects) == ["ConfigMap", "Service", "Deployment", "HorizontalPodAutoscaler"]
    assert len({each["metadata"]["name"] for each in objects.values()}) == 1
    pod = objects["Deployment"]["spec"]["template"]
    served = container(objects)
    assert served["image"] == "registry.example.com:5000/team/serin:0.1.0"
    assert served["resources"] == {key: {"cpu": "2", "memory": "4Gi"} for key in ("requests", "limits")}
    assert served["env"] == [{"name": "OMP_NUM_THREADS", "value": "1"}]
    assert served["args"][-2:] == ["--drain-seconds", "10"]
    for each in (*objects.values(), pod):
        assert each["metadata"]["labels"]["team"] == "vision" and "tier" not in each["metadata"]["labels"]  # null removes what base.yaml has
    assert "team" not in objects["Deployment"]["spec"]["selector"]["matchLabels"]  # which can never change
    assert pod["metadata"]["annotations"]["example.com/owner"] == "team: vision"
    assert pod["spec"]["nodeSelector"] == {"pool": "cpu"} and pod["spec"]["tolerations"][0]["value"] == "serving"
    scaler = objects["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"], scaler["metrics"][0]["pods"]["target"]["averageValue"]) == (2, 8, "4")
    assert "replicas" not in objects["Deployment"]["spec"]
    settings = yaml.safe_load(objects["ConfigMap"]["data"]["serin.yaml"])
    assert settings == {"max_batch": 4, "queue_limit": 100, "slo": "50ms", "instances": 2, "precision": "fp32"}


def test_every_value_names_the_layer_and_line_that_it_comes_from(layers):
    arguments = [DIGIT, "--template", layers / "project.yaml", "--set", "cpu=3", "--set", r"labels.example\.com/cost=low"]
    found = values(*arguments)
    base, domain, project = layers / "domain/base.yaml", layers / "domain/domain.yaml", layers / "project.yaml"
    assert found["image"] == ('"registry.example.com:5000/team/serin:0.1.0"', f"{base}:2:8")
    assert found["memory"] == ('"4Gi"', f"{domain}:3:9")
    assert found["settings.max_batch"] == ("4", f"{project}:5:23")
    assert found["settings.queue_limit"] == ("100", f"{base}:9:16")
    assert found["cpu"] == ("3", "--set cpu")
    assert found["labels.example.com/cost"] == ('"low"', r"--set labels.example\.com/cost")
    assert found["settings.instances"] == ("3", "the plan")  # for three cores
    assert "replicas" not in found and "labels.tier" not in found and "extends" not in found
    text = plan(*arguments, "--explain").stdout
    assert f"template {base} <- {domain} <- {project}" in text and f"{domain}:3:9" in text
    commented = plan(*arguments, "--explain", "--format", "kubernetes").stdout
    assert f"{domain}:3:9" in commented and yaml.safe_load(list(yaml.safe_load_all(commented))[0]["data"]["serin.yaml"])["instances"] == 3


def test_flags_are_stronger_than_all_layers(layers):
    arguments = [DIGIT, "--template", layers / "project.yaml", "--batch", 2, "--instances", 1, "--image", "other:7"]
    found = values(*arguments)
    assert found["settings.max_batch"] == ("2", "--batch") and found["settings.instances"] == ("1", "--instances")
    assert found["image"] == ('"other:7"', "--image")
    objects = manifest(*arguments)
    assert container(objects)["image"] == "other:7" and yaml.safe_load(objects["ConfigMap"]["data"]["serin.yaml"])["max_batch"] == 2


def test_the_models_own_settings_lie_below_all_layers(template, tmp_path):
    shutil.copytree(MODELS / "digits/2", tmp_path / "models/digits/2")
    own = tmp_path / "models/digits/serin.yaml"
    own.write_text("max_batch: 8\nqueue_limit: 7\nslo: 1s\ndevice: auto\nlabels: {stable: 2}\n")
    file = template("settings: {max_batch: 2, slo: null}\n")
    found = values(tmp_path / "models/digits", "--template", file)
    assert found["settings.queue_limit"] == ("7", f"{own}:2:14") and found["settings.max_batch"] == ("2", f"{file}:1:23")
    assert "settings.slo" not in found and "settings.device" not in found
    text = plan(tmp_path / "models/digits", "--template", file).stdout
    assert f"device: of {own}:4:9 is ignored" in text
    objects = manifest(tmp_path / "models", "--template", file)  # the only model of a folder of models
    paths = {(each["mountPath"], each.get("subPath")) for each in container(objects)["volumeMounts"]}
    assert {("/models/digits/2", "digits/2"), ("/models/digits/serin.yaml", "serin.yaml")} <= paths


def test_what_a_template_leaves_open_is_the_plans(template):
    file = template("image: serin:0.1.0\n")
    found = values(DIGIT, "--template", file, "--device", "L4", "--rps", 1000)
    assert {found[key][1] for key in ("cpu", "memory", "gpu_count", "autoscaling.min", "autoscaling.max", "autoscaling.in_flight")} == {"the plan"}
    objects = manifest(DIGIT, "--template", file, "--device", "L4", "--rps", 1000)
    assert container(objects)["resources"]["limits"]["nvidia.com/gpu"] == 1 and "cuda" in container(objects)["args"]
    assert objects["Deployment"]["spec"]["template"]["spec"]["tolerations"][0]["key"] == "nvidia.com/gpu"
    bare = values(DIGIT, "--template", template("{}\n"))
    assert bare["image"][0].startswith('"serin:') and bare["replicas"] == ("1", "the plan")


def test_templates_of_other_tools_are_taken_as_they_lie(template):
    file = template("""gpu_count: 2
memory: 16Gi
cpu: 8
image: paddlepaddle/paddle:2.6.0-gpu-cuda11.8-cudnn8
command: python train.py --batch_size=64 --use_fleet=True
""")
    arguments = [DIGIT, "--template", file, "--device", "A100-SXM4-40GB", "--set", "batch_size=128", "--set", "gpu_count=4"]
    assert "command: ignored: the image starts `serin serve`" in plan(*arguments).stdout
    objects = manifest(*arguments)
    limits = container(objects)["resources"]["limits"]
    assert limits == {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 4}  # whole cards, and no slice of one
    assert yaml.safe_load(objects["ConfigMap"]["data"]["serin.yaml"])["max_batch"] == 128


# --- what a template gives too little of ---------------------------------------------------------------------------------------------------------


def test_less_memory_than_the_plan_needs_is_refused_with_advice(template):
    file = template("image: serin:0.1.0\nmemory: 8Mi\n")
    said = refusal(DIGIT, "--template", file, "--format", "kubernetes", code=1)
    assert f"and memory ({file}:2:9) has 8.39 MB: " in said and "MB of memory" in said, said
    assert f"memory ({file}:2:9)" in json.loads(plan(DIGIT, "--template", file, "--json", code=1).stdout)["demand"]["advice"]


def test_a_smaller_batch_is_planned_where_the_memory_is_small(template):
    need = json.loads(plan(DIGIT, "--batch", 1, "--json").stdout)["process"]["total_bytes"]
    file = template(f"image: serin:0.1.0\nmemory: {need // 2**20 + 4}Mi\n")
    wide = int(values(DIGIT, "--template", template("memory: 4Gi\n", "wide.yaml"))["settings.max_batch"][0])
    narrow = int(values(DIGIT, "--template", file)["settings.max_batch"][0])
    assert 1 <= narrow <= wide == 32


def test_too_few_cores_and_replicas_are_refused(template):
    file = template("cpu: 2\nsettings: {instances: 4}\n")
    assert f"4 instances of 1 threads compute on 4 cores, and cpu ({file}:1:6) has 2: reduce instances to 2" in refusal(DIGIT, "--template", file, code=1)
    load = ["--device", "T4", "--rps", 5_000_000]
    (file.parent / "task.yaml").write_text("resource_policy: {memory_threshold: 0.5}\n")
    half = template("memory: 16Mi\n")
    said = refusal(DIGIT, "--template", half, "--task", file.parent / "task.yaml", "--format", "kubernetes", code=1)
    assert f"and 50 % of memory ({half}:1:9) has 8.39 MB: " in said
    file = template("replicas: 2\n")
    assert f"and replicas ({file}:1:11) has 2: give it" in refusal(DIGIT, "--template", file, *load, code=1)
    file = template("autoscaling: {max: 2}\n")
    assert "and autoscaling.max (" in refusal(DIGIT, "--template", file, *load, code=1)
    assert "autoscaling has no metric: name in_flight or cpu_percent" in refusal(DIGIT, "--template", template("autoscaling: {max: 2}\n"))


# --- what is wrong -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image: serin:latest", "t.yaml:1:8: image: image 'serin:latest': latest is another program tomorrow; name a version or a digest"),
        ("image: registry:5000/serin", "t.yaml:1:8: image: image 'registry:5000/serin' has no tag"),
        ("image: serin@sha256:abc", "a digest is sha256: and 64 digits"),
        ("image: 'serin 0.1'", "is no name of an image"),
        ("memory: 16 apples", "t.yaml:1:9: memory: must be bytes, such as 512Mi or 16G"),
        ("memory: -1", "memory: must be bytes"),
        ("memory: {of: mine}", "memory: must be one value, not a map"),
        ("cpu: many", "t.yaml:1:6: cpu: must be cores, such as 4 or 500m, not 'many'"),
        ("replicas: -1", "replicas: must be a whole number from 1 to 10000, not '-1'"),
        ("gpu_count: 1.5", "gpu_count: must be a whole number"),
        ("autoscaling: {min: 4, max: 2}", "t.yaml:1:28: autoscaling.max: 2 is below min, which is 4 (t.yaml:1:20)"),
        ("autoscaling: 3", "autoscaling: must be a map"),
        ("autoscaling: {cpu_percent: 130}", "must be a whole number from 1 to 100"),
        ("replicas: 2\nautoscaling: {max: 4}", "replicas (t.yaml:1:11) would be reset by it: remove one of them"),
        ("memroy: 2Gi", "t.yaml:1:1: unknown key 'memroy'; allowed: extends"),
        ("autoscalign:\n  max: 2", "t.yaml:1:1: unknown key 'autoscalign'"),
        ("memroy: 2Gi", "did you mean 'memory'?"),
        ("autoscaling: {mx: 2}", "unknown key 'mx' under autoscaling; allowed: min, max, in_flight, cpu_percent"),
        ("cpu: 1\ncpu: 2", "key 'cpu' given twice"),
        ("- cpu", "must be a map of a template's keys"),
        ("settings: {max_bach: 4}", "unknown key 'max_bach'"),
        ("settings:\n  max_batch: 4\n  instances: some", "t.yaml:3:14: instances: must be a whole number"),
        ("settings: {device: cuda}", "settings.device: is set by the plan"),
        ("settings: {max_batch: 4}\nbatch_size: 8", "t.yaml:2:13: batch_size: is settings.max_batch, which t.yaml:1:23 has"),
        ("name: Digits!", "name: must be up to 52 of a-z, 0-9 and '-'"),
        ("labels: {team: a/b}", "labels.team: must be up to 63 letters"),
        ("labels: {app.kubernetes.io/name: x}", "is a label by which the Deployment finds its pods"),
        ("labels: [a]", "labels: must be a map"),
        ("env: {A-B: 1}", "must be a name of letters"),
        ("tolerations: {key: a}", "tolerations: must be a list"),
        ("tolerations: [{keys: a}]", "unknown key 'keys'"),
        ("args: [--max-batch, 4]", "--max-batch is set by the plan"),
        ("gpu_count: 0\ndevice: L4", "device: contradicts gpu_count, which is 0"),
        ("device: L44", "no device 'L44'"),
        ("applies_to: {input: pictures}", "'pictures' must be one of image, text, table, tensor"),
        ("applies_to: {parameters: {min: 2M, max: 1M}}", "min is above max"),
        ("applies_to: {parameters: {min: lots}}", "must be a number of parameters, such as 500K or 100M"),
        ("demand: {slo: soon}", "'soon' must be a percentile"),
        ("demand: {rps: none}", "demand.rps: must be a number"),
        ("extends: none.yaml", "t.yaml:1:10: extends: none.yaml"),
        ("extends: t.yaml", "t.yaml extends t.yaml: a circle"),
        ("extends: [a]", "extends: must be a word"),
        ("a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: &d [*c, *c, *c, *c]\ne: [*d, *d, *d, *d]\nenv: {X: [*d, *d, *d, *d]}", "aliases may repeat"),
        ("settings: &s {deep: *s}", "more than 16 maps and lists in each other"),
        ("[" * 3000, "not YAML"),
        ("cpu: 2\n" + "# and so on\n" * 100_000, "over the limit of 1048576"),
    ],
)
def test_bad_templates_are_refused_by_their_place(template, tmp_path, monkeypatch, text, said):
    template(text)
    monkeypatch.chdir(tmp_path)
    assert said in refusal(DIGIT, "--template", "t.yaml")


def test_circles_and_long_chains_are_named(template):
    a = template("extends: b.yaml\n", "a.yaml")
    template("extends: c.yaml\n", "b.yaml")
    template("extends: a.yaml\n", "c.yaml")
    assert "a.yaml extends" in (said := refusal(DIGIT, "--template", a)) and said.rstrip().endswith("a.yaml: a circle")
    for each in range(9):
        template(f"extends: {each + 1}.yaml\n", f"{each}.yaml")
    assert "more than 8 files" in refusal(DIGIT, "--template", a.parent / "0.yaml")


def test_a_misspelt_key_is_found_in_the_layer_that_has_it(template):
    template("memroy: 2Gi\n", "base.yaml")
    file = template("extends: base.yaml\nmemroy: null\n")
    assert f"{file.parent}/base.yaml:1:1: unknown key 'memroy'" in refusal(DIGIT, "--template", file)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("memroy=1Gi", "did you mean 'memory'?"),
        ("autoscaling.mx=1", "--set autoscaling.mx: unknown key 'mx' under autoscaling; allowed: min, max, in_flight, cpu_percent"),
        ("memory=16 apples", "--set memory: must be bytes"),
        ("cpu", "must be KEY=VALUE"),
        ("=4", "must be KEY=VALUE"),
        ("settings..x=4", "must be KEY=VALUE"),
        ("cpu.of.mine=4", "cpu of "),
        ("autoscaling={min: 1, mx: 2}", "--set autoscaling: unknown key 'mx'; allowed: min"),
        ("extends=base.yaml", "is of files only"),
        ("settings.max_batch=none", "--set settings.max_batch: max_batch: must be a whole number"),
        ("image=serin:latest", "--set image: image 'serin:latest': latest"),
        ("cpu={", "--set cpu: not YAML"),
    ],
)
def test_bad_settings_of_the_command_line_are_named(template, setting, said):
    assert said in refusal(DIGIT, "--template", template("cpu: 2\n"), "--set", setting)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((DIGIT, "--template", "/no/such.yaml"), "/no/such.yaml"),
        ((DIGIT, "--set", "cpu=4"), "--set requires --template"),
        ((DIGIT, "--template", SHIPPED / "base.yaml", "--set", "gpu_count=1", "--device", "cpu"), "--device cpu contradicts gpu_count, which is 1 (--set gpu_count)"),
        ((DIGIT, "--template", SHIPPED / "base.yaml", "--format", "docker"), "one line does not: take kubernetes"),
        (("--template", SHIPPED / "base.yaml"), "name the model's file or folder as an argument, or as model: in the template"),
        (("--template", SHIPPED), "name the model, by which one of the folder is chosen"),
        ((DIGIT, "--template", DATA / "digits_2"), "has no template"),
    ],
)
def test_bad_uses_are_named(arguments, said):
    assert said in refusal(*arguments)


# --- which template ------------------------------------------------------------------------------------------------------------------------------


def chosen(*arguments):
    return json.loads(plan(*arguments, "--json").stdout)["template"]


def save_model(path, op, *ends):
    import onnx
    from onnx import helper

    infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in ends]
    graph = helper.make_graph([helper.make_node(op, [infos[0].name], [infos[1].name])], "g", infos[:1], infos[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_the_most_specific_template_is_chosen_and_the_others_say_why_not(tmp_path):
    from onnx import TensorProto

    answer = chosen(DIGIT, "--template", SHIPPED)
    assert answer["files"][-1].endswith("tabular.yaml") and "input table" in answer["why"]
    why_not = {each["file"].rpartition("/")[2]: each["why_not"] for each in answer["others"]}
    assert why_not == {"base.yaml": "is for it, too, and less specific", "digits.yaml": "is for models named digits*, and this is 'model'",
                       "text.yaml": "is for the input text, and the model's is table", "vision.yaml": "is for the input image, and the model's is table"}
    image = save_model(tmp_path / "image.onnx", "Relu", ("x", TensorProto.FLOAT, ["n", 3, 224, 224]), ("y", TensorProto.FLOAT, ["n", 3, 224, 224]))
    assert chosen(image, "--template", SHIPPED)["files"][-1].endswith("vision.yaml")
    text = save_model(tmp_path / "text.onnx", "Identity", ("input_ids", TensorProto.INT64, ["n", 16]), ("y", TensorProto.INT64, ["n", 16]))
    assert chosen(text, "--template", SHIPPED)["files"][-1].endswith("text.yaml")
    sound = save_model(tmp_path / "sound.onnx", "Relu", ("x", TensorProto.FLOAT, ["n", 80, 100]), ("y", TensorProto.FLOAT, ["n", 80, 100]))
    assert chosen(sound, "--template", SHIPPED)["files"][-1].endswith("base.yaml")  # for whatever no other one is for
    said = plan(DIGIT, "--template", SHIPPED).stdout
    assert "the most specific one for the model: input table" in said and "vision.yaml: it is for the input image" in said


def test_conditions_are_names_formats_operators_and_sizes(tmp_path):
    folder = tmp_path / "templates"
    folder.mkdir()

    for holds in ("{name: mod*}", "{format: [onnx, paddle]}", "{operators: [Gemm]}", "{parameters: {min: 100, max: 100M}}", "{}"):
        (folder / "t.yaml").write_text(f"applies_to: {holds}\n")
        assert chosen(DIGIT, "--template", folder)["files"] == [str(folder / "t.yaml")], holds
    for fails, said in (("{name: resnet*}", "is for models named resnet*"), ("{format: paddle}", "is for the format paddle, and the model is onnx"),
                        ("{operators: [Gemm, LSTM]}", "is for models with the operator LSTM"), ("{parameters: {min: 1G}}", "is for at least 1.00 G parameters"),
                        ("{parameters: {max: 3}}", "is for at most 3.00 parameters")):
        (folder / "t.yaml").write_text(f"applies_to: {fails}\n")
        assert said in refusal(DIGIT, "--template", folder), fails
    (folder / "t.yaml").write_text("cpu: 1\n")
    assert "is a layer of others: it has no applies_to" in refusal(DIGIT, "--template", folder)


def test_two_templates_of_the_same_rank_are_refused_by_name(tmp_path):
    for name, condition in (("a", "input: table"), ("b", "format: onnx")):
        (tmp_path / f"{name}.yaml").write_text(f"applies_to: {{{condition}}}\n")
    said = refusal(DIGIT, "--template", tmp_path)
    assert f"{tmp_path}/a.yaml and {tmp_path}/b.yaml are both for the model 'model'" in said and "equally specific" in said


# --- what starts ---------------------------------------------------------------------------------------------------------------------------------


def files_of_the_pod(objects, claim, folder):
    """What the pod has under /models: from the claim, and from the ConfigMap."""
    for mount in container(objects)["volumeMounts"]:
        here = folder / mount["mountPath"].lstrip("/")
        if mount["name"] == "models":
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(claim / mount["subPath"])
        elif mount["name"] == "settings":
            here.write_text(objects["ConfigMap"]["data"][mount["subPath"]])
    return folder


@pytest.mark.parametrize("place", ["file", "folder"])
def test_the_pod_starts_with_its_settings(tmp_path, template, place):
    claim = tmp_path / "claim"
    if place == "folder":
        shutil.copytree(MODELS / "digits/2", claim / "digits/2")
        (claim / "digits/serin.yaml").write_text("class_labels: {scores: names.txt}\n")
        (claim / "digits/names.txt").write_text("\n".join(map(str, range(10))))
        (claim / "digits/train.py").write_text("of no use to a server\n")
    else:
        shutil.copytree(MODELS / "digits/2", claim / "model")
    model = claim / ("digits" if place == "folder" else "model/model.onnx")
    objects = manifest(model, "--template", template("settings: {max_batch: 3, instances: 2}\nargs: [--log-format, json]\n"))
    folder = files_of_the_pod(objects, claim, tmp_path / "pod")
    words = [str(folder / word.lstrip("/")) if word.startswith("/models") else word for word in container(objects)["args"][1:]]
    words[words.index("--address") + 1] = "127.0.0.1"
    with Process(tmp_path, "serve", *words, *ON_FREE_PORTS) as server:
        name = "digits" if place == "folder" else "model"
        config = call(f"{server.url}/v2/models/{name}/config").json
        assert (config["max_batch_size"], config["instance_group"][0]["count"]) == (3, 2)
        assert call(f"{server.url}/v2/models/{name}/infer", infer_body([[0.0] * 64])).status == 200
    if place == "folder":
        mounted = {each["mountPath"]: each.get("subPath") for each in container(objects)["volumeMounts"]}
        assert mounted == {"/models/digits/2": "digits/2", "/models/digits/names.txt": "digits/names.txt", "/models/digits/serin.yaml": "serin.yaml", "/tmp": None}


def test_other_settings_make_other_pods(template):
    annotations = [manifest(DIGIT, "--template", template(f"settings: {{max_batch: {rows}}}\n"))["Deployment"]["spec"]["template"]["metadata"]["annotations"]
                   for rows in (2, 4, 2)]
    numbers = [each["serin.dev/settings"] for each in annotations]
    assert numbers[0] != numbers[1] and numbers[0] == numbers[2]


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.yaml")))
def test_every_template_that_we_ship_is_planned(tmp_path, name):
    from test_manifests import misfits

    model = [] if name == "digits" else [DIGIT]
    file = tmp_path / "objects.yaml"
    file.write_text(plan(*model, "--template", SHIPPED / f"{name}.yaml", "--format", "kubernetes").stdout)
    assert misfits(file) == []
    objects = {each["kind"]: each for each in yaml.safe_load_all(file.read_text())}
    base = yaml.safe_load((ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]
    assert container(objects)["image"] == base["image"]  # one version for all manifests
    for key in ("ports", "securityContext"):
        assert container(objects)[key] == base[key]


# --- the smoke run -------------------------------------------------------------------------------------------------------------------------------


def test_a_smoke_run_precedes_the_manifest(template):
    file = template(f"smoke: {{data: {DATA / 'digits_2'}}}\n")
    done = plan(DIGIT, "--template", file, "--format", "kubernetes")
    assert "smoke run: loaded and warmed up; 2 of 2 data sets agree" in done.stderr and "kind: Deployment" in done.stdout
    assert "smoke run" not in plan(DIGIT, "--template", file).stderr  # nothing is to be started
    assert "smoke run" not in plan(DIGIT, "--template", file, "--set", "smoke=null", "--format", "kubernetes").stderr


def test_a_model_that_answers_otherwise_makes_no_manifest(template):
    file = template(f"smoke: {{data: {DATA / 'digits_1'}}}\n")
    said = refusal(DIGIT, "--template", file, "--format", "kubernetes", code=1)
    assert "smoke run: the model loads, and its answers on" in said and "0 of 2 data sets agree" in said, said
    plan(DIGIT, "--template", file, "--set", "smoke.rtol=1000000", "--set", "smoke.atol=1000000", "--format", "kubernetes")


def test_a_model_that_does_not_start_makes_no_manifest(template):
    file = template("smoke: {}\nargs: [--no-such-flag]\n")
    assert "smoke run: the model is not served: " in (said := refusal(DIGIT, "--template", file, "--format", "kubernetes", code=1)) and "--no-such-flag" in said
    file = template("smoke: {}\nsettings: {warmup: [{name: a, inputs: {nothing: {dtype: FP32, dims: [64], zero: true}}}]}\n")
    assert "smoke run" in refusal(DIGIT, "--template", file, "--format", "kubernetes", code=1)


def test_a_smoke_run_needs_no_template(tmp_path):
    shutil.copytree(MODELS / "digits/2", tmp_path / "digits/2")
    for each in (DATA / "digits_2").iterdir():
        shutil.copytree(each, tmp_path / "digits/2" / each.name)
    assert "2 of 2 data sets agree" in plan(tmp_path / "digits", "--smoke").stderr
    assert "there are no data sets to check it on" in plan(DIGIT, "--smoke").stderr
    assert "--smoke runs one model" in plan(MODELS / "digits/1", DIGIT, "--smoke", code=2).stderr


def test_a_card_that_is_not_here_is_tried_on_the_cpu(template):
    file = template("gpu_count: 1\ndevice: L4\nsettings: {precision: fp16}\nsmoke: {}\n")
    done = plan(DIGIT, "--template", file, "--format", "kubernetes")
    assert "loaded and warmed up" in done.stderr
    assert yaml.safe_load({each["kind"]: each for each in yaml.safe_load_all(done.stdout)}["ConfigMap"]["data"]["serin.yaml"])["precision"] == "fp16"
