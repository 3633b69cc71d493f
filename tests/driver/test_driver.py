"""tests/run must not call a failure a success: a crash, a hang, an empty part, a wrong name, each with a stand-in for a test program."""

import sys
import time

import pytest

import main
import process
import runners
from parts import Part, all_parts, select
from results import FAILED, PASSED, SKIPPED, Case, from_gtest_log, from_junit

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


def statuses(cases):
    return [case.status for case in cases]


def test_reads_every_outcome_with_its_reason(tmp_path):
    (tmp_path / "r.xml").write_text(REPORT)
    cases = from_junit("graph", tmp_path / "r.xml")
    assert statuses(cases) == [PASSED, FAILED, SKIPPED, SKIPPED]
    assert [case.detail for case in cases] == ["", "a.cc:3\nwrong", "no GPU here", "disabled in the source"]
    assert cases[0].name == "Graph.Adds" and cases[0].seconds == 0.25


def test_counts_what_passed(program):
    cases = runners.run_part(program(f"open(report, 'w').write('''{OK}''')"))
    assert statuses(cases) == [PASSED]


def test_lines_of_a_summary_are_passed_on(program):
    part = program(f"open(report, 'w').write('''{OK}''')", "print('summary: node 3 of 4')", "print('other')")
    runners.run_part(part)
    assert runners.summary(part) == ["node 3 of 4"]


def test_a_crash_fails_the_test_it_happened_in(program):
    log = "[ RUN      ] Graph.Adds\n[       OK ] Graph.Adds (0 ms)\n[ RUN      ] Graph.Dies\nhalf a line"
    cases = runners.run_part(program(f"print({log!r}, flush=True)", "os.abort()"))
    assert [(case.name, case.status) for case in cases] == [("Graph.Adds", PASSED), ("Graph.Dies", FAILED)]
    assert "SIGABRT" in cases[1].detail and "half a line" in cases[1].detail


def test_a_crash_after_the_last_test_is_a_failure(program):
    cases = runners.run_part(program(f"open(report, 'w').write('''{OK}''')", "sys.exit(3)"))
    assert statuses(cases) == [PASSED, FAILED]
    assert "exit code 3" in cases[1].detail


def test_a_hang_is_ended_and_is_a_failure(program, monkeypatch):
    monkeypatch.setattr(runners, "PART_LIMIT_S", 0.3)
    cases = runners.run_part(program("time.sleep(600)"))
    assert statuses(cases) == [FAILED]
    assert "time limit" in cases[0].detail


def test_no_test_at_all_is_a_failure(program):
    cases = runners.run_part(program("open(report, 'w').write('<testsuites/>')"))
    assert [case.detail for case in cases] == ["ran no test"]


def test_a_single_test_may_be_of_another_program_of_its_folder(program):
    part = program("open(report, 'w').write('<testsuites/>')")
    part.only = ["Graph.Adds"]
    assert runners.run_part(part) == []


def test_a_program_that_was_not_built_is_a_failure(program):
    cases = runners.run_part(Part("graph", "cpp", "graph_test"))
    assert "not built" in cases[0].detail


def test_a_report_of_an_earlier_run_is_not_read(program):
    runners.run_part(program(f"open(report, 'w').write('''{OK}''')"))
    assert statuses(runners.run_part(program("sys.exit(1)"))) == [FAILED]


def test_what_a_test_leaves_running_is_ended(tmp_path):
    status = process.run(["sh", "-c", "sleep 600 & echo $!"], tmp_path / "log", 10, tmp_path)
    child = int((tmp_path / "log").read_text())
    assert status == 0
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


@pytest.fixture
def builds(monkeypatch):
    """What was built, in order, and what goes wrong there; every part passes."""
    made = []
    problem = {"all": None, "cuda": None}
    monkeypatch.setattr(runners, "build", lambda targets: made.append(targets) or problem["all"])
    monkeypatch.setattr(runners, "build_cuda", lambda: made.append("cuda") or problem["cuda"])
    monkeypatch.setattr(runners, "build_sanitized", lambda kind, targets: made.append((kind, targets)) or problem.get(kind))
    monkeypatch.setattr(runners, "run_part", lambda part: [Case(part.name, part.name, PASSED)])
    monkeypatch.setattr(runners, "summary", lambda part: [])
    return made, problem


def test_the_plugin_is_built_where_a_part_looks_at_it(builds):
    assert statuses(main.run_all([Part("graph", "cpp", "graph_test")])) == [PASSED]
    assert builds[0] == [["graph_test"]]
    assert [part.name for part in all_parts() if part.needs_cuda] == ["cuda"]
    main.run_all([Part("cuda", "pytest")])
    assert builds[0][1:] == [["serin"], "cuda"]


def test_a_plugin_that_does_not_build_fails_alone(builds, capsys):
    builds[1]["cuda"] = "nvcc is not there"
    cases = main.run_all([Part("graph", "cpp", "graph_test"), Part("cuda", "pytest")])
    assert [(case.name, case.status) for case in cases] == [("build", FAILED), ("graph", PASSED)]
    assert "nvcc is not there" in capsys.readouterr().out


def test_each_sanitizer_has_a_build_of_its_own_that_fails_alone(builds):
    builds[1]["asan"] = "no such compiler"
    parts = [Part("graph", "cpp", "graph_test"), Part("asan", "asan", "net_test"), Part("asan", "asan", "proxy_test"), Part("tsan", "tsan", "net_test")]
    assert [(case.part, case.status) for case in main.run_all(parts)] == [("asan", FAILED), ("graph", PASSED), ("tsan", PASSED)]
    assert builds[0] == [["graph_test"], ("asan", ["net_test", "proxy_test"]), ("tsan", ["net_test"])]


def test_what_reads_from_outside_is_sanitized_in_every_run(builds, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tests/run"])
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    ran = []
    monkeypatch.setattr(runners, "run_part", lambda part: ran.append(part) or [Case(part.name, part.name, PASSED)])
    main.main()
    front = [part.program for part in ran if part.kind == "front"]
    assert {"net_test", "protocol_test", "serving_test", "serin"} <= set(front)
    assert {f"{program}_sanitized" for program in front} <= set(builds[0][0])  # which "all" does not build


@pytest.mark.parametrize("arguments, ran", [(["--long"], True), (["asan"], True), ([], False)])
def test_sanitizers_are_for_long_runs_and_who_names_them(monkeypatch, arguments, ran):
    chosen = []
    monkeypatch.setattr(sys, "argv", ["tests/run", *arguments])
    monkeypatch.setenv("SERIN_LONG", "0")
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    monkeypatch.setattr(main, "run_all", lambda parts: chosen.extend(parts) or [])
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
