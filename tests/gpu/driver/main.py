"""tests/gpu/run: chooses units of work, runs what is not known yet, keeps what comes out, prints the table."""

import argparse
import concurrent.futures
import fnmatch
import multiprocessing
import os
import signal
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[1:1] = [str(ROOT / "tests/driver"), str(ROOT / "tests/models")]

import machine  # noqa: E402
import parts  # noqa: E402
from ledger import Ledger, digest  # noqa: E402
from process import kill_all  # noqa: E402
from report import counted, table  # noqa: E402
from results import FAILED, Case, clip  # noqa: E402

PASSED, WRONG, USAGE, NO_DEVICE, UNFINISHED = 0, 1, 2, 3, 4  # exit codes
work = {}, {}, 0.0  # every unit, its usual seconds, the end: processes of run_all are told names


def flags():
    parser = argparse.ArgumentParser(prog="tests/gpu/run", description=__doc__)
    known = ", ".join(parts.PARTS)
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME", help=f"parts ({known}) or units of them, e.g. 'models/bert*'")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing that may not end within them; called again, it goes on")
    parser.add_argument("--again", action="store_true", help="run also what is known already")
    parser.add_argument("--jobs", type=int, default=1, help="units at a time; serve and faults need the device for themselves")
    parser.add_argument("--requests", type=int, default=10000, help="through serin serve")
    parser.add_argument("--programs", type=Path, default=ROOT / "build-device/gpu", help="serin and the test programs (tests/gpu/pack)")
    parser.add_argument("--plugin", type=Path, help="libserin_cuda.so; default: the one among the programs")
    parser.add_argument("--results", type=Path, default=ROOT / "build-device/results", help="what was found out: one file")
    parser.add_argument("--work", type=Path, default=ROOT / "build-device/work", help="logs and what else comes up")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="what was measured of kernels: unpacked first, packed at the end")
    return parser.parse_args()


def setting_of(options):
    programs = machine.programs(options.programs)
    return parts.Setting(
        serin=machine.find(programs, "serin"),
        gpu_test=machine.find(programs, "gpu_test"),
        conformance_test=machine.find(programs, "conformance_test"),
        plugin=options.plugin.resolve() if options.plugin else machine.find(programs, "libserin_cuda.so"),
        fault=machine.find(programs, "libserin_fault_on_demand.so"),
        suite=machine.find(programs, "suite", ROOT / ".deps/venv"),
        folder=options.work.resolve(),
        requests=options.requests,
        environment=machine.environment(ROOT),
        cache=machine.unpack_cache(options.cache, options.work.resolve() / "cache") if options.cache else (),
    )


def run_unit(run):
    """What went wrong around the tests is a failure, too."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001: libraries raise what they like, and a lent machine must not idle for it
        return [Case("", type(error).__name__, FAILED, detail=f"{error}\n{clip(traceback.format_exc())}")], {}


def say(text):
    print(text, flush=True)


def main():
    options = flags()
    end = time.monotonic() + 60 * options.minutes
    try:
        setting = setting_of(options)
    except FileNotFoundError as error:
        say(f"tests/gpu/run: {error}")
        return USAGE
    os.environ.update(setting.environment)
    device, why = machine.opened(setting.serin, ROOT / "models/digits/1/model.onnx", setting.device_flags)
    if not device:
        say(f"tests/gpu/run: all skipped, there is no device to run on: {why}")
        return NO_DEVICE

    (setting.folder / "logs").mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.results / "results.jsonl", digest([setting.serin, setting.plugin, setting.gpu_test, setting.conformance_test]))
    heading = f"{machine.describe()}; {device}; programs {ledger.of}"
    say(f"{heading}; results in {options.results}, logs in {setting.folder}")
    chosen = choose(options.names, setting)
    if not chosen:
        say(f"tests/gpu/run: nothing is named {', '.join(options.names)}; parts: {', '.join(parts.PARTS)}")
        return USAGE
    wanted = {unit: run for units in chosen.values() for unit, run in units.items() if options.again or not ledger.has(unit)}
    for together in run_all(wanted, ledger, end, options.jobs):
        keep(together, ledger)
        machine.pack_cache(options.cache, setting.folder / "cache")

    say(f"\n{heading}\n\n{table(chosen, ledger)}\n")
    units = [unit for units in chosen.values() for unit in units]
    failed = [f"{unit}: {name}" for unit in units if ledger.has(unit) for name in ledger.known[unit]["failed"]]
    say("\n".join(["failed:", *failed]) if failed else "nothing failed")
    return WRONG if failed else PASSED if all(ledger.has(unit) for unit in units) else UNFINISHED


def choose(names, setting):
    """{part: {unit: run}} of what the names ask for."""
    chosen = {}
    for part in parts.PARTS:
        if any(fnmatch.fnmatchcase(part, name.split("/")[0]) for name in names):  # else its units need not be found
            units = parts.units(part, setting)
            chosen[part] = {unit: run for unit, run in units.items() if matches(names, part, unit)}
    return {part: units for part, units in chosen.items() if units}


def matches(names, *either):
    return any(fnmatch.fnmatchcase(each, name) for name in names for each in either)


def run_all(wanted, ledger, end, jobs):
    """Yields [(unit, cases, notes, seconds)] as they end."""
    usual = {unit: ledger.seconds(unit, parts.USUAL_S) for unit in wanted}
    beside = [unit for unit in wanted if jobs > 1 and not unit.startswith(parts.ALONE)]
    if beside:
        # Processes of this one: Python's own work, the drawing of weights and NumPy's, would wait for itself in threads.
        with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), adopt, (wanted, usual, end)) as pool:
            for ended in concurrent.futures.as_completed([pool.submit(run_in_time, group) for group in groups(beside)]):
                yield ended.result()
    adopt(wanted, usual, end)
    for unit in wanted:
        if unit not in beside:
            yield run_in_time([unit])


def groups(units):
    """Those of one model together: they share its files."""
    found = {}
    for unit in units:
        found.setdefault(unit.split("-")[0], []).append(unit)
    return list(found.values())


def adopt(wanted, usual, end):
    global work
    work = wanted, usual, end


def run_in_time(units):
    wanted, usual, end = work
    results = []
    for unit in units:
        started = time.monotonic()
        if started + usual[unit] < end:
            results.append((unit, *run_unit(wanted[unit]), round(time.monotonic() - started, 1)))
    return results


def keep(results, ledger):
    for unit, cases, notes, seconds in results:
        record = ledger.add(unit, seconds=seconds, notes=notes, **counted(cases))
        skipped = sum(record["skipped"].values())
        say(f"{unit:28} {record['passed']} passed, {len(record['failed'])} failed, {skipped} skipped {record['seconds']:7.1f} s")
        for name, detail in record["failed"].items():
            say(f"\nFAILED {unit}: {name}\n{detail}\n")


def stop(number, _):
    for child in multiprocessing.active_children():
        child.terminate()  # it does the same
    kill_all()
    os._exit(128 + number)


if __name__ == "__main__":
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, stop)
    sys.exit(main())
