"""What there is to run, cut into units that take about a minute or less on a device.

A unit answers its cases and {what was counted: how many}.
"""

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import gtests
import machine
from results import SKIPPED, Case

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("kernels", "onnx", "models", "serve", "faults", "memcheck", "racecheck")
ALONE = ("serve", "faults")  # they load the device, take its memory, or compare what a process holds
UNIT_LIMIT_S = 540
USUAL_S = 60  # of a unit
TESTS_OF_A_UNIT = {"kernels": 8, "onnx": 100, "memcheck": 4, "racecheck": 4}


@dataclass
class Setting:
    """The programs, where they may work, and what they must be run with."""

    serin: Path
    gpu_test: Path
    conformance_test: Path
    plugin: Path
    fault: Path  # a library that breaks a device when it is told to
    suite: Path  # the ONNX backend tests: their folder, or the Python environment with the onnx wheel
    folder: Path
    requests: int
    environment: dict
    cache: tuple = ()  # serin's flags for a folder of its own

    @property
    def device_flags(self):
        return ("--device", "cuda", "--cuda-plugin", str(self.plugin), *self.cache)

    def log(self, unit):
        return self.folder / "logs" / f"{unit.replace('/', '-')}.log"


def units(part, setting):
    """{unit: run}, in the order in which they are to be run."""
    if part == "kernels":
        return gtest_units(setting, part, [setting.gpu_test])
    if part == "onnx":
        expected = ROOT / "tests/conformance/expected.txt"
        return gtest_units(setting, part, [setting.conformance_test, "--suite", setting.suite, "--expected", expected])
    if part in ("models", "serve", "faults"):
        return model_units(part, setting)
    sanitizer = machine.sanitizer()
    if not sanitizer:
        return skipped(part, "there is no compute-sanitizer on this machine")
    if reason := machine.why_not_sanitized(sanitizer, setting.gpu_test, {**setting.environment, "SERIN_CUDA_PLUGIN": str(setting.plugin)}):
        return skipped(part, reason)
    return gtest_units(setting, part, [setting.gpu_test], sanitized(sanitizer, part))


def sanitized(sanitizer, tool):
    """Our kernels alone: NVIDIA's are many times slower under it, and what their libraries ask of the driver in vain is no error."""
    return [sanitizer, "--tool", tool, "--error-exitcode", "9", "--kernel-regex", "kns=serin", "--report-api-errors", "no"]


def skipped(part, reason):
    return {f"{part}/all": lambda: ([Case("", part, SKIPPED, detail=reason)], {})}


def gtest_units(setting, part, command, under=()):
    environment = {**setting.environment, "SERIN_CUDA_PLUGIN": str(setting.plugin)}
    names, size = gtests.names_of(command, environment), TESTS_OF_A_UNIT[part]

    def run(unit, chosen):
        return gtests.run_tests([*under, *command], chosen, setting.log(unit), UNIT_LIMIT_S, ROOT, environment), {}

    found = {}
    for i in range(0, len(names), size):
        unit = f"{part}/{i // size + 1}"
        found[unit] = functools.partial(run, unit, names[i : i + size])
    return found


def model_units(part, setting):
    missing = [name for name in ("numpy", "onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        return skipped(part, f"this python3 lacks {', '.join(missing)}")
    import faults  # they need them
    import whole_models

    return {"models": whole_models.units, "serve": whole_models.serving_units, "faults": faults.units}[part](setting)
