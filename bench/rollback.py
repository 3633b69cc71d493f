"""How soon a bad canary is out: Serin beside HAProxy, and beside the rules of Envoy, Argo Rollouts and Flagger. See bench/rollback --help."""

import collections
import concurrent.futures
import multiprocessing
import random

import rollback_runs as runs
import table
from analysis import Argo, Envoy, Flagger, Prometheus, longer_tape

EPILOGUE = f"""
Two versions of a service: 95 % of the requests go to stable, 5 % to a canary with one fault. Its part names the fault:
  errors   half of its answers fail, or all
  cut-off  a tenth of its answers end after fewer bytes than their Content-Length, or all
  slow     it takes 10 or 2 times as long as stable's 20 ms; or 3 % of its answers take longer, so that only p99 is 3 times as large
  wrong    2 % or 20 % of its labels are wrong, with the status 200
  class    it fails for the requests of one country, 3 % of all; 5 % of the others fail on both versions. Serin is told guard.slices
  several  it fails for half, and two canaries that are well run at the same time, each with 5 % (`rollouts: 3`)
  leak     its memory grows by 10 % a minute, says its /metrics. The peers look at requests only. Serin has 10 minutes
  healthy  none: it should stay. Serin has 20 seconds, the rules have an hour

The requests are due at Poisson times: {runs.RATE} a second for Serin. HAProxy gets {runs.PEER_RATE} a second, and its seconds are printed as at {runs.RATE}.
Counted until the canary gets no more requests: its answers, the seconds, and the bad answers that clients get. A run in which that never happens counts
as "never", and its bad answers are those of an hour at the same rate. The second figure of each cell is the worst of all runs.

HAProxy three times: weights alone, `observe layer7` (10 errors in a row take the server out), and `retry-on all-retryable-errors` with redispatch, which
hides errors and takes nothing out. Its rules see statuses only, so only `observe` is shown where every status is 200.

The other rows are rules, not programs (bench/analysis.py): what the documentation of Envoy, Argo Rollouts and Flagger says, applied to an hour of answers.
The hour is drawn, with repetition, from the answers that HAProxy's clients got from the canary in one run, at {runs.RATE * runs.CANARY_PERCENT / 100:g} a second. Prometheus scrapes every 15 s.
  Envoy's outlier detection           consecutive_5xx 5, interval 10 s; the first ejection. Success rates need five hosts; here are two
  Argo's analysis                     success rate >= 95 %, every 5 min, irate over 5 min, failureLimit 3: the documentation's example
  Argo's analysis, strict             success rate >= 99 % and p99 <= twice stable's, every min, over 1 min, failureLimit 0
  Flagger's analysis                  success rate >= 99 % over 1 min, p99 <= 500 ms over 30 s, every min, threshold 5: the documentation's example
  Flagger's analysis, strict          the same with p99 <= twice stable's, and threshold 1
The note says in how many runs a rule takes out stable's own answers, too: then its limit does not fit this service.
"""

RULES = ("Envoy's outlier detection", "Argo's analysis", "Argo's analysis, strict", "Flagger's analysis", "Flagger's analysis, strict")
HOUR = 3600
CANARY_RATE = runs.RATE * runs.CANARY_PERCENT / 100


def flags():
    parser = table.parser_for("rollback", "How soon a bad canary is out, and what it costs until then: Serin and its peers.", EPILOGUE)
    parser.add_argument("--requests", type=int, default=4000, help="of one run of HAProxy (4000)")
    parser.add_argument("--runs", type=int, default=20, help="repetitions of each row (20)")
    parser.add_argument("--parallel", type=int, default=3, help="runs side by side (3)")
    return table.parse_with_parts(parser, runs.CASES)


def proxies_of(case):
    errors = case.faults.error_rate or case.faults.truncated
    return list(runs.HAPROXIES) if errors else ["HAProxy observe"]


def serins_of(case):
    return list(runs.SERINS)[: 2 if len(proxies_of(case)) > 1 else 1]


def contenders(case):
    return [*serins_of(case), *proxies_of(case), *RULES]


def measure(case, name, requests):
    """{contender: its outcome}: one, or with the rules on the tape of it."""
    if name in runs.SERINS:
        return {name: runs.serin(case, runs.SERINS[name])}
    found, tapes = runs.haproxy(case, name, requests)
    return {name: found, **(by_rules(tapes) if name == proxies_of(case)[0] else {})}


def by_rules(recorded):
    canary, stable = (longer_tape(recorded[version], CANARY_RATE, HOUR) for version in ("2", "1"))
    first_scrape = random.uniform(0, 15)
    seen, control = Prometheus(canary, first_scrape), Prometheus(stable, first_scrape)
    twice = 2 * control.p99(HOUR, HOUR)
    strict = {"Argo's analysis, strict": Argo(0.99, interval=60, window=60, instant=False, p99=twice),
              "Flagger's analysis, strict": Flagger(p99=twice, threshold=1)}
    rules = {"Argo's analysis": Argo(0.95, failure_limit=3), "Flagger's analysis": Flagger(), **strict}
    found = {name: of_rule(canary, rule.out(seen, HOUR), rule.out(control, HOUR)) for name, rule in rules.items()}

    stable_rate = sum(a.status < 500 for a in stable) / len(stable)
    ejections, by_mistake = Envoy().ejections(canary, [stable_rate]), Envoy().ejections(stable, [stable_rate])
    envoy = of_rule(canary, *(times[0] if times else None for times in (ejections, by_mistake)))
    envoy.ejections = len(ejections)
    away = Envoy().away(ejections)
    envoy.bad_in_an_hour = sum(a.bad for a in canary if not any(begin < a.at < end for begin, end in away))
    return {"Envoy's outlier detection": envoy, **found}


def of_rule(tape, at, stable_at):
    until = [answer for answer in tape if at is None or answer.at <= at]
    bad = sum(answer.bad for answer in until)
    return runs.Outcome(at is not None, len(until), at or 0.0, bad, bad_in_an_hour=bad, stable_out=stable_at is not None)


class Figures:
    """Of the runs of one contender: each is (median, worst)."""

    def __init__(self, outcomes):
        self.runs, self.out = len(outcomes), sum(found.out for found in outcomes)
        self.canary = runs.of_many([found.canary if found.out else None for found in outcomes])
        self.seconds = runs.of_many([found.seconds if found.out else None for found in outcomes])
        self.bad = runs.of_many([found.bad if found.out else found.bad_in_an_hour for found in outcomes])
        self.note = "; ".join(self._notes(outcomes))

    def _notes(self, outcomes):
        if mirrored := [found.mirrored for found in outcomes if found.mirrored]:
            yield f"mirrored: {both(runs.of_many(mirrored))}"
        if of_class := [found.of_class for found in outcomes if found.of_class and found.out]:
            yield f"of the class: {both(runs.of_many(of_class))}"
        if causes := collections.Counter(found.cause for found in outcomes if found.cause):
            yield ", ".join(f"{cause} {count}" for cause, count in causes.most_common())
        if good := [found.good_out for found in outcomes if found.good_out is not None]:
            yield f"good canaries taken out: {sum(good)} of {2 * len(good)}"
        if ejections := [found.ejections for found in outcomes if found.ejections]:
            hour = [found.bad_in_an_hour for found in outcomes if found.ejections]
            yield f"back after 30 s: {both(runs.of_many(ejections))} ejections and {both(runs.of_many(hour))} bad answers in an hour"
        if mistakes := sum(found.stable_out for found in outcomes):
            yield f"takes out stable's answers, too: {mistakes} of {self.runs}"


def figure(value):
    if value is None:
        return "never"
    return f"{value:.2f}" if 0 < value < 1 else f"{value:.1f}" if value < 10 and value != int(value) else f"{value:,.0f}"


def both(pair):
    return f"{figure(pair[0])} / {figure(pair[1])}"


def print_row(case, name, found):
    cells = [case.title, name, f"{found.out} of {found.runs}", both(found.canary), both(found.seconds), both(found.bad), found.note]
    print("| " + " | ".join(cells) + " |", flush=True)


def rows(case, figures):
    """For --json: the first contender is Serin, the others are its peers."""
    first, *peers = figures
    for metric, of in (("answers of the canary", lambda f: f.canary), ("seconds", lambda f: f.seconds), ("bad answers to clients", lambda f: f.bad)):
        for which, word in enumerate(("median", "worst")):
            yield table.Row(f"canary {case.title}", f"{metric}, {word}", of(figures[first])[which], {peer: of(figures[peer])[which] for peer in peers})


def main():
    options = flags()
    print(f"{options.runs} runs each; median / worst; {table.machine()}\n")
    print("| the canary | contender | out | answers of the canary | seconds | bad answers to clients | |\n|" + " --- |" * 7, flush=True)
    kept, late = [], []
    cases = [case for part in options.parts for case in runs.CASES[part]]
    with concurrent.futures.ProcessPoolExecutor(options.parallel, multiprocessing.get_context("spawn")) as pool:
        waiting = {case.title: [pool.submit(measure, case, name, options.requests) for _ in range(options.runs)
                                for name in (*serins_of(case), *proxies_of(case))] for case in cases}
        for case in cases:
            outcomes = collections.defaultdict(list)
            for future in waiting.pop(case.title):
                for name, found in future.result().items():
                    outcomes[name].append(found)
            figures = {name: Figures(outcomes[name]) for name in contenders(case)}
            for name, found in figures.items():
                print_row(case, name, found)
            kept += rows(case, figures)
            late += [found.after_verdict_ms for name in serins_of(case) for found in outcomes[name] if found.after_verdict_ms is not None]
    if late:
        print(f"\nFrom Serin's verdict to the canary's last request, ms: {both(runs.of_many(late))} of {len(late)} runs")
    if options.json:
        table.save(options.json, table.machine(), kept)


if __name__ == "__main__":
    main()
