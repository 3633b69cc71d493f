"""The router beside HAProxy and nginx, in one run: see bench/route --help."""

import contextlib
import datetime
import os
import pathlib
import statistics
import subprocess
import tempfile

import proxies
import table

EPILOGUE = """
The proxy has one core to itself, the servers and the load another; all speak over loopback. Serin has a rollout in progress, with 5 % of the
requests on a canary, and judges every answer. In every round each proxy measures once, in turn; the medians over the rounds are divided. A
ratio above 1 means that Serin is ahead of the better peer.

--quick: 3 rounds of one second; under two minutes.
"""

SMALL = 300  # bytes of a request's body: a row of features as JSON
TENSOR = 602_112  # one image of 3x224x224 floats
CONNECTIONS = 64
OTHER = "other Serin"


def flags():
    parser = table.parser_for("route", "Serin's router beside HAProxy and nginx.", EPILOGUE)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--against", type=pathlib.Path, metavar="SERIN", help="another build of the program as the only peer: of the commit before, for example")
    parser.add_argument("--rounds", type=int, help="10; 3 with --quick")
    parser.add_argument("--seconds", type=float, help="of one measurement: 2; 1 with --quick")
    options = table.parse_with_parts(parser, PARTS)
    if options.against:
        options.against = options.against.resolve(strict=True)
    options.rounds = options.rounds or (3 if options.quick else 10)
    options.seconds = options.seconds or (1.0 if options.quick else 2.0)
    return options


class Figures:
    """What one kind of load did to several proxies, measured alternately. Everything by proxy."""

    def __init__(self, traffic, running, options, body, connections=CONNECTIONS, rate=0.0):
        self.samples = {title: [] for title in running}
        for _ in range(options.rounds):
            for title, proxy in running.items():
                before = proxy.cpu_seconds()
                done = traffic.load(proxy.port, connections, options.seconds, body, rate)
                spent = proxy.cpu_seconds() - before
                if done["errors"] or done["broken"]:
                    raise RuntimeError(f"{title}: {done}")
                done["cpu_us"] = spent / done["all"] * 1e6
                done["busy"] = spent / options.seconds
                self.samples[title].append(done)

    def median(self, field):
        return {title: statistics.median(sample[field] for sample in samples) for title, samples in self.samples.items()}

    def busy_note(self):
        idle = [f"{title}'s core only {busy:.0%} busy" for title, busy in self.median("busy").items() if busy < proxies.BUSY]
        return "; ".join(idle)

    def row(self, out, work, metric, field, less_is_better=True, scale=1.0, note=""):
        figures = {title: value * scale for title, value in self.median(field).items()}
        out.add(table.Row(work, metric, figures.pop("Serin"), figures, less_is_better, note))


@contextlib.contextmanager
def with_peers(options, folder, ports, **more):
    with contextlib.ExitStack() as stack:
        running = {"Serin": stack.enter_context(proxies.Serin(folder, ports, **more))}
        if options.against:
            running[OTHER] = stack.enter_context(proxies.Serin(folder, ports, program=options.against, **more))
        else:
            for kind in (proxies.Haproxy, proxies.Nginx):
                running[kind.title] = stack.enter_context(kind(folder, ports, **more))
        yield running


def small(out, options, folder):
    """Closed loop for capacity, then 60 % of what HAProxy can take in open loop."""
    with proxies.Traffic(folder) as traffic, with_peers(options, folder, traffic.ports) as running:
        full = Figures(traffic, running, options, SMALL)
        full.row(out, "300 B bodies", "requests/s", "rate", less_is_better=False, note=full.busy_note())
        full.row(out, "300 B bodies", "CPU us per request", "cpu_us")
        rate = 0.6 * full.median("rate")["HAProxy" if "HAProxy" in running else OTHER]
        open_loop = Figures(traffic, running, options, SMALL, rate=rate)
        for field, name in (("p50_us", "p50 us"), ("p99_us", "p99 us")):
            open_loop.row(out, f"300 B bodies, open loop at {rate:.0f}/s", name, field)
        if running["Serin"].phase() != "Progressing":
            raise RuntimeError("the rollout has ended: this was not measured with the judge at work")


def large(out, options, folder):
    for request, answer, work in ((TENSOR, 0, "602 KB requests"), (SMALL, TENSOR, "602 KB answers")):
        with proxies.Traffic(folder, answer) as traffic, with_peers(options, folder, traffic.ports) as running:
            figures = Figures(traffic, running, options, request, connections=8)
            figures.row(out, work, "MB/s", "rate", less_is_better=False, scale=TENSOR / 1e6, note=figures.busy_note())
            figures.row(out, work, "CPU us per request", "cpu_us")


def grpc(out, options, folder):
    """Calls of ModelInfer; Serin reads which model each names, names it anew, and looks at what the answers say."""
    with proxies.GrpcTraffic(folder) as traffic, with_peers(options, folder, traffic.ports, grpc=True) as running:
        figures = Figures(traffic, running, options, SMALL, connections=8)
        figures.row(out, "gRPC, 8 connections of 8 calls", "requests/s", "rate", less_is_better=False, note=figures.busy_note())
        figures.row(out, "gRPC, 8 connections of 8 calls", "CPU us per request", "cpu_us")


def judge(out, options, folder):
    with (
        proxies.Traffic(folder) as traffic,
        proxies.Serin(folder, traffic.ports) as judging,
        proxies.Serin(folder, traffic.ports, judged=False) as not_judging,
    ):
        figures = Figures(traffic, {"Serin": judging, "no rollout": not_judging}, options, SMALL)
        figures.row(out, "judge on compared with off", "requests/s", "rate", less_is_better=False, note=figures.busy_note())
        figures.row(out, "judge on compared with off", "CPU us per request", "cpu_us")


def idle(out, options, folder):
    """Connections that say nothing: their memory, and what they do to the latency of the others, each round with and without them."""
    rate = 5000.0
    with proxies.Traffic(folder) as traffic, with_peers(options, folder, traffic.ports) as running:
        memory, p99, times = {}, {}, {}
        for title, proxy in running.items():
            traffic.load(proxy.port, CONNECTIONS, 1, SMALL, rate)
            before = proxy.memory_mb()
            pairs = []
            for _ in range(options.rounds):
                without, beside = (traffic.load(proxy.port, CONNECTIONS, options.seconds, SMALL, rate, count)["p99_us"] for count in (0, proxies.IDLE))
                pairs.append((beside, beside / without))
            memory[title] = proxy.memory_mb() - before  # memory is given back rarely: what is held now is what it took
            p99[title], times[title] = map(statistics.median, zip(*pairs))
        work = f"{proxies.IDLE:,} idle connections"
        out.add(table.Row(work, "MB", memory.pop("Serin"), memory))
        work += f", {rate:.0f}/s at the same time"
        out.add(table.Row(work, "p99 us", p99.pop("Serin"), p99))
        out.add(table.Row(work, "p99 divided by the p99 without them", times.pop("Serin"), times))


def allocations(out, options, folder):
    """malloc and its like, counted while a steady load runs."""
    count = folder / "allocations"
    environment = {"LD_PRELOAD": str(proxies.ROOT / "build/libcount_allocations.so"), "COUNT_ALLOCATIONS": str(count)}
    with proxies.Traffic(folder) as traffic, proxies.Serin(folder, traffic.ports, environment=environment) as proxy:
        traffic.load(proxy.port, CONNECTIONS, options.seconds, SMALL)
        before = proxies.read_count(count)
        done = traffic.load(proxy.port, CONNECTIONS, options.seconds, SMALL)
        per_request = (proxies.read_count(count) - before) / done["all"]
        out.add(table.Row("300 B bodies", "allocations per request", per_request, {}, note="connections and health checks included"))


def threads(out, options, folder):
    """Throughput where the second thread finds a core. Where there are but two, CPU time per request of the same load on the same cores: what
    two threads cost each other shows there, too."""
    scales = os.cpu_count() >= 4
    cores = "0,2" if scales else "0,1"
    with (
        proxies.Traffic(folder) as traffic,
        proxies.Serin(folder, traffic.ports, threads=2, core=cores) as two,
        proxies.Serin(folder, traffic.ports, core=proxies.PROXY_CORE if scales else cores) as one,
    ):
        figures = Figures(traffic, {"Serin": two, "one thread": one}, options, SMALL, rate=0.0 if scales else 20_000.0)
        if scales:
            figures.row(out, "two threads compared with one", "requests/s", "rate", less_is_better=False)
        figures.row(out, "two threads compared with one", "CPU us per request", "cpu_us")


PARTS = {"small": small, "large": large, "grpc": grpc, "judge": judge, "idle": idle, "allocations": allocations, "threads": threads}


def version_of(command):
    text = subprocess.run(command, capture_output=True, text=True, check=False)
    return (text.stdout + text.stderr).splitlines()[0].split(" - ")[0]


def main():
    options = flags()
    peers = {"HAProxy": ["/usr/sbin/haproxy", "-v"], "nginx": ["/usr/sbin/nginx", "-v"]}
    if options.against:
        peers = {OTHER: [options.against, "version"]}
    versions = ", ".join(version_of(command) for command in peers.values())
    machine = table.machine()
    out = table.Table(
        [*peers, "no rollout", "one thread"],
        f"{datetime.date.today()}, {machine}\n{versions}; {options.rounds} rounds of {options.seconds:g} s",
    )
    for name in options.parts:
        with tempfile.TemporaryDirectory(prefix="serin-bench-") as folder:
            PARTS[name](out, options, pathlib.Path(folder))
    if options.json:
        out.save(options.json, machine)


if __name__ == "__main__":
    main()
