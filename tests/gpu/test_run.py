"""tests/gpu/run itself, on the emulated device: what it runs there is the real thing in small, so that it works where there is a device.
And with stand-ins for the programs: a crash, a lost unit, a failure must show."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
EMULATED = BUILD / "tests/libserin_cuda_emulated.so"


class Runs:
    """Calls of tests/gpu/run that share a folder of results."""

    def __init__(self, folder):
        self.results, self.work = folder / "results", folder / "work"

    def __call__(self, *arguments, programs=BUILD, plugin=EMULATED):
        command = [ROOT / "tests/gpu/run", "--programs", programs, "--plugin", plugin, "--results", self.results, "--work", self.work, *arguments]
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False, env={**os.environ, "PYTHON": sys.executable}
        )
        return done.returncode, done.stdout + done.stderr

    def records(self):
        return [json.loads(line) for line in (self.results / "results.jsonl").read_text().splitlines()]


@pytest.fixture
def run(tmp_path):
    return Runs(tmp_path)


def test_proves_kernels_and_backend_tests_and_models(run):
    status, said = run("kernels", "onnx", "models/perceptron", "models/bert_tiny", "--jobs", 2)
    assert status == 0, said
    assert "nothing failed" in said and sum(record["passed"] for record in run.records() if record["key"].startswith("onnx/")) > 1880
    records = {record["key"]: record for record in run.records()}
    assert sum(record["passed"] for key, record in records.items() if key.startswith("kernels/")) >= 20
    assert records["models/perceptron"]["notes"]["steps on the device"] > 0


def test_runs_units_side_by_side(run):
    """Each once, those of one model one after the other; what needs the device for itself comes last."""
    status, said = run("kernels/1", "onnx/1", "onnx/2", "models/perceptron*", "faults/absent", "--jobs", 3)
    assert status == 0, said
    keys = [record["key"] for record in run.records()]
    assert sorted(keys) == ["faults/absent", "kernels/1", "models/perceptron", "models/perceptron_dynamo", "onnx/1", "onnx/2"]
    assert keys[-1] == "faults/absent"
    assert run("onnx/1", "onnx/2", "--again", "--jobs", 2, "--minutes", 0)[0] == 0 and len(run.records()) == 6, "nothing begins that has no time"


def test_goes_on_where_it_was(run):
    assert run("kernels/1", "onnx/1", "--minutes", 0)[0] == 4
    status, said = run("onnx/1")
    assert status == 0
    status, said = run("kernels/1", "onnx/1", "--minutes", 0)
    assert status == 4 and "**1 of 1 units are still to be run**" in said
    run("onnx/1")
    assert [record["key"] for record in run.records()] == ["onnx/1"]
    run("onnx/1", "--again")
    assert [record["key"] for record in run.records()] == ["onnx/1", "onnx/1"]


def test_begins_nothing_that_may_not_end_in_time(run):
    run("onnx/1")
    record = run.records()[0]
    file = run.results / "results.jsonl"
    file.write_text(json.dumps({**record, "of": "other programs", "seconds": 50}) + "\n")
    assert run("onnx/1", "--minutes", 0.5)[0] == 4, "it took longer than that"
    assert len(run.records()) == 1
    assert run("onnx/1", "--minutes", 5)[0] == 0
    assert [path.name for path in run.results.iterdir()] == ["results.jsonl"], "nothing else needs to be carried"


def test_carries_what_was_measured_of_kernels(run, tmp_path):
    """In one file. On the emulated device there is nothing to choose from, so it is a mark of ours that must come back."""
    carried = tmp_path / "cache.tar.gz"
    assert run("models/perceptron", "--cache", carried)[0] == 0
    with tarfile.open(carried) as tar:
        assert "./torch" in tar.getnames()
    (run.work / "cache/torch/mark").write_text("here")
    assert run("models/perceptron", "--again", "--cache", carried)[0] == 0
    elsewhere = Runs(tmp_path / "elsewhere")
    assert elsewhere("models/perceptron", "--cache", carried)[0] == 0
    assert (elsewhere.work / "cache/torch/mark").read_text() == "here"


def test_without_a_device_all_is_skipped(run):
    status, said = run("onnx", plugin=run.results / "libserin_cuda.so")
    assert status == 3
    assert "all skipped, there is no device" in said and "libserin_cuda.so" in said


def test_names_what_is_missing_or_unknown(run, tmp_path):
    status, said = run(programs=tmp_path)
    assert status == 2 and "holds no serin; tests/gpu/pack makes it" in said
    status, said = run("kernel")
    assert status == 2 and "nothing is named kernel" in said


def test_serves_several_models_at_once(run):
    status, said = run("serve/digits", "--requests", 200)
    assert status == 0, said
    record = run.records()[0]
    assert record["notes"]["requests answered"] >= 200
    assert record["passed"] == 2 * 3 + 2, "each model at each batch, and its answers beside the CPU's"


def test_a_second_start_that_measures_again_fails(run, stand_in):
    programs = stand_in("report(a='')")
    (programs / "serin").unlink()
    (programs / "serin").write_text(f"""#!/bin/bash
for i in $(seq $#); do
  if [[ ${{!i}} == --cuda-cache ]]; then next=$((i + 1)); kept=${{!next}}/tactics-of-a-device; fi
done
if [[ -n $kept ]]; then
  mkdir -p "${{kept%/*}}"
  [[ -e $kept ]] || echo "the scope" >"$kept"
  echo "0 0.1 conv $$" >>"$kept"
fi
exec {BUILD}/serin "$@"
""")
    (programs / "serin").chmod(0o755)
    status, said = run("serve/second-start", programs=programs)
    assert status == 1 and "1 kernels were measured first, then 1 more" in said, said


def test_makes_faults_happen(run):
    status, said = run("faults")
    assert status == 0, said
    records = {record["key"]: record for record in run.records()}
    assert {key for key, record in records.items() if record["passed"]} == {f"faults/{what}" for what in ("absent", "limit", "no-room", "storm", "lost")}
    assert list(records["faults/tenant"]["skipped"]), "another process's memory is the driver's to count"


def test_a_fault_that_does_not_happen_fails(run, stand_in):
    """As with a driver that takes what breaks a device no more."""
    programs = stand_in("report(a='')")
    (programs / "serin").unlink()
    (programs / "serin").write_text(f'#!/bin/sh\nunset SERIN_EMULATED_FAULT\nexec {BUILD}/serin "$@"\n')
    (programs / "serin").chmod(0o755)
    status, said = run("faults/lost", programs=programs)
    assert status == 1 and "not within" in said and "the first 503" in said, said


def test_a_lost_device_ends_the_program_with_the_test_that_lost_it(tmp_path):
    """So that the others are run in another process."""
    fault = tmp_path / "fault"
    environment = {**os.environ, "SERIN_CUDA_PLUGIN": str(EMULATED), "SERIN_EMULATED_FAULT": str(fault)}
    command = [BUILD / "tests/gpu_test", "--gtest_filter=DeviceKernels.BinaryBroadcasts", "--gtest_repeat=100", "--gtest_color=no"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as program:
        for line in program.stdout:
            if line.startswith("[       OK") and not fault.exists():  # it is open by now
                (tmp_path / "staged").write_text("0 716")
                (tmp_path / "staged").rename(fault)
            last = line
        assert program.wait() == -signal.SIGABRT
        complaint = program.stderr.read()
    assert "the device is lost: cudaError" in complaint
    assert not last.startswith("[       OK"), "it went on"


def test_unpacks_what_was_carried(run, tmp_path):
    data = Path(onnx.__file__).parent / "backend/test/data"

    def carry(cases):
        with tarfile.open(tmp_path / "gpu.tar.xz", "w:xz", preset=0) as tar:
            for name in "serin", "tests/gpu_test", "tests/conformance_test", "tests/libserin_fault_on_demand.so":
                link = tarfile.TarInfo(f"bin/{Path(name).name}")
                link.type, link.linkname = tarfile.SYMTYPE, str(BUILD / name)
                tar.addfile(link)
            for case in cases:
                tar.add(data / case, f"suite/{case}")

    first = ["node/test_abs", "simple/test_shrink", "pytorch-converted/test_Linear", "pytorch-operator/test_operator_exp"]
    carry(first)
    status, said = run("onnx", programs=tmp_path / "gpu")
    assert status == 0 and "| onnx | 7 | 0 | 0 |" in said, said  # three are of the program itself
    carry([*first, "node/test_acos"])
    status, said = run("onnx", "--again", programs=tmp_path / "gpu")
    assert status == 0 and "| onnx | 8 | 0 | 0 |" in said, "a newer archive takes the place of what was unpacked"


@pytest.fixture
def stand_in(tmp_path):
    """Makes programs of which gpu_test is a few lines of Python: it has tests A.a, A.b and A.c; `chosen` are those it was asked to run."""
    folder = tmp_path / "programs"
    (folder / "tests").mkdir(parents=True)
    (folder / "serin").symlink_to(BUILD / "serin")
    for name in "conformance_test", "libserin_fault_on_demand.so":
        (folder / "tests" / name).symlink_to(BUILD / "tests" / name)

    def write(*lines):
        path = folder / "tests/gpu_test"
        head = f"""#!{sys.executable}
import os, sys
if "--gtest_list_tests" in sys.argv:
    print("A.\\n  a\\n  b\\n  c"); sys.exit(0)
flags = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
chosen = flags["gtest_filter"].split(":")
def report(**tests):
    cases = "".join(f'<testcase name="{{name}}" classname="A" time="0">{{what}}</testcase>' for name, what in tests.items())
    open(flags["gtest_output"][4:], "w").write(f"<testsuites><testsuite>{{cases}}</testsuite></testsuites>")
"""
        path.write_text(head + "\n".join(lines))
        path.chmod(0o755)
        return folder

    return write


def test_what_crashes_fails_and_the_others_run(run, stand_in):
    programs = stand_in(
        "if 'A.b' in chosen: print('[ RUN      ] A.a\\n[       OK ] A.a (0 ms)\\n[ RUN      ] A.b', flush=True); os.abort()",
        "report(**{name[2:]: '' for name in chosen})",
    )
    status, said = run("kernels", programs=programs)
    assert status == 1
    record = run.records()[0]
    assert record["passed"] == 2 and list(record["failed"]) == ["A.b"]
    assert "SIGABRT" in record["failed"]["A.b"] and "kernels/1: A.b" in said


def test_a_failure_is_shown_with_what_was_said(run, stand_in):
    programs = stand_in("report(a='', b='<failure>1 is not 2</failure>', c='')", "sys.exit(1)")
    status, said = run("kernels", programs=programs)
    assert status == 1
    assert "FAILED kernels/1: A.b\n1 is not 2" in said
    assert run("kernels", programs=programs)[0] == 1, "what failed once is not forgotten"


def test_a_program_that_fails_behind_its_tests_fails(run, stand_in):
    """As one does in which compute-sanitizer found something."""
    programs = stand_in("report(a='', b='', c='')", "print('========= Invalid __global__ write of size 4 bytes')", "sys.exit(9)")
    status, said = run("kernels", programs=programs)
    assert status == 1
    assert "Invalid __global__ write" in said


def test_a_sanitizer_that_cannot_watch_the_device_is_skipped_with_its_words(run, stand_in, tmp_path, monkeypatch):
    """And one that can is asked for our kernels alone."""
    programs = stand_in("report(a='', b='', c='')")
    tool = tmp_path / "bin/compute-sanitizer"
    tool.parent.mkdir()
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    tool.write_text("#!/bin/sh\necho '========= Error: Device not supported. Please refer to the documentation'\nexit 1\n")
    tool.chmod(0o755)
    status, said = run("memcheck", programs=programs)
    assert status == 0 and "| memcheck | 0 | 0 | 1 |" in said and "Device not supported" in said, said
    tool.write_text('#!/bin/sh\necho "$@" >>"$0.asked"\nwhile [ "${1#-}" != "$1" ]; do case $1 in --*) shift 2;; esac; done\nexec "$@"\n')
    assert run("racecheck", programs=programs)[0] == 0
    assert "--tool racecheck --error-exitcode 9 --kernel-regex kns=serin --report-api-errors no" in Path(f"{tool}.asked").read_text()


def test_results_of_other_programs_do_not_count(run, stand_in):
    assert run("kernels", programs=stand_in("report(a='', b='', c='')"))[0] == 0
    assert run("kernels", programs=stand_in("report(a='', b='', c='')", "# newer"))[0] == 0
    assert len(run.records()) == 2
