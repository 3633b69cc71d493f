"""Endpoints that come and go: from a watched file and from DNS."""

import pytest

from conftest import call, wait_until
from routers import hold, service
from traffic import Traffic, ask


def from_source(version, *sources, **more):
    """A service like `service(backends...)`, with its endpoints from elsewhere."""
    made = service(*version, **more)
    for entry, source in zip(made["versions"], sources):
        entry["endpoints"] = source
    return made


def watched(path):
    return {"file": str(path), "interval": "50ms"}


def write(path, *lines):
    """In one step: a file that is cut off and then written may be read in between, and is then a list of nobody."""
    aside = path.with_suffix(".new")
    aside.write_text("".join(f"{line}\n" for line in lines))
    aside.rename(path)


def named(backend, host="localhost"):
    return {"dns": backend.url.replace("127.0.0.1", host), "interval": "50ms"}


def counts(router, version):
    found = call(router.admin + "/v1/services").json["services"][0]["versions"]
    entry = next(entry for entry in found if entry["name"] == version)
    return entry["endpoints"], entry["healthy"]


def left_alone(traffic, backends):
    """None of them gets anything while fifty more requests are answered. The first ones after a change may have been on their way."""
    gone, seen = {each: each.inferences for each in backends}, traffic.answers
    wait_until(lambda: traffic.answers > seen + 50, 30, "some more")
    return all(each.inferences == count for each, count in gone.items())


def test_a_file_that_changes_under_load_costs_no_request(route, backend, tmp_path):
    first, second, third = (backend("1") for _ in range(3))
    path = tmp_path / "endpoints.txt"
    write(path, first.url)
    router = route(from_source([first], watched(path)), io_threads=2)
    with Traffic(router.url) as traffic:
        for before, after in [((first,), (first, second)), ((first, second), (second, third)), ((second, third), (first,))] * 3:
            write(path, "# who serves now", "", *(each.url for each in after))
            wait_until(lambda: counts(router, "1") == (len(after), len(after)), 30, "the new list")
            for each in after:
                seen = each.inferences
                wait_until(lambda: each.inferences > seen + 20, 30, "everybody named serves")
            wait_until(lambda: left_alone(traffic, set(before) - set(after)), 30, "who is not named any more gets nothing")
    assert traffic.failures == []


def connections(router, backend):
    """Of the router to the backend."""
    port = f":{int(backend.url.split(':')[2].split('/')[0]):04X}"
    with open(f"/proc/{router.process.pid}/net/tcp") as table:
        return sum(fields[2].endswith(port) and fields[3] == "01" for fields in map(str.split, table))


def test_a_request_under_way_to_an_endpoint_that_goes_is_answered(route, backend, tmp_path):
    slow, other = backend("1", delay=1.0), backend("1")
    path = tmp_path / "endpoints.txt"
    write(path, slow.url)
    router = route(from_source([slow], watched(path)), io_threads=2)
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: slow.inferences == 3, 10, "under way")
        assert connections(router, slow) >= 3
        write(path, other.url)
        wait_until(lambda: other.inferences > 50, 10, "the other serves")
        wait_until(lambda: connections(router, slow) == 0, 10, "kept connections end long before their 30 s")
    assert traffic.failures == [] and slow.inferences == 3


@pytest.mark.parametrize("bad", ["http://127.0.0.1:1\nnonsense\n", None])
def test_f3_a_bad_file_changes_nothing_and_is_said_once(route, backend, tmp_path, bad):
    behind = backend("1")
    path = tmp_path / "endpoints.txt"
    write(path, behind.url)
    router = route(from_source([behind], watched(path)))
    path.unlink() if bad is None else path.write_text(bad)
    said = f"{path}:2: must be http://" if bad else str(path)
    wait_until(lambda: "stay as they are" in router.log and said in router.log, 10, "the log names it")
    assert {status for status, _, _ in ask(router.url, 100)} == {200} and counts(router, "1")[0] == 1
    write(path, behind.url, "http://127.0.0.1:1")
    wait_until(lambda: counts(router, "1") == (2, 1), 10, "a good file counts again")
    assert router.log.count("stay as they are") == 1


def test_a_canary_whose_file_is_empty_leaves_its_share_to_stable_and_keeps_its_weight(route, backend, tmp_path):
    stable, canary = backend("1"), backend("2")
    path = tmp_path / "canary.txt"
    write(path, canary.url)
    router = route(from_source([stable, canary], [{"url": stable.url}], watched(path)))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[hold(50)])
    with Traffic(router.url) as traffic:
        wait_until(lambda: traffic.versions["2"] > 20, 10, "it serves")
        write(path)
        wait_until(lambda: counts(router, "2") == (0, 0), 10, "nobody left")
        seen, stables = canary.inferences, stable.inferences
        wait_until(lambda: stable.inferences > stables + 200, 10, "stable serves its share")
        assert canary.inferences <= seen + 4 and router.rollout()["weight"] == 50
        write(path, canary.url)
        wait_until(lambda: canary.inferences > seen + 50, 10, "it serves again")
    assert traffic.failures == []
    assert router.rollout()["phase"] == "Progressing"


def test_a_name_is_resolved_to_its_addresses(route, backend):
    behind = backend("1")
    router = route(from_source([behind], named(behind)))
    wait_until(lambda: counts(router, "1")[1] == 1, 10, "found")
    wait_until(lambda: call(router.url + "/v2/health/ready").status == 200, 10, "ready")
    assert f'endpoint="{behind.url}"' in call(router.admin + "/metrics").body.decode()
    with Traffic(router.url) as traffic:
        wait_until(lambda: behind.inferences > 100, 10, "it serves")
    assert traffic.failures == []


def test_f3_a_name_that_has_no_address_is_said_once_and_its_version_is_down(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(from_source([stable, canary], [{"url": stable.url}], named(canary, "no-such-host.invalid")))
    wait_until(lambda: counts(router, "2") == (0, 0), 20, "asked for")
    refused = router.post("/v1/rollouts", {"kind": "Rollout", "service": "digits", "canary": "2", "steps": [50]})
    assert refused.status == 400 and "no endpoint of version '2'" in refused.error
    assert {status for status, _, _ in ask(router.url, 20)} == {200}
    assert router.log.count("cannot resolve 'no-such-host.invalid'") == 1
