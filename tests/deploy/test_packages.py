"""The tarball and the Debian package that cpack makes: each put into a bare root, where the program starts, serves a model and ends. They hold what build/ has."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import dockerfile
import images
import pytest
import sandbox
import spdx
from dockerfile import ROOT

TOOLS = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file") if not shutil.which(tool)]
pytestmark = pytest.mark.skipif(bool(TOOLS), reason=f"no packages here: no {', '.join(TOOLS)} (deploy/install-deps --tests)")
WHY_NO_ROOT = images.why_not() or sandbox.why_not()
in_a_bare_root = pytest.mark.skipif(bool(WHY_NO_ROOT), reason=f"no bare root here: {WHY_NO_ROOT}")
OF_EVERY_SYSTEM = {"libc6", "libgcc-s1", "libstdc++6"}
ZEROS = json.dumps({"instances": [[0.0] * 64]}).encode()
SAID_AT = "share/doc/serin"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """(tarball, Debian package)."""
    folder = tmp_path_factory.mktemp("packages")
    images.run("cpack", "--config", ROOT / "build/CPackConfig.cmake", "-B", folder, cwd=ROOT / "build")
    shutil.rmtree(folder / "_CPack_Packages")
    tarball, package = sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)
    return tarball, package


@pytest.fixture(scope="module")
def bare():
    """A bare Debian, as a container and as a folder."""
    if why := images.make_base():
        pytest.skip(f"no base image: {why}")
    container = images.Root(images.BASE, ["/models"])
    with container as root:
        yield container, root


def field(package, name):
    return images.run("dpkg-deb", "-f", package, name).strip()


def test_their_names_say_the_version_and_the_machine(packages):
    version = images.run(ROOT / "build/serin", "--version").split()[1]
    assert [path.name for path in packages] == [f"serin-{version}-linux-amd64.tar.gz", f"serin_{version}_amd64.deb"]


def test_the_debian_package_depends_on_what_the_image_installs(packages):
    depends = {alternative.split()[0].removesuffix("-fmt9") for alternative in field(packages[1], "Depends").split(",")}  # which libspdlog1.10 provides
    assert depends == dockerfile.packages() | OF_EVERY_SYSTEM
    assert "libc6 (>= 2." in field(packages[1], "Depends")


def test_the_debian_package_keeps_to_its_folders(packages):
    listed = [line.split(maxsplit=5) for line in images.run("dpkg-deb", "-c", packages[1]).splitlines()]
    files = sorted(entry[5] for entry in listed if entry[0][0] != "d")
    assert all(name.startswith(("./usr/lib/serin/", "./usr/bin/serin -> ", "./usr/share/doc/serin -> ")) for name in files), files
    assert {entry[1] for entry in listed} == {"root/root"}
    assert not [entry for entry in listed if entry[0][0] != "l" and "w" in entry[0][4:]]  # none but root changes it


def programs(root):
    return [path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF"]


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    images.run("tar", "-xf", packages[0], "-C", folder)
    (inside,) = folder.iterdir()
    return inside


def test_the_tarball_has_every_library_but_those_of_the_c_library(unpacked):
    carried = {path.name for path in (unpacked / "lib").iterdir()}
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", images.run("readelf", "-d", *programs(unpacked))))
    assert needed - carried <= {f"{name}.so.{number}" for name, number in (("libc", 6), ("libm", 6), ("ld-linux-x86-64", 2), ("libdl", 2), ("librt", 1), ("libpthread", 0))}


def test_the_tarball_needs_the_c_library_that_the_page_names(unpacked):
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", images.run("objdump", "-T", *programs(unpacked)))
    newest = ".".join(map(str, max((int(major), int(minor)) for major, minor in versions)))
    assert f"glibc {newest} or newer" in (ROOT / "deploy/README.md").read_text()


def test_the_tarball_has_the_licence_of_each_part(unpacked):
    parts = json.loads((unpacked / SAID_AT / "serin.spdx.json").read_text())["packages"][1:]
    texts = {path.name for path in (unpacked / SAID_AT / "licences").iterdir()}
    assert texts == {part["name"] for part in parts} - {"libboost1.81-dev"}
    assert all(list((unpacked / SAID_AT / "licences" / name).iterdir()) for name in texts)
    assert (unpacked / SAID_AT / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def of_the_c_library(base, folder):
    """A root with what Debian's libc6 has, with what puts a process into a sandbox, and with nothing else: no shell, no other library."""
    for link in ("lib", "lib64"):
        (folder / "usr" / link).mkdir(parents=True)
        (folder / link).symlink_to(f"usr/{link}")
    listed = [pathlib.Path(line) for line in (base / "var/lib/dpkg/info/libc6:amd64.list").read_text().splitlines()]
    setpriv = [pathlib.Path("/usr/bin/setpriv"), *(base / "usr/lib/x86_64-linux-gnu").glob("libcap-ng.so.0")]
    for path in [path for path in listed if "gconv" not in path.parts] + ["/" / path.relative_to(base) if path.is_relative_to(base) else path for path in setpriv]:
        source, target = base / str(path).lstrip("/"), folder / str(path).lstrip("/")
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for place in ("dev", "proc", "models", "anywhere"):
        (folder / place).mkdir()
    return folder


def serve_in(root, program, folder):
    """Starts it there as a user without a name, asks a model, and ends it."""
    shutil.copytree(ROOT / "models/digits/1", folder / "models/digits/1")
    with sandbox.Sandbox([program, "serve", "--models", "/models"], {"/models": folder / "models"}, folder / "log", root, environment={}) as server:
        server.await_answer(8000, "/v2/health/ready")
        status, answer = server.ask(8000, "/v1/models/digits:predict", data=ZEROS)
        assert status == 200 and len(json.loads(answer)["predictions"]) == 1
        assert server.serves_grpc(8001)
        assert "oneDNN 3." in server.log, server.log
        assert server.end() == 0, server.log


@in_a_bare_root
def test_the_tarball_runs_anywhere_in_a_root_with_a_c_library_alone(bare, unpacked, tmp_path):
    root = of_the_c_library(bare[1], tmp_path / "root")
    shutil.copytree(unpacked, root / "anywhere/serin", symlinks=True)
    serve_in(root, "/anywhere/serin/bin/serin", tmp_path)


@in_a_bare_root
def test_the_debian_package_is_installed_run_and_removed_by_apt(bare, packages, tmp_path):
    container, root = bare
    shutil.copy(packages[1], root / "tmp/serin.deb")
    container.run("apt-get update && apt-get -o Acquire::Retries=3 install -y --no-install-recommends /tmp/serin.deb")
    assert images.run("chroot", root, "serin", "--version").startswith("serin ")
    lacking = images.run("chroot", root, "dpkg", "--verify", "serin").splitlines()
    assert [line for line in lacking if "/usr/share/doc/" not in line] == [], "slim images leave documents out"
    assert (root / "etc/ssl/certs/ca-certificates.crt").stat().st_size > 100_000
    serve_in(root, "/usr/bin/serin", tmp_path)
    images.run("chroot", root, "dpkg", "--purge", "serin")
    assert not any(os.path.lexists(root / path) for path in ("usr/bin/serin", "usr/lib/serin", "usr/share/doc/serin"))


@pytest.fixture(scope="module")
def parquet_packages(tmp_path_factory):
    """(tarball, Debian package) of the plugin for Parquet alone."""
    if not (ROOT / "build/libserin_parquet.so").exists():
        pytest.skip("serin was built without Arrow (deploy/install-deps)")
    folder = tmp_path_factory.mktemp("parquet")
    images.run("cpack", "--config", ROOT / "build/CPackConfig.cmake", "-B", folder, "-D", "CPACK_PART=parquet", cwd=ROOT / "build")
    shutil.rmtree(folder / "_CPack_Packages")
    return sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)


def test_the_plugin_for_parquet_is_a_package_that_goes_with_the_program(packages, parquet_packages):
    version = images.run(ROOT / "build/serin", "--version").split()[1]
    assert [path.name for path in parquet_packages] == [f"serin-parquet-{version}-linux-amd64.tar.gz", f"serin-parquet_{version}_amd64.deb"]
    assert f"serin (= {version})" in field(parquet_packages[1], "Depends").split(", ")
    mine, its = (set(re.findall(r" \./(\S+[^/\s])$", images.run("dpkg-deb", "-c", package), re.M)) for package in (parquet_packages[1], packages[1]))
    libraries = {path.name for path in (ROOT / ".deps/parquet/lib").glob("*.so.*")} | {"libserin_parquet.so"}
    assert {path for path in mine if "/doc/" not in path} == {f"usr/lib/serin/lib/{name}" for name in libraries}
    assert {"LICENSE.txt", "NOTICE.txt"} == {path.rsplit("/", 1)[1] for path in mine if path.startswith("usr/lib/serin/share/doc/serin-parquet/")}
    assert not mine & its  # dpkg refuses a file of two packages


def test_the_tarball_reads_parquet_once_that_of_the_plugin_is_unpacked_over_it(unpacked, parquet_packages, tmp_path):
    shutil.copytree(unpacked, tmp_path / "serin", symlinks=True)
    command = [tmp_path / "serin/bin/serin", "predict", ROOT / "models/digits/2", ROOT / "tests/data/tables/mixed.parquet", tmp_path / "o.npz", "--map", "pixels=matrix"]
    before = subprocess.run(command, capture_output=True, text=True, check=False)
    assert before.returncode == 2 and "Parquet is read with libserin_parquet.so, which is not installed" in before.stderr
    images.run("tar", "-xf", parquet_packages[0], "--strip-components", "1", "-C", tmp_path / "serin")
    after = subprocess.run(command, capture_output=True, text=True, check=False)
    assert after.returncode == 3 and "row 0: column 'matrix': has shape [2,3], [64] is wanted" in after.stderr
    for library in (tmp_path / "serin/lib").glob("lib*parquet*"):
        needed = images.run("ldd", library)
        assert str(ROOT) not in needed and "not found" not in needed, needed


@pytest.mark.parametrize("name", ["preact", "eventsource-parser"])
def test_the_licences_of_the_dashboard_are_those_of_its_packages(name):
    package = ROOT / "router/dashboard/node_modules" / name
    if not package.exists():
        pytest.skip("no packages of npm here")
    assert (ROOT / f"router/dashboard/licences/{name}/LICENSE").read_text() == (package / "LICENSE").read_text()


def test_what_the_packages_say_of_themselves_is_the_same(packages, unpacked, tmp_path):
    """But for the libraries, which one has and the other depends on."""
    images.run("dpkg-deb", "-x", packages[1], tmp_path)
    installed, carried = (spdx.parts(folder / SAID_AT / "serin.spdx.json") for folder in (tmp_path / "usr/lib/serin", unpacked))
    assert installed.items() < carried.items()
    libraries = dockerfile.packages() - {"ca-certificates"} | {"libgcc-s1", "libstdc++6"}
    assert libraries == carried.keys() - installed.keys()
    for name in libraries:
        version = images.run("dpkg-query", "-W", "-f=${Version}", f"{name}:amd64")
        assert carried[name][:2] == (version, f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch=amd64")
    pinned = re.search(r"onednn-cpu-gomp==(\S+) --hash=sha256:(\w+)", (ROOT / "deploy/requirements-onednn.txt").read_text())
    assert installed["onednn-cpu-gomp"] == (pinned[1], f"pkg:pypi/onednn-cpu-gomp@{pinned[1]}", pinned[2])
    locked = json.loads((ROOT / "router/dashboard/package-lock.json").read_text())["packages"]
    assert all(installed[name][0] == locked[f"node_modules/{name}"]["version"] for name in ("preact", "eventsource-parser"))
    assert {"serin", "libboost1.81-dev", "libcli11-dev", "libopencv-core-dev", "libopencv-imgproc-dev"} <= installed.keys()
    assert "License: Apache-2.0" in (tmp_path / "usr/lib/serin" / SAID_AT / "copyright").read_text()
    assert subprocess.run([tmp_path / "usr/bin/serin", "--version"], capture_output=True, check=False).returncode == 0
