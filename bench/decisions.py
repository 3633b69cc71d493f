"""When a rollout is decided at which traffic, by simulation with the judge of real rollouts. See bench/decisions --help."""

import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ("healthy", "errors 5 %", "errors 50 %", "latency x2", "latency x10", "p99 x3")
USUAL, LITTLE = "canary.yaml", "little-traffic.yaml"
ROWS = ((0.05, LITTLE), (0.5, LITTLE), (5, LITTLE), (5, USUAL), (50, USUAL), (200, USUAL), (1000, USUAL))

EPILOGUE = """
Runs `serin rollout simulate --rate` for each traffic with a specification of deploy/rollouts. Stable is known from the rollout only. Each cell: the median
time until the verdict, and the share of rollouts with the right one (promoted if healthy, rolled back if not) where it is not all of them. The times
are simulated: nothing here depends on the machine.
"""


def flags():
    parser = argparse.ArgumentParser("bench/decisions", description="When a rollout is decided, by traffic.", epilog=EPILOGUE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="rollouts of each cell (100)")
    return parser.parse_args()


def simulate(rate, specification, runs):
    command = [ROOT / "build/serin", "rollout", "simulate", ROOT / "deploy/rollouts" / specification, "--rate", str(rate), "--runs", str(runs), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return {case["case"]: case for case in json.loads(done.stdout)["cases"]}


def spoken(seconds):
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def cell(case):
    right = case["promoted" if case["case"] == "healthy" else "rolled_back"]
    share = "" if right == case["runs"] else f" ({100 * right // case['runs']} %)"
    return spoken(case["seconds"][0]) + share


def main():
    options = flags()
    print(f"| requests/s | specification | {' | '.join(CASES)} |")
    print("|---|---|" + "---|" * len(CASES))
    for rate, specification in ROWS:
        cases = simulate(rate, specification, options.runs)
        print(f"| {rate:g} | {specification} | {' | '.join(cell(cases[name]) for name in CASES)} |", flush=True)


if __name__ == "__main__":
    main()
