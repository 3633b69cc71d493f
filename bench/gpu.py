"""Serin on a GPU beside PyTorch and ONNX Runtime: see bench/gpu --help."""

import argparse
import dataclasses
import fnmatch
import functools
import importlib.util
import itertools
import math
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / "tests/gpu/driver"), str(ROOT / "tests/driver"), str(ROOT / "tests/models")]

import machine  # noqa: E402
import table  # noqa: E402
from ledger import Ledger, digest  # noqa: E402

NEEDED = ("numpy", "onnx", "onnxruntime")
DONE, USAGE, NO_DEVICE, UNFINISHED = 0, 2, 3, 4  # exit codes
FAILED = -math.inf  # the score of a row where Serin has no figure
EPILOGUE = """
What was measured is kept in the results file with its date: a second call measures what is missing, and prints all. A ratio above 1 means
that Serin is ahead of the best peer; in the roofline it is the share of what the card gives at most. The last lines say of each bar whether
it is met, and which rows fail it; what was measured with other programs does not count there.
"""


def flags():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bench/gpu", description=__doc__, epilog=EPILOGUE, formatter_class=raw)
    parser.add_argument("--rows", nargs="+", default=["*"], metavar="PATTERN", help="only these, e.g. 'speed/ResNet-50/*' roofline")
    parser.add_argument("--list", action="store_true", help="name the rows and when they were measured")
    parser.add_argument("--again", action="store_true", help="measure also what is known")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing that may not end within them")
    parser.add_argument("--cache", type=pathlib.Path, metavar="FILE", help="what was compiled and measured: unpacked first, packed after each row")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="rows of speed whose engines start together; each is measured alone")
    parser.add_argument("--peers", nargs="*", metavar="PEER", help="only beside these")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build-device/bench.jsonl")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build-device/gpu", help="folder with serin (tests/gpu/pack)")
    parser.add_argument("--plugin", type=pathlib.Path, help="libserin_cuda.so; default: the one among the programs")
    return parser.parse_args()


def say(text):
    print(text, flush=True)


def matching(keys, patterns):
    return [key for key in keys if any(fnmatch.fnmatchcase(key, each) or fnmatch.fnmatchcase(key.split("/")[0], each) for each in patterns)]


def next_group(keys, most):
    """The first keys whose engines may start together, and the others."""
    speeds = itertools.takewhile(lambda key: key.startswith("speed/"), keys[:most])
    together = max(1, sum(1 for _ in speeds))
    return keys[:together], keys[together:]


def measure(key, how, ledger, before_s=0.0):
    """Keeps the rows, or one without a figure that says why there is none. `before_s`: how long its engines took to start, if they have."""
    import engines

    begin = time.monotonic() - before_s
    try:
        rows = how()
    except (engines.CannotRun, OSError, RuntimeError, ValueError, KeyError) as error:
        rows = [table.Row(key, "", None, {}, note=f"not measured: {error}")]
    ledger.add(key, rows=[dataclasses.asdict(row) for row in rows], seconds=round(time.monotonic() - begin, 1))


def measured(key, ledger):
    """With these programs; what could not be measured is tried again."""
    return ledger.has(key) and all(row["serin"] is not None for row in ledger.known[key]["rows"])


def known_rows(keys, ledger):
    """Rows in the order of the keys, each with its date."""
    for key in keys:
        if key in ledger.known:
            record = ledger.known[key]
            dated = record["date"] if ledger.has(key) else f"{record['date']}, other programs"
            for fields in record["rows"]:
                row = table.Row(**fields)
                row.note = "; ".join(filter(None, [row.note, dated]))
                yield row


def print_tables(keys, sections, ledger, heading):
    """Everything known of the keys; the rows."""
    everything = []
    for section, peers in sections.items():
        rows = list(known_rows([key for key in keys if key.split("/")[0] == section], ledger))
        if rows:
            say(f"\n## {section}\n")
            out = table.Table(peers, heading)
            for row in rows:
                out.add(row)
            everything += rows
    return everything


def score(bar, key, ledger):
    """Of what was measured with these programs; None where it was not."""
    if not ledger.has(key):
        return None
    (row,) = (table.Row(**fields) for fields in ledger.known[key]["rows"])
    return FAILED if row.serin is None else bar.score(row)


def verdict(bar, keys, ledger):
    """Whether the bar is met, by which number, and the rows that fail it."""
    keys = [key for key in keys if fnmatch.fnmatchcase(key, bar.rows)]
    scores = {key: found for key in keys if (found := score(bar, key, ledger)) is not None}
    figures = [found for found in scores.values() if found != FAILED]
    number = (statistics.geometric_mean if bar.mean else min)(figures) if figures else None
    failing = [key for key, found in scores.items() if found == FAILED or (found < bar.least and not bar.mean)]
    whole = 0 < len(scores) == len(keys)
    if failing or (whole and number < bar.least):
        said = "NOT met"
    else:
        said = "met" if whole else "not measured"
    figure, names = "" if number is None else f" {number:.3f}", ", ".join(f"{key} failed" if scores[key] == FAILED else key for key in failing)
    return f"{said}{figure} ({len(scores)} of {len(keys)} rows)" + (f": {names}" if names else "")


def print_bars(bars, keys, ledger):
    """Of all rows, whichever were asked for now."""
    say("\n## bars\n")
    for bar in bars:
        say(f"- {bar.what}, at least {bar.least}: {verdict(bar, keys, ledger)}")


def main():
    options = flags()
    end = time.monotonic() + 60 * options.minutes
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        say(f"bench/gpu: this python3 lacks {', '.join(missing)}; PYTHON names another")
        return USAGE
    try:
        programs = machine.programs(options.programs)
        serin = machine.find(programs, "serin")
        plugin = options.plugin.resolve() if options.plugin else machine.find(programs, "libserin_cuda.so")
    except FileNotFoundError as error:
        say(f"bench/gpu: {error}")
        return USAGE
    os.environ.update(machine.environment(ROOT), SERIN=str(serin))  # before engines reads it
    cache = options.results.resolve().parent / "bench-cache"
    device_flags = ("--device", "cuda", "--cuda-plugin", str(plugin), *(machine.unpack_cache(options.cache, cache) if options.cache else ()))
    device, why = machine.opened(serin, ROOT / "models/digits/1/model.onnx", device_flags)
    if not device and not options.list:
        say(f"bench/gpu: nothing is measured, there is no device to measure on: {why}")
        return NO_DEVICE

    import gpu_rows

    rows = gpu_rows.all_rows()
    peers = gpu_rows.PEERS if options.peers is None else options.peers
    if unknown := set(peers) - set(gpu_rows.PEERS):
        say(f"bench/gpu: no peer is called {', '.join(sorted(unknown))}; there are {', '.join(gpu_rows.PEERS)}")
        return USAGE
    keys = matching(rows, options.rows)
    if not keys:
        say(f"bench/gpu: no row matches {' '.join(options.rows)}; --list names them")
        return USAGE
    ledger = Ledger(options.results, digest([serin, plugin] if device else [serin]))
    if options.list:
        for key in keys:
            say(f"{ledger.known[key]['date'] if key in ledger.known else 'to be done':12}{key}")
        return DONE
    setting = gpu_rows.Setting(serin, device_flags, options.seconds, options.rounds, tuple(peers))
    todo = [key for key in sorted(keys, key=gpu_rows.turn) if options.again or not measured(key, ledger)]
    while todo:
        group, todo = next_group(todo, options.at_once)
        if time.monotonic() + sum(ledger.seconds(key, gpu_rows.usual_seconds(key)) for key in group) >= end:
            continue
        say(f"{' '.join(group)} ...")
        begin = time.monotonic()
        ahead = gpu_rows.started({key: rows[key] for key in group}, setting) if len(group) > 1 else {}
        each = (time.monotonic() - begin) / len(group)
        for key in group:
            how = functools.partial(rows[key], setting, **({"starters": ahead[key]} if ahead else {}))
            measure(key, how, ledger, each)
            machine.pack_cache(options.cache, cache)

    heading = f"{machine.describe()}; {device}; {table.machine()}"
    printed = print_tables(keys, gpu_rows.SECTIONS, ledger, heading)
    print_bars(gpu_rows.BARS, rows, ledger)
    if options.json:
        table.save(options.json, heading, printed)
    return DONE if all(measured(key, ledger) for key in keys) else UNFINISHED


if __name__ == "__main__":
    sys.exit(main())
