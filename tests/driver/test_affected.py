"""`tests/run --affected` leaves nothing out that a change can have touched, and runs no more of it than that."""

import re
import subprocess
import sys

import pytest

import affected
import main
import parts
from parts import ROOT, TESTS, all_parts


def touched(*changed):
    """Titles of the parts that a change of these files touches; of Python tests also the files that are run alone."""
    found = ((part.title, affected.touched(part, list(changed))) for part in all_parts() if not part.sanitized)
    return {title: [path.name for path in part.paths] for title, part in found if part}


def test_every_library_that_a_test_program_links_has_a_folder():
    linked = {name for cmake in TESTS.rglob("CMakeLists.txt") for names in re.findall(r"\bLIBS ([^)]*)", cmake.read_text()) for name in names.split()}
    ours = {name for name in linked if name.startswith("serin_")}
    assert len(ours) > 10 and ours <= affected.libraries().keys()


def test_a_change_touches_what_depends_on_it():
    assert {"net", "serving", "proxy", "router", "e2e", "serin", "net_test", "proxy_test", "headers", "text"} <= touched("runtime/net/http.h").keys()
    assert not {"graph", "kernels", "onnx", "protocol"} & touched("runtime/net/http.h").keys()
    assert {"kernels", "gpu", "engine", "models"} <= touched("kernels/dispatch.h").keys() and "net" not in touched("kernels/dispatch.h")
    assert not {"models", "operators", "engine"} & touched("router/admin/api.cc").keys() and {"e2e", "router"} <= touched("router/admin/api.cc").keys()
    assert touched("CMakeLists.txt").keys() >= {part.title for part in all_parts() if part.kind in ("cpp", "pytest", "front")}
    assert "rollout" in touched(f"{affected.cmake_file('rollout_test').parent.relative_to(ROOT)}/simulation.cc")
    assert not {"e2e", "graph", "format"} & touched("runtime/README.md").keys() and "text" in touched("runtime/README.md")


def test_of_changed_python_tests_only_they_run():
    plain = sorted(parts.test_files(TESTS / "e2e") - set(parts.files_of_sanitized("front")))[0]
    both = parts.files_of_sanitized("front")[0]
    helper = next((TESTS / "e2e").rglob("routers.py"))
    name = {path: str(path.relative_to(ROOT)) for path in (plain, both, helper)}
    assert touched(name[plain])["e2e"] == [plain.name] and "serin" not in touched(name[plain])
    assert touched(name[both])["e2e"] == touched(name[both])["serin"] == [both.name]
    assert touched(name[plain], name[helper])["e2e"] == [] and "serin" in touched(name[plain], name[helper])
    assert touched("tests/e2e/test_gone.py") == {title: [] for title in touched("tests/e2e/test_gone.py")} and "e2e" not in touched("tests/e2e/test_gone.py")


def test_changes_are_counted_from_a_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(affected, "ROOT", tmp_path)

    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for name, hour in ("one", 10), ("two", 23), ("three", 24):
        (tmp_path / name).write_text(name)
        git("add", ".")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{1_800_000_000 + hour * 3600} +0000")
        if name == "two":
            with pytest.raises(LookupError, match="landed together"):
                affected.base()  # of one commit nothing is known
        git("commit", "-qm", name)
    assert affected.changed_since(affected.base()) == ["three", "two"], "landed within 12 hours"
    (tmp_path / "four").write_text("new")
    (tmp_path / "one").write_text("other")
    assert affected.changed_since(affected.base()) == ["four", "one", "three", "two"]
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert affected.changed_since(affected.base()) == ["four", "one", "three"]
    assert affected.changed_since("HEAD") == ["four", "one"]
    with pytest.raises(LookupError, match="nowhere"):
        affected.narrow([], "nowhere")


def test_costly_tests_run_once_what_they_depend_on_has_changed(monkeypatch):
    def touches(*changed):
        monkeypatch.setattr(affected, "changed_since", lambda commit: list(changed))
        return [name for name in parts.COSTLY if affected.touches(name)]

    for path in "kernels/cuda/norm.cu", "kernels/functors.h", "runtime/engine/plan/arena.cc", "tests/gpu/memory_test.cc", "tests/models/test_device.py":
        assert touches("README.md", path) == [parts.DEVICES], path
    for path in "runtime/net/http.h", "runtime/serving/apis/grpc/codec.cc", "router/proxy/proxy.cc", "tests/runtime/net/tls_test.cc", "tests/e2e/net/test_bad_http.py":
        assert touches(path) == [parts.FRONT], path
    for path in "CMakeLists.txt", "deploy/docker/Dockerfile", "runtime/cli/serve/serve_as.cc", "tests/deploy/images.py":
        assert touches(path) == [parts.IMAGES], path
    assert touches("tests/gpu/CMakeLists.txt", "cmake/rooms.cmake") == [parts.DEVICES, parts.IMAGES]
    assert touches() == touches("router/admin/api.cc", "tests/e2e/router/test_route.py", "tests/models/test_models.py", "kernels/cuda/README.md", "runtime/formats/onnx/onnx.h") == []

    def fails(commit):
        raise LookupError(commit)

    monkeypatch.setattr(affected, "changed_since", fails)
    assert all(affected.touches(name) for name in parts.COSTLY), "without git nothing is known"


def test_without_costly_tests_only_they_are_left_out():
    assert {part.name: part.left_out for part in parts.without_costly(all_parts(), parts.IMAGES) if part.left_out} == {"deploy": [TESTS / "deploy/test_images.py"]}
    assert {part.kind for part in all_parts()} - {part.kind for part in parts.without_costly(all_parts(), parts.FRONT)} == {"front"}
    kept = parts.without_costly(all_parts(), parts.DEVICES)
    assert {part.program for part in all_parts()} - {part.program for part in kept} == {"gpu_test", "gpu_libraries_test"}
    assert "gpu" not in {part.name for part in kept} and not any(parts.EMULATED in part.targets for part in kept)
    left_out = {part.name: part.left_out for part in kept if part.kind == "pytest" and part.left_out}
    assert left_out == {"e2e": [TESTS / "e2e/devices"], "models": [TESTS / "models/test_device.py"]}
    assert sum(parts.EMULATED in part.targets for part in all_parts() if part.kind == "pytest") == 3
    assert [part.left_out for part in parts.without_twins(kept) if part.name == "e2e"][0][0] == TESTS / "e2e/devices"


def test_nothing_to_do_is_no_failure(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests/run", "--affected"])
    monkeypatch.setattr(affected, "changed_since", lambda commit: [])
    assert main.main() == 0
    assert capsys.readouterr().out == "affected: nothing\n0 passed, 0 failed, 0 skipped\n"
