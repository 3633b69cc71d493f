"""Labels that come later, by the ID of a request: the router compares them with the class that the model answered. Real runtimes of models/digits."""

import concurrent.futures
import contextlib
import json
import signal
import sqlite3
import uuid

import numpy as np
import pytest

from backends import Faults
from conftest import MODELS, call, infer_body, serin, wait_until
from etcd_group import EtcdGroup, clusters_in
from grpc_backends import OIP, field
from grpc_clients import infer
from routers import NO_SECOND_TRY, QUICK_HEALTH, Router, hold, reload, service, write_config

PATH = "/v1/services/digits/outcomes"
ACCURACY = [{"name": "accuracy", "labels": {"output": "scores"}}]
# Nothing but the labels may find out that a version is wrong.
ONLY_LABELS = {"outcomes": [{"metric": "accuracy", "margin": 0.05}], "output": {"compare": "off"}, "resources": "off"}
EVALUATION = np.load(MODELS / "digits" / "eval.npz")
PIXELS, LABELS = EVALUATION["pixels"], EVALUATION["label"].tolist()
WAYS = {"digits": "/v2/models/digits/versions/{}", "predict": "/v1/models/digits/versions/{}"}


def real(runtime, canary, name="digits", outcomes=ACCURACY, **more):
    """Version 1 of the digits, and another one of them."""
    versions = [{"name": version, "health": QUICK_HEALTH,
                 "endpoints": [{"url": runtime.url + WAYS.get(name, WAYS["digits"]).format(version), "grpc_port": runtime.ports["grpc"]}]}
                for version in ("1", canary)]
    return {"name": name, "initial_stable": "1", "versions": versions, "outcomes": outcomes, **more}


def begin(router, canary, name="digits", weight=50, guard=None, **more):
    wait_until(lambda: router.healthy(canary, name) == 1, 20, "health checked")
    router.start_rollout(canary=canary, name=name, steps=[hold(weight)], shield=NO_SECOND_TRY, guard=guard or ONLY_LABELS, **more)


def ask(router, row, request_id=None, model="digits", **body):
    headers = {"x-request-id": request_id} if request_id else {}
    return call(f"{router.url}/v2/models/{model}/infer", infer_body(PIXELS[row : row + 1].tolist(), **body), headers)


def ask_all(router, rows, ids):
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        return list(clients.map(lambda row, request: ask(router, row, request), rows, ids))


def report(router, *labels, path=PATH):
    return router.post(path, [{"request_id": request, "label": label} for request, label in labels])


def one_by_one(router, request, label):
    """The error of a report; empty: it was counted."""
    answer = report(router, (request, label))
    return "" if answer.status == 200 else answer.error


def metric_of(router, path=PATH, index=0):
    return call(router.admin + path).json["metrics"][index]


def right_in(router, path=PATH):
    """How many answers were right, of all versions together."""
    return sum(version["mean"] * version["reports"] for version in metric_of(router, path)["versions"] if version["reports"])


def predicted(answer):
    return int(np.argmax(answer.json["outputs"][0]["data"]))


def labels_metric(router, result, **more):
    return router.metric("serin_route_labels_total", result=result, **more)


# --- the whole way ---------------------------------------------------------------------------------------------------------------------


def test_wrong_labels_by_request_roll_a_canary_back(route, shared_runtime):
    """Version 3 has 22 % of the digits right. The labels come after all answers; the client knows its IDs and the truth, and nothing else."""
    router = route(real(shared_runtime, "3"))
    begin(router, "3")
    rows, ids = range(300), [str(uuid.uuid4()) for _ in range(300)]
    answers = ask_all(router, rows, ids)
    assert {answer.headers["x-serin-version"] for answer in answers} == {"1", "3"}
    assert router.rollout()["phase"] == "Progressing", "nothing is known before the labels come"
    assert router.metric("serin_route_predictions") == 300
    receipt = report(router, *zip(ids, LABELS)).json
    assert receipt == {"accepted": 300, "duplicates": 0, "refused": []}
    ended = wait_until(lambda: router.rollout() if router.rollout()["phase"] == "RolledBack" else None, 10, "worse by its labels")
    assert ended["cause"] == "outcome:accuracy"
    means = {version["version"]: version for version in metric_of(router)["versions"]}
    for version in "13":
        own = [row for row, answer in zip(rows, answers) if answer.headers["x-serin-version"] == version]
        right = sum(predicted(answers[row]) == LABELS[row] for row in own)
        assert means[version]["reports"] == len(own) and abs(means[version]["mean"] - right / len(own)) < 1e-3, "as the client counts them itself"
    assert means["1"]["mean"] > 0.9 and means["3"]["mean"] < 0.5
    assert report(router, *zip(ids, LABELS)).json == {"accepted": 0, "duplicates": 300, "refused": []}
    assert labels_metric(router, "counted") == labels_metric(router, "duplicate") == 300
    assert {ask(router, 0).headers["x-serin-version"] for _ in range(20)} == {"1"}


def test_a_better_canary_stays(route, shared_runtime):
    router = route(real(shared_runtime, "2"))
    begin(router, "2")
    ids = [f"r{row}" for row in range(540)]
    ask_all(router, range(540), ids)
    assert report(router, *zip(ids, LABELS), path="/v1/outcomes").json["accepted"] == 540
    assert router.rollout()["phase"] == "Progressing"
    assert metric_of(router)["leading"] == "2"


def test_every_protocol_has_a_class(route, shared_runtime, channel):
    """JSON, binary tensors, TensorFlow Serving and gRPC, each with one right and one wrong label."""
    router = route(real(shared_runtime, "2"), real(shared_runtime, "2", name="predict", outcomes=[{"name": "accuracy", "labels": {}}]))
    for name in ("digits", "predict"):
        begin(router, "2", name)

    def json_answer(row, request):
        return ask(router, row, request)

    def binary(row, request):
        pixels = PIXELS[row].astype("<f4").tobytes()
        head = json.dumps({"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 64], "parameters": {"binary_data_size": len(pixels)}}],
                           "outputs": [{"name": "scores", "parameters": {"binary_data": True}}]}).encode()
        answer = call(f"{router.url}/v2/models/digits/infer", head + pixels,
                      {"Inference-Header-Content-Length": str(len(head)), "x-request-id": request, "Content-Type": "application/octet-stream"})
        assert "inference-header-content-length" in answer.headers
        return answer

    def tensorflow(row, request):
        answer = call(f"{router.url}/v1/models/predict:predict", {"instances": PIXELS[row : row + 1].tolist()}, {"x-request-id": request})
        assert len(answer.json["predictions"][0]) == 10
        return answer

    for index, (way, path) in enumerate(((json_answer, PATH), (binary, PATH), (tensorflow, "/v1/services/predict/outcomes"))):
        before = metric_of(router, path)["reports"]
        for right in True, False:
            answer = way(0, f"{index}-{right}")
            assert answer.status == 200 and answer.headers["x-request-id"] == f"{index}-{right}"
            assert report(router, (f"{index}-{right}", LABELS[0] + (not right)), path=path).json["accepted"] == 1
        assert metric_of(router, path)["reports"] == before + 2
        assert right_in(router, path) == pytest.approx((before + 2) / 2), way.__name__

    tensor = field(1, "pixels") + field(2, "FP32") + field(3, bytes([1, 64]))
    message = infer(more=field(3, "of-grpc") + field(5, tensor) + field(7, PIXELS[0].astype("<f4").tobytes()))
    _, ended = channel(router).unary_unary(OIP + "ModelInfer").with_call(message)
    assert dict(ended.initial_metadata())["x-request-id"] == "of-grpc", "the id of the message"
    before = right_in(router)
    assert report(router, ("of-grpc", LABELS[0])).json["accepted"] == 1
    assert right_in(router) == pytest.approx(before + 1)


def test_names_stand_for_classes_and_texts_for_themselves(route, serve, tmp_path):
    """`names` of router.yaml, and a model whose step answers a text."""
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    folder = tmp_path / "models" / "digits"
    for version in "12":
        (folder / version).mkdir(parents=True)
        (folder / version / "model.onnx").write_bytes((MODELS / "digits" / version / "model.onnx").read_bytes())
    (folder / "labels.txt").write_text("\n".join(words) + "\n")
    (folder / "serin.yaml").write_text("post:\n  - classes: scores\n    labels: labels.txt\n")
    runtime, plain = serve(tmp_path / "models"), serve(MODELS)
    router = route(real(runtime, "2", outcomes=[{"name": "accuracy", "labels": {"output": "label"}}]),
                   real(plain, "2", name="named", outcomes=[{"name": "accuracy", "labels": {"names": words}}]))
    for name in ("digits", "named"):
        begin(router, "2", name)
        path = f"/v1/services/{name}/outcomes"
        assert ask(router, 0, f"{name}-right", model=name).status == 200 and ask(router, 0, f"{name}-wrong", model=name).status == 200
        assert report(router, (f"{name}-right", words[LABELS[0]]), (f"{name}-wrong", words[LABELS[0] - 1]), path=path).json["accepted"] == 2
        assert right_in(router, path) == pytest.approx(1)
    ask(router, 0, "text")
    assert "must be a text" in one_by_one(router, "text", LABELS[0])
    ask(router, 0, "unnamed", model="named")
    assert "'ten' is none of the `names`" in report(router, ("unnamed", "ten"), path="/v1/services/named/outcomes").error


# --- IDs -------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def digits(route, shared_runtime):
    router = route(real(shared_runtime, "2"))
    begin(router, "2")
    return router


def test_an_answer_says_by_which_id_its_label_comes(digits):
    assert ask(digits, 0, "mine", id="body").headers["x-request-id"] == "mine", "the header first"
    assert ask(digits, 0, id="body-1").headers["x-request-id"] == "body-1", "then the id of the request"
    new = [ask(digits, 0).headers["x-request-id"] for _ in range(5)]
    assert len(set(new)) == 5 and all(len(request) == 16 for request in new), "then one of the router's"
    assert len(ask(digits, 0, id="bad\r\nx-evil: 1").headers["x-request-id"]) == 16
    assert report(digits, ("mine", LABELS[0]), ("body-1", LABELS[0]), *((request, LABELS[0]) for request in new)).json["accepted"] == 7
    assert "is not known" in one_by_one(digits, "body", LABELS[0])


def test_of_a_retry_the_first_answer_counts_and_an_id_of_two_requests_is_refused(digits):
    first, second = ask(digits, 0, "retry"), ask(digits, 0, "retry")
    assert first.status == second.status == 200
    assert report(digits, ("retry", LABELS[0])).json["accepted"] == 1
    version = first.headers["x-serin-assigned"].split(";")[0]
    assert {entry["version"]: entry["reports"] for entry in metric_of(digits)["versions"]}[version] == 1
    assert one_by_one(digits, "retry", LABELS[0]) == "", "a label that comes again is a duplicate"
    ask(digits, 0, "counter-1")
    ask(digits, 1, "counter-1")
    assert "another request has had the same ID" in one_by_one(digits, "counter-1", LABELS[0])


def test_bad_labels_are_refused_one_by_one(digits):
    ask(digits, 0, "one")
    batch = call(f"{digits.url}/v2/models/digits/infer", infer_body(PIXELS[:4].tolist()), {"x-request-id": "four"})
    assert batch.status == 200
    unknown = report(digits, ("none", 3))
    assert unknown.status == 404 and "request 'none' is not known to this router" in unknown.error
    assert report(digits, ("none", 3), ("nobody", 3)).status == 404
    assert "must be a number" in one_by_one(digits, "one", "three")
    assert "one row, so it needs one label, not 2" in one_by_one(digits, "one", [1, 2])
    assert "4 rows, so it needs a list of as many labels, not 1" in one_by_one(digits, "four", 3)
    assert "not 3" in one_by_one(digits, "four", LABELS[:3])
    for label in ({"a": 1}, [[1]], None, [], ""):
        assert report(digits, ("one", label)).status == 400, label
    mixed = report(digits, ("none", 3), ("four", [*LABELS[:3], LABELS[3] + 1]), ("one", "three"))
    assert mixed.status == 200 and mixed.json["accepted"] == 1
    assert [(entry["index"], entry["code"]) for entry in mixed.json["refused"]] == [(0, "not_found"), (2, "invalid_argument")]
    assert [entry["mean"] for entry in metric_of(digits)["versions"] if entry["reports"]] == [0.75], "three of four rows"
    assert report(digits, *[("one", 3)] * 1001).status == 400
    assert digits.post(PATH, {"request_id": "one"}).status == digits.post(PATH, {"label": 3}).status == 400
    assert digits.post(PATH, {"request_id": "one", "label": 3, "metric": "clicks"}).status == 400
    assert digits.post("/v1/services/other/outcomes", {"request_id": "one", "label": 3}).status == 404
    assert labels_metric(digits, "unknown") == 4
    assert metric_of(digits)["reports"] == 1


def test_reports_by_header_count_beside_labels(digits):
    answer = ask(digits, 0, "both")
    by_header = {"metric": "accuracy", "assigned": answer.headers["x-serin-assigned"], "value": 1}
    assert digits.post(PATH, by_header).json["accepted"] == 1
    assert report(digits, ("both", LABELS[0])).json["duplicates"] == 1, "a draw counts once, whoever reports it"
    other = ask(digits, 1, "other")
    mixed = digits.post(PATH, [{"request_id": "other", "label": LABELS[1]}, {**by_header, "assigned": other.headers["x-serin-assigned"]}])
    assert mixed.json == {"accepted": 1, "duplicates": 1, "refused": []}


# --- what is kept ----------------------------------------------------------------------------------------------------------------------


def test_the_oldest_go_first_and_neither_a_reload_nor_a_restart_forgets(route, backend, tmp_path):
    def config(**labels):
        return service(stable, canary, outcomes=[{"name": "accuracy", "labels": {"requests": 5, **labels}}])

    def drawn(*ids):
        for number, request in enumerate(ids):
            call(f"{router.url}/v2/models/digits/infer", infer_body([[float(number)]]), {"x-request-id": request})

    stable, canary = backend("1"), backend("2")
    router = route(config())
    begin(router, "2")
    drawn(*(f"r{i}" for i in range(8)))
    assert router.metric("serin_route_predictions") == 5 and router.metric("serin_route_predictions_dropped_total") == 3
    assert 500 < router.metric("serin_route_prediction_bytes") < 5000
    assert one_by_one(router, "r2", 3) != "" and one_by_one(router, "r3", 3) == ""
    assert reload(router) and one_by_one(router, "r4", 3) == ""
    assert router.metric("serin_route_predictions") == 5, "on the new page, too"
    write_config(tmp_path, config(output="scores"))
    assert reload(router)
    assert "is not known" in one_by_one(router, "r5", 3), "classes of another output are no longer kept"
    drawn("r8")
    assert one_by_one(router, "r8", 3) == ""
    drawn("r9")
    router.process.send_signal(signal.SIGTERM)
    router.process.wait(10)
    router = route(config(output="scores"))
    assert one_by_one(router, "r9", 3) == "" and "is not known" in one_by_one(router, "r7", 3)
    assert metric_of(router)["reports"] == 4, "what was counted is in the store, too"


def awaited(tmp_path):
    """The lines of the requests that the store has, of a router that runs."""
    with contextlib.closing(sqlite3.connect(f"file:{tmp_path / 'router.db'}?mode=ro", uri=True)) as store:
        return "".join(text for text, in store.execute("SELECT text FROM notes WHERE name LIKE 'outcomes/%/awaited/%'"))


def test_a_killed_router_takes_the_labels_of_its_answers_after_a_restart(route, shared_runtime, tmp_path):
    """The answers come from real models, kill -9 ends the router, and the labels come to the next one: they decide as if nothing had happened."""
    router = route(real(shared_runtime, "3"))
    begin(router, "3")
    ids = [str(uuid.uuid4()) for _ in range(300)]
    ask_all(router, range(300), ids)
    ask(router, 1, ids[0])  # an ID that two requests have
    wait_until(lambda: all(awaited(tmp_path).count(request) == 1 + (request == ids[0]) for request in ids), 20, "on disk")
    router.process.kill()
    router.process.wait(10)
    router = route(real(shared_runtime, "3"))
    wait_until(lambda: router.healthy("3") == 1, 20, "health checked")
    assert router.rollout()["phase"] == "Progressing" and router.metric("serin_route_predictions") == 300
    assert "another request has had the same ID" in one_by_one(router, ids[0], LABELS[0])
    assert report(router, *zip(ids[1:], LABELS[1:])).json == {"accepted": 299, "duplicates": 0, "refused": []}
    ended = wait_until(lambda: router.rollout() if router.rollout()["phase"] == "RolledBack" else None, 10, "worse by its labels")
    assert ended["cause"] == "outcome:accuracy"
    means = {version["version"]: version["mean"] for version in metric_of(router)["versions"]}
    assert means["1"] > 0.9 and means["3"] < 0.5


def test_a_successor_takes_them_over(route, backend, tmp_path):
    router = route(service(backend("1"), backend("2"), outcomes=[{"name": "accuracy", "labels": {}}]))
    begin(router, "2")
    call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": "before"})
    with Router(tmp_path, "route", "--take-over", "--drain-seconds", 0, "--config", tmp_path / "router.yaml") as successor:
        assert router.process.wait(40) == 0
        assert one_by_one(successor, "before", 3) == ""


def test_age_ends_them(route, backend):
    router = route(service(backend("1"), backend("2"), outcomes=[{"name": "accuracy", "labels": {"keep": "1s"}}]))
    begin(router, "2")
    answer = call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": "old"})
    assert answer.status == 200
    wait_until(lambda: "is not known" in one_by_one(router, "old", 99), 10, "too old")
    wait_until(lambda: router.metric("serin_route_predictions") == 0, 10, "freed without further requests")


def test_an_error_is_wrong_and_stable_may_have_answered_for_the_canary(route, backend):
    """As for reports by header: the version that was drawn is charged with what the client got."""
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary, outcomes=[{"name": "accuracy", "labels": {}}]))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[hold(50)], shield=NO_SECOND_TRY, guard={**ONLY_LABELS, "falseRollback": 1e-9})

    def of_canary(good):
        for number in range(200):
            request = f"{canary.inferences}-{number}"
            answer = call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": request})
            if answer.headers["x-serin-assigned"][0] == "2":
                assert (answer.status == 200) == good and answer.headers["x-request-id"] == request
                return request
        raise AssertionError("the canary was never drawn")

    def mean():
        return {entry["version"]: entry["mean"] for entry in metric_of(router)["versions"]}["2"]

    canary.faults = Faults(error_rate=1)
    assert one_by_one(router, of_canary(False), 3) == "" and mean() == 0
    canary.faults = Faults(closed=True)
    assert one_by_one(router, of_canary(False), 3) == "" and mean() == 0
    router.command("abort")
    canary.faults = Faults(error_rate=1)
    assert call(router.admin + PATH, method="DELETE").status == 200
    router.start_rollout(steps=[hold(50)], shield={"retryStable": True, "hedge": "off"}, guard={**ONLY_LABELS, "falseRollback": 1e-9})
    assert one_by_one(router, of_canary(True), 3) == "" and mean() == 1, "stable's answer"


def test_an_answer_without_a_class_says_why(route, backend):
    labels = [{"name": "logits", "labels": {"output": "logits"}}, {"name": "value", "labels": {"class": "value"}}]
    router = route(service(backend("1"), backend("2"), outcomes=labels))
    begin(router, "2", guard={"outcomes": {"metric": "value"}})
    call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": "r1"})

    def why(**more):
        answer = router.post(PATH, {"request_id": "r1", "label": 3, **more})
        assert answer.status == 400
        return answer.error

    assert "metric: must be named" in why()
    assert "no such output" in why(metric="logits") and "needs class: argmax" in why(metric="value")
    assert labels_metric(router, "refused", metric="logits") == 1


# --- where nobody asked for it ---------------------------------------------------------------------------------------------------------


def test_a_service_without_labels_is_as_it_was(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary, outcomes=[{"name": "conversion"}]))
    begin(router, "2", guard={"outcomes": {"metric": "conversion"}})
    answer = call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]))
    assert "x-serin-assigned" in answer.headers and "x-request-id" not in answer.headers
    assert call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": "mine"}).headers.get("x-request-id") is None
    assert "no outcome of service 'digits' has `labels`" in one_by_one(router, "mine", 3)
    assert "serin_route_predictions" not in router.metrics() and "serin_route_labels_total" not in router.metrics()


def test_requests_that_are_not_drawn_are_not_kept(route, shared_runtime):
    router = route(real(shared_runtime, "2", force_header=True))
    assert ask(router, 0, "before").headers.get("x-request-id") is None
    begin(router, "2")
    forced = call(f"{router.url}/v2/models/digits/infer", infer_body(PIXELS[:1].tolist()), {"x-request-id": "forced", "x-serin-force-version": "2"})
    assert forced.status == 200 and forced.headers.get("x-request-id") is None
    assert router.metric("serin_route_predictions") == 0
    for request in "before", "forced":
        assert "it was not drawn between versions" in one_by_one(router, request, LABELS[0])


# --- several routers -------------------------------------------------------------------------------------------------------------------


def test_with_several_routers_the_one_that_answered_takes_the_label(tmp_path, tmp_path_factory, backend):
    """A follower counts the labels of its own answers, and its verdict is everybody's."""
    stable, canary = backend("1"), backend("2")
    with contextlib.ExitStack() as stack:
        clusters = stack.enter_context(clusters_in(tmp_path_factory))
        group = EtcdGroup(tmp_path, clusters(), [stable, canary], stack, outcomes=[{"name": "accuracy", "labels": {}}])
        leader = group.settled()
        for router in group.all():
            wait_until(lambda router=router: router.healthy("2") == 1, 10, "health checked")
        group.routers[leader].start_rollout(steps=[hold(50)], shield=NO_SECOND_TRY, guard=ONLY_LABELS)
        follower = group.routers[next(name for name in "abc" if name != leader)]
        wait_until(lambda: follower.rollout() and follower.rollout()["phase"] == "Progressing", 20, "known to the follower")
        canary.faults = Faults(label=4)
        ids = [f"r{number}" for number in range(400)]

        def send(request):
            return call(f"{follower.url}/v2/models/digits/infer", infer_body([[0.0]]), {"x-request-id": request})

        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            assigned = [answer.headers["x-serin-assigned"] for answer in clients.map(send, ids)]
        assert report(group.routers[leader], (ids[0], 3)).status == 404, "the leader has not answered it"
        by_header = follower.post(PATH, {"metric": "accuracy", "assigned": assigned[0], "value": 1})
        assert by_header.status == 307, "values go to the leader"
        assert report(follower, *((request, 3) for request in ids)).json["accepted"] == 400
        for router in group.all():
            wait_until(lambda router=router: router.rollout()["phase"] == "RolledBack", 20, "told to all")
        assert follower.rollout()["cause"] == "outcome:accuracy"


# --- router.yaml -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels, more, complaint", [
    ({"outputs": "scores"}, {}, "unknown key 'outputs'"), ({"class": "argmin"}, {}, "argmax, value"), ({"class": "value", "threshold": 0.5}, {}, "left out"),
    ({"threshold": "high"}, {}, "threshold"), ({"names": ["cat"]}, {}, "2 to"), ({"names": ["cat", "cat"]}, {}, "'cat' given twice"),
    ({"names": ["cat", ""]}, {}, "1 to 256 bytes"), ({"requests": 0}, {}, "requests"), ({"bytes": 1000}, {}, "bytes"), ({"keep": "10ms"}, {}, "from 1s to 8784h"),
    ({}, {"better": "lower"}, "need better: higher"), ({}, {"range": [0, 2]}, "need better: higher"), ([1], {}, "labels")])
def test_bad_settings_are_refused_by_name(tmp_path, backend, labels, more, complaint):
    config = write_config(tmp_path, service(backend("1"), backend("2"), outcomes=[{"name": "accuracy", "labels": labels, **more}]))
    done = serin("route", "--config", config, "--check")
    assert done.returncode != 0 and complaint in done.stderr, done.stderr
