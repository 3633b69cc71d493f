"""Which of NVIDIA's libraries the plugin loads: the image `cuda` of deploy/docker/Dockerfile has these and no others (kernels/cuda/nvidia/CMakeLists.txt lists them)."""

import ctypes.util
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-cuda"
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
NVIDIA = [ROOT / ".deps/cuda/nvidia/cu13/lib", ROOT / ".deps/cuda/nvidia/cudnn/lib"]
MOST = 1.6e9  # bytes of the image, compressed
MOST_OF_THE_REST = 100e6  # tests/deploy/test_images.py


def listed():
    text = (ROOT / "kernels/cuda/nvidia/CMakeLists.txt").read_text()
    return set(re.search(r"set\(loaded ([^)]*)\)", text)[1].split())


def path_of(library):
    (path,) = [folder / library for folder in NVIDIA if (folder / library).exists()]
    return path


def loaded_by(folder, program, *arguments):
    """By the dynamic linker's own account."""
    environment = {**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(folder / program), "LD_LIBRARY_PATH": os.pathsep.join(map(str, NVIDIA))}
    done = subprocess.run([BUILD / program, *arguments], capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    said = "\n".join(path.read_text() for path in folder.glob(f"{program}.*"))
    return {pathlib.PurePath(path).name for path in re.findall(r"calling init: (\S+/lib(?:cu|nv)\S+)", said)}


def test_what_is_listed_is_what_convolutions_and_chains_load(tmp_path):
    """cuDNN's graphs, its heuristics and its engines are asked by one program, the compiler of chains by the other, which refuses the text."""
    assert loaded_by(tmp_path, "dnn_plans") | loaded_by(tmp_path, "chain_codes", "broken") == listed()


def test_the_image_stays_below_its_limit():
    """Even uncompressed they fit, with all the rest."""
    size = sum(path_of(library).stat().st_size for library in listed()) + (BUILD / "libserin_cuda.so").stat().st_size
    print(f"{size / 1e6:.0f} MB uncompressed")
    assert 500e6 < size < MOST - MOST_OF_THE_REST


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver here")
def test_installed_with_these_alone_the_plugin_is_found_and_says_that_there_is_no_driver(tmp_path):
    installed = ["cmake", "--install", BUILD, "--prefix", tmp_path, "--strip", "--component", "cuda"]
    subprocess.run(installed, capture_output=True, check=True)
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["libserin_cuda.so"]
    for library in listed():
        (tmp_path / "lib" / library).symlink_to(path_of(library))
    (tmp_path / "bin").mkdir()
    shutil.copy(SERIN, tmp_path / "bin/serin")
    model = ROOT / "models/digits/1/model.onnx"
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    command = [tmp_path / "bin/serin", "bench", model, "--device", "cuda"]
    without_driver = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert without_driver.returncode == 2 and "no driver: libcuda.so.1" in without_driver.stderr
    opened = subprocess.run([*command, "--cuda-plugin", tmp_path / "lib/libserin_cuda.so"], capture_output=True, text=True, check=False, env=environment)
    assert opened.returncode == 2 and "there is no NVIDIA driver; this build needs CUDA 13.0" in opened.stderr
