"""tests/run once everything is installed: choose the parts, build what they need, run them, report."""

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from parts import all_parts, select
from process import kill_all
from results import FAILED, PASSED, SKIPPED, Case

AT_ONCE = 2  # C++ test programs; everything else runs alone


def main():
    parser = argparse.ArgumentParser(prog="tests/run")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    parts = all_parts()
    if arguments.list:
        for part in parts:
            print(f"{part.kind:8}{part.title}")
        return 0
    try:
        chosen = select(parts, arguments.names)
    except LookupError as error:
        print(f"tests/run: {error.args[0]}", file=sys.stderr)
        return 2
    if not arguments.names and not arguments.long:
        chosen = [part for part in chosen if not part.sanitized]
    if arguments.long:
        os.environ["SERIN_LONG"] = "1"
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, stop)
    return report(run_all(chosen))


def stop(number, _):
    kill_all()
    os._exit(128 + number)  # at once: the pool's threads may still wait for what was just killed


def run_all(parts):
    from runners import build, build_cuda, build_sanitized, run_part, summary  # reads SERIN_LONG

    everything = []
    targets = sorted({target for part in parts for target in part.targets})
    if targets and timed_build("build", lambda: build(targets)):
        return [Case("build", "build", FAILED)]
    if any(part.needs_cuda for part in parts) and timed_build("cuda", build_cuda):
        everything.append(Case("cuda", "build", FAILED))
        parts = [part for part in parts if not part.needs_cuda]
    for kind in sorted({part.kind for part in parts if part.sanitized}):
        programs = [part.program for part in parts if part.kind == kind]
        if timed_build(kind, lambda: build_sanitized(kind, programs)):
            everything.append(Case(kind, "build", FAILED))
            parts = [part for part in parts if part.kind != kind]

    def timed(part):
        started = time.monotonic()
        cases = run_part(part)
        seconds = time.monotonic() - started
        if part.kind == "checks":
            cases[0].seconds = seconds
        return part, cases, seconds, summary(part)

    together = [part for part in parts if part.kind == "cpp"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for future in as_completed([pool.submit(timed, part) for part in together]):
            everything += show(*future.result())
    for part in parts:
        if part not in together:
            everything += show(*timed(part))
    return everything


def timed_build(name, run):
    """None, or why it failed, which has been shown then."""
    say(f"{name:8} building ...")
    started = time.monotonic()
    problem = run()
    say(problem or f"{name:8} built in {time.monotonic() - started:.1f} s")
    return problem


def show(part, cases, seconds, summary):
    say(f"{part.kind:8} {part.title:16} {counts(cases):40} {seconds:7.1f} s")
    for line in summary:
        say(f"         {line}")
    for case in cases:
        if case.status == FAILED:
            say(f"\nFAILED {part.name}: {case.name}\n{case.detail}\n")
    for reason in sorted({case.detail for case in cases if case.status == SKIPPED}):
        number = sum(case.status == SKIPPED and case.detail == reason for case in cases)
        say(f"         skipped {number}: {reason}")
    return cases


def counts(cases):
    return ", ".join(f"{sum(case.status == status for case in cases)} {status}" for status in (PASSED, FAILED, SKIPPED))


def report(cases):
    failed = [case for case in cases if case.status == FAILED]
    say("\nslowest:")
    for case in sorted(cases, key=lambda case: -case.seconds)[:5]:
        say(f"{case.seconds:9.2f} s  {case.part}: {case.name}")
    if failed:
        say("failed:")
    for case in failed:
        say(f"  {case.part}: {case.name}")
    say(counts(cases))
    return 0 if not failed and any(case.status == PASSED for case in cases) else 1


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
