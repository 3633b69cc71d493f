"""Some tests of a gtest program, in a process of their own: what a crash takes along is run again without the test that crashed."""

import os
import subprocess

from process import describe, run
from results import FAILED, Case, clip, from_gtest_log, from_junit


def names_of(command, environment):
    """Every test as `Suite.Name`. RuntimeError where the program does not list them."""
    done = subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {describe(done.returncode)}: {clip(done.stdout + done.stderr)}")
    names, suite = [], ""
    for line in done.stdout.splitlines():
        word = line.split("#")[0].rstrip()
        if word.endswith(".") and not line.startswith(" "):
            suite = word
        elif line.startswith("  ") and suite:
            names.append(suite + word.strip())
    return names


def run_tests(command, names, log, limit_s, root, environment):
    """A case for each name."""
    report, left, cases = log.with_suffix(".xml"), list(names), []
    while left:
        report.unlink(missing_ok=True)
        pattern = ":".join(name.replace("-", "?") for name in left)  # a minus would begin what is left out
        flags = [f"--gtest_filter={pattern}", f"--gtest_output=xml:{report}", "--gtest_color=no"]
        status = run([*command, *flags], log, limit_s, root, environment).status
        text = log.read_text(errors="replace")
        if report.exists():
            return cases + _finished(status, from_junit("", report), text)
        ended, unfinished = from_gtest_log("", text)
        cases += ended
        last_words = clip(text[text.rfind("[ RUN") :])
        cases.append(Case("", unfinished or "the program as a whole", FAILED, detail=f"{describe(status)}\n{last_words}"))
        if unfinished is None:
            break
        left = [name for name in left if name not in {case.name for case in cases}]
    return cases


def _finished(status, cases, text):
    """All tests ended; yet the program may have failed behind them, as a sanitizer does that found something."""
    if status == 0 or (status == 1 and any(case.status == FAILED for case in cases)):
        return cases
    found = [line for line in text.splitlines() if line.startswith("=========")]
    return cases + [Case("", "the program as a whole", FAILED, detail=f"{describe(status)}\n{clip(chr(10).join(found) or text)}")]
