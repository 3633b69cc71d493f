"""What can be known of the images without building one: that what the program needs is in them, and that its names there are names of the program."""

import re
import shutil
import subprocess

import dockerfile
import pytest
from dockerfile import ROOT

PROGRAM = ROOT / "build/serin"
OF_THE_BASE = {"libc6", "libgcc-s1", "libstdc++6"}  # which debian:12-slim has: apt needs them
NEEDED_OTHERWISE = {"ca-certificates"}  # read, not linked


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=170, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def package_of(library):
    """Of Debian's; nothing: it is none of theirs."""
    for path in (library, library.removeprefix("/usr"), "/usr" + library):
        owner = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False).stdout
        if owner:
            return owner.split(":")[0]
    return None


@pytest.mark.skipif(not shutil.which("dpkg"), reason="this is no Debian (no dpkg)")
def test_the_image_has_the_packages_that_the_program_and_its_plugins_are_linked_with():
    found = re.findall(r"=> (/\S+)", "".join(run("ldd", file) for file in (PROGRAM, ROOT / "build/libserin_onednn.so", ROOT / "build/libserin_vision.so")))
    needed = {library: package_of(library) for library in found}
    assert [library for library, package in needed.items() if not package and "libdnnl" not in library] == []
    assert set(needed.values()) - {None} - OF_THE_BASE == dockerfile.packages() - NEEDED_OTHERWISE


def test_every_link_is_a_name_that_the_program_knows(tmp_path):
    for path in dockerfile.links():
        name = path.rsplit("/", 1)[1]
        link = tmp_path / name
        link.unlink(missing_ok=True)
        link.symlink_to(PROGRAM)
        assert run(link, "--version").startswith("serin " if name == "serin" else f"{name}: serin "), path


def test_every_name_that_the_program_knows_is_a_link_in_the_path():
    names = re.search(r"kDialectNames = \{(.*?)\}", (ROOT / "runtime/serving/settings/dialect.h").read_text(), re.S)[1]
    assert {f"/usr/bin/{name}" for name in re.findall(r'"(\w+)"', names)} <= set(dockerfile.links())


@pytest.mark.parametrize("target", dockerfile.targets())
def test_what_a_target_starts_is_in_the_image(target):
    words = dockerfile.said(target, "ENTRYPOINT") or ["tritonserver"]
    copied = [rest.split()[-1] + rest.split()[0].rsplit("/", 1)[1] for name, rest in dockerfile.stages()[target] if name == "COPY" and "--from" not in rest]
    assert words[0] in (*copied, *dockerfile.links(), *(path.rsplit("/", 1)[1] for path in dockerfile.links() if path.startswith("/usr/bin/")))
    assert dockerfile.said(target, "USER") == "1000:1000"


def test_one_argument_says_what_every_image_is_based_on():
    text = dockerfile.DOCKERFILE.read_text()
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", text, re.M)
    assert {base for base, _ in stages} - {name for _, name in stages} == {"${BASE}"}
    assert re.search(r"^ARG BASE=debian:12-slim$", text, re.M)


@pytest.mark.parametrize("name", ["onednn", "parquet", "cuda"])
def test_what_an_image_takes_from_elsewhere_is_pinned_by_its_hash(name):
    lines = [line for line in (ROOT / f"deploy/requirements-{name}.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines), lines


def test_the_context_is_enough_to_compile_and_has_nothing_else(tmp_path):
    listed = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    taken = dockerfile.taken([path for path in listed if path and (ROOT / path).is_file()])
    assert {path.split("/")[0] for path in taken} == {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "bench", "cmake", "deploy", "kernels", "router", "runtime",
                                                       "tests"}
    compiled_in = {"runtime/planner/catalogue.yaml"}
    assert {path for path in taken if path.endswith(("Dockerfile", ".md", ".yaml"))} == compiled_in
    for path in taken:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / ".deps").symlink_to(ROOT / ".deps")  # what deploy/install-deps makes there
    for source in re.findall(r"COPY (deploy/.*) ", dockerfile.DOCKERFILE.read_text()):
        assert set(source.split()) <= set(taken)
    cuda = ["serin_cuda"] if (ROOT / ".deps/cuda").exists() else []
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", f"-DSERIN_CUDA={'ON' if cuda else 'OFF'}"]
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", *options)  # fails where a file is missing, as ninja does
    run("ninja", "-C", tmp_path / "build", "-n", "serin", "serin_onednn", *cuda)


def test_what_is_installed_finds_its_plugin(tmp_path):
    run("cmake", "--install", ROOT / "build", "--prefix", tmp_path, "--strip")
    loaded = subprocess.run([tmp_path / "bin/serin", "serve", "--check", ROOT / "models"], capture_output=True, text=True, check=True, timeout=60)
    assert re.search(r", oneDNN 3\.\d", loaded.stderr), loaded.stderr
    for plugin in ("libserin_onednn.so", "libserin_vision.so"):
        needed = run("ldd", tmp_path / "lib" / plugin)
        assert str(ROOT) not in needed and "not found" not in needed, needed
