"""Images of deploy/docker/Dockerfile, built by buildah without an engine, and without a registry: debian:12-slim is what mmdebstrap makes of it from this machine's
mirrors. How apt and pip reach theirs here goes into that base, for the Dockerfile names none. Kept in build/images, as a second build needs but what has changed."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from dockerfile import DOCKERFILE, ROOT

FOLDER = ROOT / "build/images"
BASE = "localhost/debian:12-slim"  # where a name without a registry is looked for first
ACQUIRED_BY = re.compile(r"Acquire::(https?|ftp|Check|Retries|Allow)\b.*")  # proxies, and what else it takes to reach a mirror
SOURCE = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
MERGED = ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged"]  # else the package that merges /usr brings all of Perl
SLIM = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale", "info")] + ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]


def why_not():
    """Empty: images can be built here."""
    if os.geteuid() != 0:
        return "this is not root"
    missing = [tool for tool in ("buildah", "mmdebstrap") if not shutil.which(tool)]
    return f"no {' and no '.join(missing)} here" if missing else ""


def run(*command, timeout=300, cwd=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL, cwd=cwd)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def buildah(*arguments, timeout=300):
    return run("buildah", "--root", FOLDER / "store", "--runroot", FOLDER / "run", *arguments, timeout=timeout).strip()


def make_base():
    """None, or why there is no base: a test of images is none of this machine's mirrors."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        buildah("rm", "--all", timeout=1000)  # of a run that was killed
        container = buildah("from", "scratch")
        root = pathlib.Path(buildah("mount", container))
    except AssertionError as error:  # no file system for it, as in some containers
        return str(error)[-300:]
    if BASE in buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines():
        return None
    sources = FOLDER / "sources.list"
    sources.write_text("\n".join(sorted(set(run("apt-get", "indextargets", "--format", SOURCE, "Created-By: Packages", "Origin: Debian").splitlines()))) + "\n")
    if "bookworm" not in sources.read_text():
        return "apt knows no mirror of Debian 12 here"
    options = FOLDER / "apt.conf"
    options.write_text("\n".join(line for line in run("apt-config", "dump").splitlines() if ACQUIRED_BY.match(line)) + "\n")
    made = subprocess.run(["mmdebstrap", "--variant=minbase", *MERGED, *SLIM, f"--aptopt={options}", "bookworm", FOLDER / "base.tar", sources],
                          capture_output=True, text=True, check=False, timeout=600)
    if made.returncode != 0:
        return "mmdebstrap: " + "; ".join(line for line in made.stderr.splitlines() if line.startswith("E: "))
    buildah("add", container, FOLDER / "base.tar", "/")
    shutil.copy(sources, root / "etc/apt/sources.list")
    shutil.copy(options, root / "etc/apt/apt.conf.d/99host")
    (root / "etc/pip.conf").write_text(_pip(root))
    buildah("umount", container)
    buildah("commit", "--rm", container, BASE)
    (FOLDER / "base.tar").unlink()
    return None


def _pip(root):
    """This machine's configuration of pip, with the authorities that it trusts."""
    said = {}
    for line in run("/usr/bin/python3", "-m", "pip", "config", "list").splitlines():
        key, _, value = line.partition("=")
        said.setdefault(key.rsplit(".", 1)[1], value.strip("'"))  # the environment comes first
    if "cert" in said:
        (root / "etc/ssl").mkdir(exist_ok=True)
        shutil.copy(said["cert"], root / "etc/ssl/host.crt")
        said["cert"] = "/etc/ssl/host.crt"
    kept = ("cert", "proxy", "index-url", "extra-index-url", "trusted-host")
    return "[global]\n" + "".join(f"{name} = {said[name]}\n" for name in kept if name in said)


def build(target, installed=None, *options):
    """Its name. `installed`: a folder with opt/serin in it, in the place of the stage that compiles the program."""
    name = f"{'serin' if installed else 'compiled'}:{target}"
    instead = ["--build-context", f"build={installed}"] if installed else []
    pinned = ["--build-arg", f"BASE={BASE.rpartition(':')[0]}@{digest(BASE)}"]
    buildah("build", "--isolation=chroot", "--layers", "--pull-never", *instead, *pinned, *options, "--target", target, "-t", name, "-f", DOCKERFILE, ROOT, timeout=7000)
    return name


def digest(image):
    return json.loads(buildah("inspect", "--type", "image", image))["FromImageDigest"]


def compressed(image, folder):
    """Bytes that a registry keeps of it and a machine pulls: the layers as gzip, its base included."""
    buildah("push", image, f"oci:{folder}", timeout=1000)
    manifest = json.loads((folder / "index.json").read_text())["manifests"][0]["digest"]
    layers = json.loads((folder / "blobs" / manifest.replace(":", "/")).read_text())["layers"]
    assert all(layer["mediaType"].endswith("+gzip") for layer in layers), layers
    return sum(layer["size"] for layer in layers)


def prune():
    """What no image that has a name is made of."""
    buildah("rmi", "--prune", "--force")


def config(image):
    """What the image says of how it is started."""
    return json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]


class Root:
    """An image's files in a folder, with these places to mount something at."""

    def __init__(self, image, places):
        self.container = buildah("from", "--pull-never", image)
        self.path = pathlib.Path(buildah("mount", self.container))
        for place in places:
            (self.path / place.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def run(self, command):
        """In a shell in it, with this machine's network."""
        buildah("run", "--isolation=chroot", self.container, "--", "sh", "-c", command, timeout=1000)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        buildah("umount", self.container)
        buildah("rm", self.container)
