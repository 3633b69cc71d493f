"""The measured facts of README.md are those of bench/RESULTS.md: each command and date is there, and each figure is one of its figures, rounded."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = (ROOT / "bench/RESULTS.md").read_text()
ROW = re.compile(r"^\| (.*) \| `(bench/\S+)([^`]*)` \| (\d{4}-\d\d-\d\d) \|$", re.M)


def facts():
    return [match.groups() for match in ROW.finditer((ROOT / "README.md").read_text())]


def kept(program):
    """What RESULTS.md has of that bench."""
    return next(section for section in re.split(r"^## ", RESULTS, flags=re.M) if section.startswith(program))


def figures(text):
    return [float(figure.replace(",", "")) for figure in re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])", text)]


def is_kept(figure, section):
    """A figure of the section, or the quotient of two in one of its rows, rounded as README has it."""
    places = len(figure.partition(".")[2])
    wanted = float(figure.replace(",", ""))
    if any(round(value, places) == wanted for value in figures(section)):
        return True
    rows = [figures(line) for line in section.splitlines() if line.startswith("|")]
    return places > 0 and any(round(a / b, places) == wanted for row in rows for a in row for b in row if b)


def test_there_are_four():
    assert len(facts()) == 4


@pytest.mark.parametrize("fact, program, options, date", facts())
def test_a_fact_is_kept_where_its_command_was_printed(fact, program, options, date):
    section = kept(program)
    assert program + options in section and date in section and (ROOT / program).is_file()
    named = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", re.sub(r"fp32|\d+ %|\d+ floats", "", fact))
    assert [figure for figure in named if not is_kept(figure, section)] == []


@pytest.mark.parametrize("program", [program for _, program, _, _ in facts()])
def test_its_command_starts(program):
    """What it imports of tests/ is still where it looks."""
    if program == "bench/engine" and not (ROOT / ".deps/bench").exists():
        pytest.skip("its Python environment is not there; deploy/install-deps --bench makes it")
    done = subprocess.run([ROOT / program, "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "usage" in done.stdout, done.stderr
