"""tests/run once everything is installed: choose the parts, build what they need, run them side by side, report."""

import argparse
import os
import signal
import sys
import time

import affected
from parts import COSTLY, WAIT_FOR_THE_BUILD, all_parts, select, without_costly, without_twins
from process import kill_all
from results import FAILED, PASSED, SKIPPED, Case
from schedule import Job, cores, run_jobs

RUN_AGAIN_AT_MOST = 20  # failed tests; where more fail, it is not the machine


def main():
    parser = argparse.ArgumentParser(prog="tests/run")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--affected", nargs="?", const="", metavar="REF")
    arguments = parser.parse_args()
    parts = all_parts()
    if arguments.list:
        for part in parts:
            print(f"{part.kind:8}{part.title}")
        return 0
    try:
        chosen = select(parts, arguments.names)
        if arguments.affected is not None:
            chosen = affected.narrow(chosen, arguments.affected)
    except LookupError as error:
        print(f"tests/run: {error.args[0]}", file=sys.stderr)
        return 2
    if not arguments.names and not arguments.long:
        chosen = [part for part in chosen if not part.sanitized]
    for name in COSTLY if not arguments.names and not arguments.long else ():
        kept = chosen if affected.touches(name, arguments.affected or "") else without_costly(chosen, name)
        if kept != chosen:
            say(f"{name} are left out: nothing that they depend on has changed")
        chosen = kept
    if arguments.long:
        os.environ["SERIN_LONG"] = "1"
    else:
        chosen = without_twins(chosen)  # after the above: without sanitized copies the ordinary program is asked
    if arguments.affected is not None:
        say("affected: " + (" ".join(dict.fromkeys(part.name for part in chosen)) or "nothing"))
        if not chosen:
            say(counts([]))
            return 0
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, stop)
    return report(run_all(chosen, everything=not arguments.names and arguments.affected is None))


def stop(number, _):
    kill_all()
    os._exit(128 + number)  # at once: threads may still wait for what was just killed


class Build:
    """One of the builds, as a job."""

    def __init__(self, name, run):
        self.name, self._run = name, run
        self.problem, self.seconds, self.cpu_s = None, 0.0, 0.0

    def __call__(self):
        say(f"{self.name:8} building ...")
        started = time.monotonic()
        self.problem, self.cpu_s = self._run()
        self.seconds = time.monotonic() - started
        return self


def plan(parts, everything=False):
    """The jobs, in the order in which they should start: first the builds, that of the program before the others, then the parts, the longest first.
    `everything`: all that there is to compile, tested or not."""
    from runners import build, build_control_plane, build_cuda, build_sanitized, run_part  # reads SERIN_LONG

    compiled = {part.program for part in parts if part.kind == "cpp"}
    # Of build/: first the program, and its sanitized copy, so that tests of servers, which wait for most of their time, run beside all the rest.
    needed = {"program": set(), "front": set(), "tests": {"all"} if everything else set()}

    def build_of(target):
        return "front" if target.endswith("_sanitized") else "tests" if target.endswith("_test") or target in compiled else "program"

    for part in parts:
        for target in part.targets:
            needed[build_of(target)].add(target)  # also beside `all`, which has not the emulated device
    builds = {name: lambda targets=sorted(targets): build(targets) for name, targets in needed.items() if targets}
    if any(part.needs_cuda for part in parts):
        builds["cuda"] = build_cuda
    for kind in sorted({part.kind for part in parts if part.sanitized}):
        programs = [part.program for part in parts if part.kind == kind]
        builds[kind] = lambda kind=kind, programs=programs: build_sanitized(kind, programs)
    long = os.environ.get("SERIN_LONG") == "1"
    if long and any(part.needs_control_plane for part in parts):
        builds["kubernetes"] = build_control_plane
    first = {"program"} & builds.keys()
    jobs = [Job(Build(name, run), weight=0, lane="build", needs=first - {name}, builds=name) for name, run in builds.items()]

    def needs(part):
        names = {build_of(target) for target in part.targets}
        if part.needs_cuda:
            names.add("cuda")
        if part.sanitized:
            names.add(part.kind)
        if part.needs_control_plane and long:
            names.add("kubernetes")
        if part.name in WAIT_FOR_THE_BUILD:
            names |= first
        return names

    for part in sorted(parts, key=lambda part: part.rank):
        lane = "servers" if part.of_servers else ""
        job = Job(lambda part=part: (part, run_part(part)), weight=part.weight(cores()), lane=lane, needs=needs(part))
        jobs.append(job)
    return jobs


def run_all(parts, everything=False):
    cases, noise, started, cpu_s = [], [], time.monotonic(), 0.0
    jobs = plan(parts, everything)
    left = {id(job): job for job in jobs}

    def ended(job, result):
        nonlocal cpu_s
        del left[id(job)]
        if isinstance(result, Build):
            cpu_s += result.cpu_s
            say(result.problem or f"{result.name:8} built in {result.seconds:.1f} s, {result.cpu_s:.1f} s of CPU")
            if result.problem:
                cases.append(Case(result.name, "build", FAILED))
            return result.problem is None
        part, outcome = result
        cpu_s += outcome.cpu_s
        show(part, outcome)
        cases.extend(outcome.cases)
        if job.beside or part.of_servers:
            noise.extend((part, outcome, case) for case in outcome.cases if may_be_noise(case, outcome.cases))
        return True

    run_jobs(jobs, cores(), ended)
    if left:
        missing = {name for job in left.values() for name in job.needs}
        say(f"{len(left)} jobs did not run: they need a build that failed ({', '.join(sorted(missing))})")
    run_again(noise, cases)
    say(f"\n{time.monotonic() - started:.0f} s, {cpu_s:.0f} s of CPU, {cores()} cores")
    return cases


def may_be_noise(case, cases):
    """Whether the machine may be to blame: no load on it makes a program crash."""
    twins = [other for other in cases if other.node == case.node]  # a test and what it leaves behind are two cases
    return case.status == FAILED and case.node and not any(other.crashed for other in twins)


def run_again(noise, cases):
    """Tests that failed beside others, once more, alone. These machines are shared: what passes then has passed."""
    from runners import run_alone

    if not 0 < len(noise) <= RUN_AGAIN_AT_MOST or sum(case.status == FAILED for case in cases) > RUN_AGAIN_AT_MOST:
        return
    say("")
    for part in {id(part): part for part, _, _ in noise}.values():
        failed = [(outcome, case) for other, outcome, case in noise if other is part]
        again = run_alone(part, [case for _, case in failed])
        for outcome, case in failed:
            new = [other for other in again if other.node == case.node]
            if new and all(other.status == PASSED for other in new):
                case.status, case.detail = PASSED, ""
                say(f"{part.title}: {case.name} failed beside other tests and passed alone ({sum(other.seconds for other in new):.1f} s); first output: {outcome.log}")
            else:
                say(f"{part.title}: {case.name} failed alone, too")


def show(part, outcome):
    cases = outcome.cases
    say(f"{part.kind:8} {part.title:18} {counts(cases):40} {outcome.seconds:7.1f} s {outcome.cpu_s:7.1f} s of CPU")
    for line in outcome.notes:
        say(f"         {line}")
    for case in cases:
        if case.status == FAILED:
            say(f"\nFAILED {part.name}: {case.name}\n{case.detail}\n")
    for reason in sorted({case.detail for case in cases if case.status == SKIPPED}):
        number = sum(case.status == SKIPPED and case.detail == reason for case in cases)
        say(f"         skipped {number}: {reason}")


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
