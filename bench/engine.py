"""The engine beside ONNX Runtime and OpenVINO, in one run: see bench/engine --help."""

import datetime
import importlib.metadata
import statistics
import subprocess
import time

import engines
import quantise
import table
import work

EPILOGUE = """
Each engine runs in a process of its own that is kept warm. In every round each measures once, in turn, and the medians over the rounds are
divided, so that a machine whose speed drifts favours nobody. A ratio above 1 means that Serin is ahead of the better peer.

--quick: batch 1, one thread, 3 rounds; under two minutes once the models are made.
"""


def flags():
    parser = table.parser_for("engine", "Serin's engine beside the newest ONNX Runtime and OpenVINO.", EPILOGUE)
    parser.add_argument("names", nargs="*", metavar="WORK", help="only work whose name contains one of these")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--zoo", action="store_true", help="architectures that the engine was not tuned for; names those that lose")
    parser.add_argument("--rounds", type=int, help="15; 3 with --quick")
    parser.add_argument("--seconds", type=float, help="of one measurement, at least one run: 0.2; 0.1 with --quick")
    parser.add_argument("--threads", type=int, nargs="+", help="1 2; 1 with --quick")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 15)
    options.seconds = options.seconds or (0.1 if options.quick else 0.2)
    options.threads = options.threads or ([1] if options.quick else [1, 2])
    return options


def chosen(options):
    return [item for item in (work.zoo() if options.zoo else work.WORK) if not options.names or any(name.lower() in item.name.lower() for name in options.names)]


def threads_text(count):
    return f"{count} thread{'s' * (count > 1)}"


def starters(job, seconds, peers=engines.PEERS):
    return {
        "serin": lambda: engines.serin(job, seconds),
        **{title: lambda name=name: engines.peer(name, job, seconds) for name, title in peers.items()},
    }


BY_PEER = {"onnxruntime": {"fp32"}, "openvino": {"fp32", "bf16"}}  # ONNX Runtime has no bf16 on CPUs; an int8 file is run as it stands


def fp32(out, options, peak):
    for item in chosen(options):
        for batch in item.batches[:1] if options.quick else item.batches:
            for threads in options.threads:
                times, why = engines.in_turn(starters(work.job(item, batch, threads), options.seconds), options.rounds)
                ours = times.pop("serin")
                share = ""
                if peak and ours and item.kind != "digits" and not options.zoo:
                    share = f"{2e-6 * work.multiply_adds(item) * batch / ours / (peak * threads):.0%} of peak"
                out.add(
                    table.Row(
                        f"{item.name}, batch {batch}, {threads_text(threads)}",
                        "fp32 ms",
                        ours,
                        times,
                        note="; ".join(filter(None, [share, why])),
                    )
                )


def faster_types(out, options, item, precision, model=None, label=""):
    """Rows of bf16 or int8, with the errors that buy the speed."""
    exact = engines.peer_outputs("onnxruntime", work.job(item, 1))
    for threads in options.threads:
        job = work.job(item, 1, threads, precision, model)
        names = {name: title for name, title in engines.PEERS.items() if precision in BY_PEER[name]}
        times, why = engines.in_turn(starters(job, options.seconds, names), options.rounds)
        ours, errors = times.pop("serin"), {}
        for name, title in names.items():
            if times[title] is not None:
                errors[title] = engines.relative_l2(engines.peer_outputs(name, job), exact)
        try:
            if ours is not None:
                errors["Serin"] = engines.serin_error(job, exact)
        except engines.CannotRun as error:
            why = why or f"Serin's error is unknown: {error}"
        out.add(
            table.Row(
                f"{item.name}{label}, batch 1, {threads_text(threads)}",
                f"{precision if not label else 'int8'} ms",
                ours,
                times,
                note=why,
                errors=errors,
            )
        )


def bf16(out, options, _):
    for item in chosen(options):
        if item.kind != "digits":
            faster_types(out, options, item, "bf16")


def int8(out, options, _):
    for name, kinds in (("ResNet-50", ("u8s8", "s8s8", "u8s7")), ("BERT-base seq 128", ("dynamic",))):
        for item in chosen(options):
            for kind in kinds if item.name == name else ():
                faster_types(out, options, item, "fp32", quantise.int8(item, kind), f" {kind}")


def first_answers_ms(job, count):
    """From the start of the process to its end, after one answer; `count` times."""
    times = []
    with engines.data_set(job, engines.peer_outputs("onnxruntime", job)) as folder:
        for _ in range(count):
            begin = time.perf_counter()
            engines.serin_check(job, folder)
            times.append((time.perf_counter() - begin) * 1e3)
    return times


def load(out, options, _):
    """Serin: a whole process that starts, loads, answers once, compares and ends. Peers: session and first run alone, with the interpreter
    and the library already loaded."""
    for item in chosen(options):
        if item.name == "ResNet-50":
            job = work.job(item, 1, 2)
            ours = statistics.median(first_answers_ms(job, options.rounds))
            peers = {
                title: statistics.median(ready_of(name, job)["first_answer_ms"] for _ in range(min(options.rounds, 5)))
                for name, title in engines.PEERS.items()
            }
            out.add(table.Row(f"{item.name}, start to first answer, 2 threads", "ms", ours, peers))


def ready_of(name, job):
    with engines.peer(name, job, 0) as engine:
        return engine.ready


def memory(out, options, _):
    """Peers without their interpreter: what importing the library and loading the model added to it."""
    for item in chosen(options):
        if item.name in ("ResNet-50", "BERT-base seq 128"):
            job = work.job(item, 1, 1)
            with engines.serin(job, 0.001) as engine:
                ours = {field: engine.memory(name) for field, name in (("pss", "Pss"), ("peak", "VmHWM"))}
            peers = {title: ready_of(name, job) for name, title in engines.PEERS.items()}
            for field, metric in (("pss", "PSS after the first answer, MB"), ("peak", "peak RSS, MB")):
                out.add(
                    table.Row(
                        f"{item.name}, batch 1", metric, ours[field] / 1e6, {title: ready[field] / 1e6 for title, ready in peers.items()}
                    )
                )


PARTS = {"fp32": fp32, "bf16": bf16, "int8": int8, "load": load, "memory": memory}


def fma_peak():
    """GFLOP/s of one core, or None where bench/fma_peak.cc knows no instructions for it."""
    done = subprocess.run([engines.ROOT / "build/fma_peak"], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def main():
    options = flags()
    peak = fma_peak()
    versions = ", ".join(f"{title} {importlib.metadata.version(name)}" for name, title in engines.PEERS.items())
    machine = table.machine() + (f", {peak:.0f} GFLOP/s a core by FMA" if peak else "")
    out = table.Table(list(engines.PEERS.values()), f"{datetime.date.today()}, {machine}\n{versions}; {options.rounds} rounds")
    for name in options.parts:
        PARTS[name](out, options, peak)
    kinds = {}
    for item in chosen(options):
        kinds.setdefault(item.kind, set()).add(item.name)
    for kind, names in kinds.items():
        out.geometric_mean(f"fp32 {kind}", lambda row, names=names: row.metric == "fp32 ms" and row.work.split(", batch")[0] in names)
    if options.zoo:
        out.losers()
    if options.json:
        out.save(options.json, machine)


if __name__ == "__main__":
    main()
