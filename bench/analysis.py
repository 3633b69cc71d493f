"""The rules by which Argo Rollouts, Flagger and Envoy take a canary out, applied to a tape of answers: no cluster, no controller, no Prometheus.

A tape is a list of Answer in the order of time, of one version. A rule gives the time at which it takes that version out, or None if it never does.
Each rule is the documented one; where the documentation leaves something open, the reading that is sooner is taken.

Sources: "Analysis & Progressive Delivery" of Argo Rollouts (its first AnalysisTemplate; limits and their defaults), "Metrics Analysis" and "How it
works" of Flagger (its two built-in metrics, the time until a rollback), "Outlier detection" of Envoy (its defaults), "Query functions" of Prometheus.
"""

import bisect
import dataclasses
import itertools
import math
import random

SCRAPE = 15.0  # seconds between two scrapes: a usual setting; Prometheus' own default of a minute is slower
# Upper bounds of the histogram that Istio's proxies export, in seconds: both controllers ask it in their documentation.
BUCKETS = [bound / 1000 for bound in (0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000)] + [math.inf]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    at: float  # seconds since the canary got its first weight
    status: int  # of its head: an answer that is cut off later was counted by it
    cut_off: bool
    seconds: float  # until it was whole, or ended
    bad: bool = False  # for the client, and because of the version: no rule sees that


class Prometheus:
    """What it knows of a tape's answers: counters and a histogram, scraped every 15 s."""

    def __init__(self, tape, first_scrape=0.0):
        """A series begins with the first scrape after the first answer; its value then is where increases are counted from."""
        self.scrapes, self.series = [], []  # times; [answers, those without 5xx, answers by bucket]
        total, good, buckets, scrape = 0, 0, [0] * len(BUCKETS), first_scrape
        for answer in itertools.chain(tape, [None]):
            while answer is None or answer.at > scrape:
                if total:
                    self.scrapes.append(scrape)
                    self.series.append((total, good, tuple(buckets)))
                scrape += SCRAPE
                if answer is None:
                    return
            total += 1
            good += answer.status < 500
            buckets[bisect.bisect_left(BUCKETS, answer.seconds)] += 1

    def _increases(self, now, window, instant=False):
        """Of all three over the scrapes in (now - window, now], nothing with fewer than two. rate() extrapolates all series alike, so quotients need no more."""
        last = bisect.bisect_right(self.scrapes, now) - 1
        first = max(bisect.bisect_right(self.scrapes, now - window), last - 1 if instant else 0)
        if last - first < 1:
            return None
        old, new = self.series[first], self.series[last]
        return new[0] - old[0], new[1] - old[1], [b - a for a, b in zip(old[2], new[2])]

    def success_rate(self, now, window, instant=False):
        """sum(rate(good[window])) / sum(rate(all[window])): None without data, NaN without an answer. `instant`: irate, of the last two scrapes."""
        found = self._increases(now, window, instant)
        return None if found is None else found[1] / found[0] if found[0] else math.nan

    def p99(self, now, window):
        """histogram_quantile(0.99, ...) in seconds: linear within its bucket, as Prometheus does it."""
        found = self._increases(now, window)
        return None if found is None else quantile(0.99, found[2])


def quantile(share, buckets):
    if not sum(buckets):
        return math.nan
    rank, below = share * sum(buckets), 0
    for bucket, count in enumerate(buckets):
        if count and below + count >= rank:
            if BUCKETS[bucket] == math.inf:
                return BUCKETS[bucket - 1]
            low = BUCKETS[bucket - 1] if bucket else 0.0
            return low + (BUCKETS[bucket] - low) * (rank - below) / count
        below += count
    return BUCKETS[-2]


# --- Argo Rollouts ---


@dataclasses.dataclass(frozen=True)
class Argo:
    """A background analysis: each metric is measured at once and then every interval, for as long as the rollout lasts."""

    success: float  # successCondition: result[0] >= success
    interval: float = 300.0
    window: float = 300.0
    instant: bool = True  # irate
    failure_limit: int = 0
    p99: float = math.inf  # a second metric, with the same interval and window: result[0] <= p99 seconds

    ERROR_RETRY, ERROR_LIMIT, INCONCLUSIVE_LIMIT = 10.0, 4, 0  # a measurement without data is an error, repeated after 10 s

    def out(self, prometheus, until):
        metrics = [lambda now: meets(prometheus.success_rate(now, self.window, self.instant), least=self.success)]
        if self.p99 < math.inf:
            metrics.append(lambda now: meets(prometheus.p99(now, self.window), most=self.p99))
        ends = [self._end(measure, until) for measure in metrics]
        at, failed = min(ends, key=lambda end: end[0])  # the first metric to end ends the analysis
        return at if failed else None

    def _end(self, measure, until):
        """(when this metric ends the analysis, did it fail?); an inconclusive one pauses the rollout, and the canary keeps its weight."""
        now, failed, inconclusive, errors = 0.0, 0, 0, 0
        while now <= until:
            result = measure(now)
            errors = errors + 1 if result == "error" else 0
            failed += result == "failed"
            inconclusive += result == "inconclusive"
            if failed > self.failure_limit or errors > self.ERROR_LIMIT:
                return now, True
            if inconclusive > self.INCONCLUSIVE_LIMIT:
                return now, False
            now += self.ERROR_RETRY if result == "error" else self.interval
        return math.inf, False


def meets(result, least=-math.inf, most=math.inf):
    if result is None:
        return "error"
    if math.isnan(result):
        return "inconclusive"
    return "successful" if least <= result <= most else "failed"


# --- Flagger ---


@dataclasses.dataclass(frozen=True)
class Flagger:
    """Every interval both metrics are checked; `threshold` failed checks roll back, however many succeeded in between."""

    success: float = 0.99  # request-success-rate: min 99
    p99: float = 0.5  # request-duration: max 500 (ms)
    interval: float = 60.0  # of the analysis, and of request-success-rate
    duration_interval: float = 30.0  # of request-duration
    threshold: int = 5

    def out(self, prometheus, until):
        failed, now = 0, self.interval
        while now <= until:
            checks = (
                meets(prometheus.success_rate(now, self.interval), least=self.success),
                meets(prometheus.p99(now, self.duration_interval), most=self.p99),
            )
            failed += any(check != "successful" for check in checks)  # no values: the check failed, too
            if failed >= self.threshold:
                return now
            now += self.interval
        return None


# --- Envoy ---


@dataclasses.dataclass(frozen=True)
class Envoy:
    """Outlier detection. consecutive_5xx ejects at once; the ejected host is back after base_ejection_time, longer each time."""

    consecutive: int = 5
    interval: float = 10.0
    base_ejection: float = 30.0
    max_ejection: float = 300.0
    minimum_hosts: int = 5  # of success_rate_minimum_hosts
    request_volume: int = 100  # of a host in an interval, below which its success rate does not count
    stdev_factor: float = 1.9

    def ejections(self, tape, others=()):
        """The times at which the version's only host is ejected. `others`: success rates of the cluster's other hosts."""
        found, back, in_a_row, good, total, end = [], 0.0, 0, 0, 0, self.interval
        for answer in tape:
            if answer.at < back:
                continue
            while answer.at >= end:
                rates = [*others, good / total if total >= self.request_volume else None]
                if self.outliers(rates)[-1]:
                    found.append(end)
                    back = end + min(self.base_ejection * len(found), self.max_ejection)
                good, total, end = 0, 0, end + self.interval
            if answer.at < back:
                continue
            bad = answer.status >= 500 or answer.cut_off  # the sooner reading: the head of a cut-off answer ends no series here
            good, total, in_a_row = good + (not bad), total + 1, in_a_row + 1 if bad else 0
            if in_a_row >= self.consecutive:
                found.append(answer.at)
                back, in_a_row = answer.at + min(self.base_ejection * len(found), self.max_ejection), 0
        return found

    def away(self, ejections):
        """[(from, until)]: when the host gets nothing."""
        return [(at, at + min(self.base_ejection * nth, self.max_ejection)) for nth, at in enumerate(ejections, 1)]

    def outliers(self, rates):
        """Whose success rate is below the mean of all by 1.9 standard deviations; None: too few requests. One bad host of n is sqrt(n - 1) deviations away."""
        known = [rate for rate in rates if rate is not None]
        if len(known) < self.minimum_hosts:
            return [False] * len(rates)
        mean = sum(known) / len(known)
        deviation = math.sqrt(sum((rate - mean) ** 2 for rate in known) / len(known))
        return [rate is not None and rate < mean - self.stdev_factor * deviation for rate in rates]


# --- tapes ---


def longer_tape(recorded, rate, seconds, rng=random):
    """A tape of the same version at `rate` answers a second: at Poisson times, each one drawn from the recorded answers, with repetition."""
    tape, now = [], rng.expovariate(rate)
    while now < seconds:
        tape.append(dataclasses.replace(rng.choice(recorded), at=now))
        now += rng.expovariate(rate)
    return tape
