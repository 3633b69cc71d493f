"""tests/run must not call a failure a success: a crash, a hang, an empty part, a wrong name, each with a stand-in for a test program."""

import contextlib
import os
import sys
import threading
import time
from dataclasses import replace

import pytest

import affected
import main
import parts
import process
import runners
from parts import ROOT, TESTS, Part, all_parts, select, without_twins
from results import FAILED, PASSED, SKIPPED, Case, Outcome, from_gtest_log, from_junit

REPORT = """<testsuites><testsuite name="Graph">
<testcase name="Adds" status="run" result="completed" time="0.25" classname="Graph"/>
<testcase name="Breaks" status="run" result="completed" time="0" classname="Graph"><failure message="a.cc:3&#x0A;wrong">a.cc:3
wrong</failure></testcase>
<testcase name="Waits" status="run" result="skipped" time="0" classname="Graph"><skipped message="a.cc:7&#x0A;no GPU here&#x0A;"/></testcase>
<testcase name="DISABLED_Old" status="notrun" result="suppressed" time="0" classname="Graph"/>
</testsuite></testsuites>"""
OK = REPORT[: REPORT.index('<testcase name="Breaks"')] + "</testsuite></testsuites>"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a test program of Python lines; `report` in them is the XML file that gtest would write."""
    monkeypatch.setattr(runners, "BUILD", tmp_path)
    monkeypatch.setattr(runners, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()

    def write(*lines):
        path = tmp_path / "tests" / "graph_test"
        head = [f"#!{sys.executable}", "import os, sys, time", "report = next(a for a in sys.argv if 'xml:' in a).split('xml:')[1]"]
        path.write_text("\n".join([*head, *lines]))
        path.chmod(0o755)
        return Part("graph", "cpp", "graph_test")

    return write


def run(part):
    return runners.run_part(part).cases


def statuses(cases):
    return [case.status for case in cases]


def test_reads_every_outcome_with_its_reason(tmp_path):
    (tmp_path / "r.xml").write_text(REPORT)
    cases = from_junit("graph", tmp_path / "r.xml")
    assert statuses(cases) == [PASSED, FAILED, SKIPPED, SKIPPED]
    assert [case.detail for case in cases] == ["", "a.cc:3\nwrong", "no GPU here", "disabled in the source"]
    assert cases[0].name == "Graph.Adds" and cases[0].seconds == 0.25


def test_each_case_knows_what_its_framework_calls_it(tmp_path):
    (tmp_path / "gtest.xml").write_text(REPORT)
    assert from_junit("graph", tmp_path / "gtest.xml")[0].node == "Graph.Adds"
    (tmp_path / "pytest.xml").write_text('''<testsuites><testsuite>
<testcase classname="tests.e2e.router.test_route" name="test_a[x/y]" file="tests/e2e/router/test_route.py" line="3" time="0.1"/>
<testcase classname="tests.e2e.test_a.TestOf" name="test_b" file="tests/e2e/test_a.py" line="3" time="0.1"/>
<testcase classname="" name="tests.e2e.test_broken" time="0"><error message="collection failure">no such module</error></testcase>
</testsuite></testsuites>''')
    assert [case.node for case in from_junit("e2e", tmp_path / "pytest.xml")] == [
        "tests/e2e/router/test_route.py::test_a[x/y]", "tests/e2e/test_a.py::TestOf::test_b", ""]


def test_counts_what_passed(program):
    cases = run(program(f"open(report, 'w').write('''{OK}''')"))
    assert statuses(cases) == [PASSED]


def test_lines_of_a_summary_are_passed_on(program):
    part = program(f"open(report, 'w').write('''{OK}''')", "print('summary: node 3 of 4')", "print('other')")
    assert runners.run_part(part).notes == ["node 3 of 4"]


def test_a_crash_fails_the_test_it_happened_in(program):
    log = "[ RUN      ] Graph.Adds\n[       OK ] Graph.Adds (0 ms)\n[ RUN      ] Graph.Dies\nhalf a line"
    cases = run(program(f"print({log!r}, flush=True)", "os.abort()"))
    assert [(case.name, case.status) for case in cases] == [("Graph.Adds", PASSED), ("Graph.Dies", FAILED)]
    assert "SIGABRT" in cases[1].detail and "half a line" in cases[1].detail


def test_a_crash_after_the_last_test_is_a_failure(program):
    cases = run(program(f"open(report, 'w').write('''{OK}''')", "sys.exit(3)"))
    assert statuses(cases) == [PASSED, FAILED]
    assert "exit code 3" in cases[1].detail


def test_a_hang_is_ended_and_is_a_failure(program, monkeypatch):
    monkeypatch.setattr(runners, "PART_LIMIT_S", 0.3)
    cases = run(program("time.sleep(600)"))
    assert statuses(cases) == [FAILED]
    assert "time limit" in cases[0].detail


def test_no_test_at_all_is_a_failure(program):
    cases = run(program("open(report, 'w').write('<testsuites/>')"))
    assert [case.detail for case in cases] == ["ran no test"]


def test_a_single_test_may_be_of_another_program_of_its_folder(program):
    part = program("open(report, 'w').write('<testsuites/>')")
    part.only = ["Graph.Adds"]
    assert run(part) == []


def test_a_program_that_was_not_built_is_a_failure(program):
    cases = run(Part("graph", "cpp", "graph_test"))
    assert "not built" in cases[0].detail


def test_a_report_of_an_earlier_run_is_not_read(program):
    run(program(f"open(report, 'w').write('''{OK}''')"))
    assert statuses(run(program("sys.exit(1)"))) == [FAILED]


def test_what_a_test_leaves_running_is_ended(tmp_path):
    ended = process.run(["sh", "-c", "sleep 600 & echo $!"], tmp_path / "log", 10, tmp_path)
    child = int((tmp_path / "log").read_text())
    assert ended.status == 0
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(child)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_failed_and_skipped_tests_are_found_in_the_output_of_a_crashed_run():
    text = "[ RUN      ] A.b\nx.cc:1: bad\n[  FAILED  ] A.b (1 ms)\n[ RUN      ] A.c\n[  SKIPPED ] A.c (0 ms)\n[ RUN      ] A.d\n"
    cases, unfinished = from_gtest_log("a", text)
    assert sorted((case.name, case.status) for case in cases) == [("A.b", FAILED), ("A.c", SKIPPED)]
    assert unfinished == "A.d"
    assert next(case for case in cases if case.status == FAILED).detail == "x.cc:1: bad"


def test_the_time_of_the_cores_is_counted(tmp_path):
    ended = process.run([sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', 'for i in range(3_000_000): pass'])"],
                        tmp_path / "log", 60, tmp_path, nice=3)
    assert ended.status == 0 and ended.cpu_s > 0.02
    assert process.run(["nice"], tmp_path / "log", 10, tmp_path, nice=3).status == 0
    assert int((tmp_path / "log").read_text()) == min(os.nice(0) + 3, 19)


@pytest.fixture
def builds(monkeypatch):
    """What was built, in order, and what goes wrong there; every part passes."""
    made = []
    problem = {"all": None, "cuda": None}
    monkeypatch.setattr(runners, "build", lambda targets: made.append(targets) or (problem["all"], 1.0))
    monkeypatch.setattr(runners, "build_cuda", lambda: made.append("cuda") or (problem["cuda"], 1.0))
    monkeypatch.setattr(runners, "build_control_plane", lambda: made.append("kubernetes") or (problem.get("kubernetes"), 1.0))
    monkeypatch.setattr(runners, "build_sanitized", lambda kind, targets: made.append((kind, targets)) or (problem.get(kind), 1.0))
    monkeypatch.setattr(runners, "run_part", lambda part: Outcome([Case(part.name, part.name, PASSED)]))
    return made, problem


def test_the_plugin_is_built_where_a_part_looks_at_it(builds):
    assert statuses(main.run_all([Part("graph", "cpp", "graph_test")])) == [PASSED]
    assert builds[0] == [["graph_test"]]
    assert [part.name for part in all_parts() if part.needs_cuda] == ["cuda"]
    main.run_all([Part("cuda", "pytest")])
    assert builds[0][1:] == [["serin", "serin_onednn"], "cuda"]


def test_a_control_plane_is_built_in_long_runs_only(builds, monkeypatch):
    assert [part.name for part in all_parts() if part.needs_control_plane] == ["kubernetes"]
    monkeypatch.delenv("SERIN_LONG", raising=False)
    main.run_all([Part("kubernetes", "pytest")])
    assert builds[0] == [["serin", "serin_onednn"]]
    monkeypatch.setenv("SERIN_LONG", "1")
    main.run_all([Part("kubernetes", "pytest"), Part("deploy", "pytest")])
    assert builds[0][1:] == [["serin", "serin_onednn"], "kubernetes"]
    builds[1]["kubernetes"] = "no network"
    cases = main.run_all([Part("kubernetes", "pytest"), Part("deploy", "pytest")])
    assert sorted((case.name, case.status) for case in cases) == [("build", FAILED), ("deploy", PASSED)]


def test_the_program_is_built_first_and_what_is_sanitized_before_test_programs(builds):
    main.run_all([Part("net", "cpp", "net_test"), Part("front", "front", "net_test"), Part("gpu", "pytest"), Part("checks", "pytest"), Part("cuda", "pytest")])
    assert builds[0] == [
        ["serin", "serin_cuda_emulated_plugin", "serin_cuda_telling_plugin", "serin_fault_on_demand", "serin_onednn"], ["net_test_sanitized"],
        ["conformance_test", "gpu_test", "net_test"], "cuda"]
    builds[0].clear()
    main.run_all([Part("checks", "pytest"), Part("format", "checks")])
    assert builds[0] == []
    main.run_all([Part("net", "cpp", "net_test")], everything=True)
    assert builds[0] == [["all", "net_test"]]


def test_parts_need_what_is_built_for_them(builds):
    chosen = [Part("net", "cpp", "net_test"), Part("e2e", "pytest"), Part("front", "front", "serin"), Part("driver", "pytest"), Part("headers", "checks"),
              Part("gpu", "pytest"), Part("cuda", "pytest"), Part("tsan", "tsan", "serin")]
    needs = {}
    for job in main.plan(chosen, everything=True):
        if not job.builds:
            part = job.run()[0]
            needs[part.title] = job.needs
            assert job.lane == ("servers" if part.of_servers else "")
    assert needs == {"net": {"tests"}, "e2e": {"program"}, "serin": {"tsan"}, "driver": set(), "headers": {"program"}, "gpu": {"program", "tests"},
                     "cuda": {"program", "cuda"}}
    front = next(job for job in main.plan(chosen[:3]) if not job.builds and job.run()[0].kind == "front")
    assert front.needs == {"program", "front"}


def test_a_plugin_that_does_not_build_fails_alone(builds, capsys):
    builds[1]["cuda"] = "nvcc is not there"
    cases = main.run_all([Part("graph", "cpp", "graph_test"), Part("cuda", "pytest")])
    assert sorted((case.name, case.status) for case in cases) == [("build", FAILED), ("graph", PASSED)]
    printed = capsys.readouterr().out
    assert "nvcc is not there" in printed and "1 jobs did not run" in printed


def test_a_build_that_fails_is_a_failure_and_what_needs_none_runs(builds, monkeypatch):
    builds[1]["all"] = "no compiler"
    cases = main.run_all([Part("graph", "cpp", "graph_test"), Part("e2e", "pytest"), Part("format", "checks")])
    assert sorted((case.part, case.status) for case in cases) == [("format", PASSED), ("program", FAILED)]
    assert builds[0] == [["print_smuggling_rows", "serin", "serin_cuda_emulated_plugin", "serin_fake_nvml", "serin_onednn"]]


def test_each_sanitizer_has_a_build_of_its_own_that_fails_alone(builds):
    builds[1]["asan"] = "no such compiler"
    parts = [Part("graph", "cpp", "graph_test"), Part("asan", "asan", "net_test"), Part("asan", "asan", "proxy_test"), Part("tsan", "tsan", "net_test")]
    assert sorted((case.part, case.status) for case in main.run_all(parts)) == [("asan", FAILED), ("graph", PASSED), ("tsan", PASSED)]
    assert builds[0] == [["graph_test"], ("asan", ["net_test", "proxy_test"]), ("tsan", ["net_test"])]


def test_what_reads_from_outside_is_sanitized_once_it_changes(builds, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tests/run"])
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    ran = []
    monkeypatch.setattr(runners, "run_part", lambda part: ran.append(part) or Outcome([Case(part.name, part.name, PASSED)]))
    monkeypatch.setattr(affected, "touches", lambda name, _: name == parts.FRONT)
    main.main()
    front = [part.program for part in ran if part.kind == "front"]
    assert {"net_test", "protocol_test", "serving_test", "serin"} <= set(front)
    assert {f"{program}_sanitized" for program in front} <= set(builds[0][1])  # which "all" does not build
    assert "gpu_test" not in [part.program for part in ran]
    monkeypatch.setattr(affected, "touches", lambda name, _: name == parts.DEVICES)
    ran.clear()
    main.main()
    assert "front" not in {part.kind for part in ran} and "gpu_test" in [part.program for part in ran]


def test_no_end_to_end_test_runs_twice_and_none_is_lost():
    every = parts.test_files(TESTS / "e2e")
    chosen = without_twins([part for part in all_parts() if not part.sanitized])
    plain = next(part for part in chosen if part.kind == "pytest" and part.name == "e2e")
    twins = set(plain.left_out)
    assert twins == set(parts.files_of_sanitized("front")) and len(twins) > 10 and twins < every
    assert without_twins([plain])[0].left_out == plain.left_out  # alone it stays as it is
    assert without_twins([Part("e2e", "pytest")])[0].left_out == []
    asked_for = next(iter(twins))
    front = Part("front", "front", "serin")
    assert without_twins([Part("e2e", "pytest", paths=[asked_for]), front]) == [front]


class Twice:
    """Parts whose tests fail the first time, and some of them the second time, too."""

    def __init__(self, monkeypatch, *cases, again=PASSED):
        self.asked, both = [], threading.Barrier(2)

        def run_part(part):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # for another part, if there is one
            return Outcome([replace(case) for case in cases], log="the-first.log")

        monkeypatch.setattr(runners, "run_part", run_part)
        monkeypatch.setattr(runners, "run_alone", lambda part, nodes: self._again(part, nodes, again))

    def _again(self, part, cases, status):
        self.asked.append((part.title, [case.node for case in cases]))
        return [Case(part.name, case.name, status, 1.5, node=case.node) for case in cases]


def failed(name, **more):
    return Case("e2e", name, FAILED, detail="too late", node=f"tests/e2e/{name}", **more)


def test_what_failed_beside_others_is_run_once_more_alone(builds, monkeypatch, capsys):
    again = Twice(monkeypatch, failed("one"), Case("e2e", "two", PASSED, node="tests/e2e/two"))
    assert statuses(main.run_all([Part("e2e", "pytest")])) == [PASSED, PASSED]
    assert again.asked == [("e2e", ["tests/e2e/one"])]
    printed = capsys.readouterr().out
    assert "one failed beside other tests and passed alone (1.5 s); first output: the-first.log" in printed and "FAILED e2e: one\ntoo late" in printed


def test_what_fails_twice_has_failed(builds, monkeypatch):
    again = Twice(monkeypatch, failed("one"), again=FAILED)
    assert statuses(main.run_all([Part("e2e", "pytest")])) == [FAILED] and len(again.asked) == 1


def test_what_is_not_found_again_has_failed(builds, monkeypatch):
    Twice(monkeypatch, failed("one"))
    monkeypatch.setattr(runners, "run_alone", lambda part, cases: [])
    assert statuses(main.run_all([Part("e2e", "pytest")])) == [FAILED]


def test_what_failed_with_nothing_beside_it_has_failed(builds, monkeypatch):
    again = Twice(monkeypatch, failed("one"))
    assert statuses(main.run_all([Part("operators", "pytest")])) == [FAILED] and again.asked == []
    assert statuses(main.run_all([Part("operators", "pytest"), Part("models", "pytest")])) == [PASSED, PASSED]


@pytest.mark.parametrize("cases", [
    [failed("one", crashed=True)],
    [failed("one"), failed("one", crashed=True)],  # the server that it left behind had died
    [Case("e2e", "one", FAILED)],  # no single test
    [failed(f"test_{number}") for number in range(21)],
])
def test_crashes_and_floods_are_not_run_again(builds, monkeypatch, cases):
    again = Twice(monkeypatch, *cases)
    assert statuses(main.run_all([Part("e2e", "pytest")])) == [FAILED] * len(cases) and again.asked == []


@pytest.mark.parametrize("words, crashed", [
    ("AssertionError: serve-0 had died with -6:", True), ("ended with 1:\n... SUMMARY: AddressSanitizer: 40 byte(s) leaked", True),
    ("a.cc:3:1: runtime error: signed integer overflow", True), ("worker 'gw1' crashed while running 'x'", True), ("AssertionError: assert 3 == 4", False),
    ("serin serve ready did not come true within 60 s", False),
])
def test_crashes_are_told_from_other_failures(tmp_path, words, crashed):
    (tmp_path / "r.xml").write_text(REPORT.replace("a.cc:3\nwrong", words))
    assert from_junit("graph", tmp_path / "r.xml")[1].crashed == crashed


def test_one_test_of_a_program_is_run_alone(program):
    part = program("flag = next(a for a in sys.argv if 'filter' in a)", f"open(report, 'w').write('''{OK}'''.replace('Adds', flag.split('=')[1]))")
    assert [case.name for case in runners.run_alone(part, [Case("graph", "Graph.One-Two", FAILED, node="Graph.One-Two")])] == ["Graph.Graph.One?Two"]
    assert (runners.LOGS / "graph_test-alone.xml").exists() and not (runners.LOGS / "graph_test.xml").exists()


PYTEST = """
import os, pathlib, pytest
SEEN = pathlib.Path({seen!r})
@pytest.mark.parametrize("value", ["a/b", "c d"])
def test_shaky(value):
    with open(SEEN / "runs", "a") as file:
        file.write(value + ",")
    (SEEN / os.environ.get("PYTEST_XDIST_WORKER", "alone")).touch()
    assert (SEEN / "quiet").exists() or value == "c d"
"""


def test_pytest_files_are_spread_and_their_failures_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "LOGS", tmp_path / "logs")
    folder = tmp_path / "e2e"
    folder.mkdir()
    for name in "one", "two":
        (folder / f"test_{name}.py").write_text(PYTEST.format(seen=str(tmp_path)))
    monkeypatch.setattr(Part, "log_name", "e2e-pytest")
    monkeypatch.setattr(runners, "cores", lambda: 1)
    part = Part("e2e", "pytest", folder=folder)
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    (tmp_path / ".deps").symlink_to(ROOT / ".deps")
    cases = run(part)
    assert sorted(statuses(cases)) == [FAILED, FAILED, PASSED, PASSED]
    assert {path.name for path in tmp_path.glob("gw*")} == {"gw0", "gw1"} and not (tmp_path / "alone").exists()  # one more than there are cores
    (tmp_path / "quiet").touch()
    (tmp_path / "runs").unlink()
    again = runners.run_alone(part, [case for case in cases if case.status == FAILED])
    assert statuses(again) == [PASSED, PASSED] and (tmp_path / "runs").read_text() == "a/b,a/b," and (tmp_path / "alone").exists()
    part.left_out = [folder / "test_one.py"]
    assert len(run(part)) == 2


@pytest.mark.parametrize("arguments, ran", [(["--long"], True), (["asan"], True), ([], False)])
def test_sanitizers_are_for_long_runs_and_who_names_them(monkeypatch, arguments, ran):
    chosen = []
    monkeypatch.setattr(sys, "argv", ["tests/run", *arguments])
    monkeypatch.setenv("SERIN_LONG", "0")
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    monkeypatch.setattr(main, "run_all", lambda parts, everything: chosen.extend(parts) or [])
    main.main()
    assert any(part.sanitized for part in chosen) == ran
    assert all(part.program in {"serin", *(known.program for known in all_parts() if known.kind == "cpp")} for part in chosen if part.sanitized)


PARTS = [Part("graph", "cpp", "graph_test"), Part("e2e", "pytest"), Part("format", "checks"), Part("layering", "checks")]


@pytest.mark.parametrize(
    "names, expected",
    [
        ([], ["graph", "e2e", "format", "layering"]),
        (["graph", "format"], ["graph", "format"]),
        (["checks"], ["format", "layering"]),
        (["*r*"], ["graph", "format", "layering"]),
    ],
)
def test_names_choose_parts(names, expected):
    assert [part.name for part in select(PARTS, names)] == expected


def test_a_name_can_be_a_single_test():
    chosen = select([Part("driver", "pytest"), *PARTS[2:]], ["name_can_be_a_single"])
    assert [(part.name, part.only) for part in chosen] == [("driver", ["test_a_name_can_be_a_single_test"])]


def test_a_wrong_name_is_refused():
    with pytest.raises(LookupError, match="'grpah'.*graph, e2e"):
        select(PARTS, ["grpah"])


def test_a_path_chooses_the_parts_there_and_the_tests_below(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "TESTS", tmp_path)
    monkeypatch.setattr(parts, "CHECKS", tmp_path / "checks")
    for name, text in {
        "CMakeLists.txt": "function(serin_test name)\nendfunction()\n", "runtime/serving/CMakeLists.txt": "serin_test(serving_test SOURCES a.cc)\n",
        "runtime/graph/CMakeLists.txt": "# two\nserin_test(graph_test\n  SOURCES a.cc)\nif(X)\n  serin_test(graph_slow_test SOURCES b.cc)\nendif()\n",
        "sanitized/CMakeLists.txt": "serin_sanitized(graph_test serin_base)\nserin_sanitized(serin serin_base)\n",
        "e2e/conftest.py": "", "e2e/support/etcd.py": "", "e2e/router/test_route.py": "def test_weights():\n    pass\n", "e2e/net/test_bad_http.py": "",
        "references/test_flags.py": "", "references/deep/test_more.py": "", "checks/format": "#!/bin/sh\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "checks/format").chmod(0o755)
    known = all_parts()
    assert [(part.kind, part.title) for part in known if part.kind != "tsan"] == [
        ("cpp", "graph"), ("cpp", "graph"), ("cpp", "serving"), ("pytest", "references"), ("pytest", "deep"), ("pytest", "e2e"), ("checks", "format"),
        ("front", "graph_test"), ("front", "serin"), ("asan", "serving_test"), ("asan", "serin")]

    def chosen(name):
        return [(part.program or part.name, [path.name for path in part.paths]) for part in select(known, [name])]

    assert chosen("graph_slow_test") == [("graph_slow_test", [])]
    assert chosen("runtime/graph") == chosen("graph") == [("graph_test", []), ("graph_slow_test", [])]
    assert len(chosen("tests/runtime")) == 3
    assert chosen("e2e") == [("e2e", [])]
    assert chosen("e2e/router") == [("e2e", ["router"])]
    assert chosen("tests/e2e/net/test_bad_http.py") == [("e2e", ["test_bad_http.py"])]
    assert chosen("weights") == [("e2e", [])]
    assert chosen("references") == [("references", [])] and len(chosen("tests/references")) == 2
    with pytest.raises(LookupError):
        chosen("e2e/nowhere")
    assert parts.files_of_sanitized("front") == [tmp_path / "e2e/net/test_bad_http.py"]
