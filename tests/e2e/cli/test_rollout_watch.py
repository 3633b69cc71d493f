"""`serin rollout watch` on a terminal: one picture that moves, seen through an emulated terminal; the plain lines are in test_rollout_cli.py."""

import pytest

from backends import Faults
from conftest import SERIN, wait_until
from terminal import Terminal
from traffic import Traffic

HOLD = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def watch(pair):
    """watch(columns=80): a terminal with `serin rollout watch digits`."""
    started = []

    def begin(**terminal):
        started.append(Terminal(SERIN, "rollout", "watch", "digits", "--admin", f"127.0.0.1:{pair[0].ports['admin']}", **terminal))
        return started[-1]
    yield begin
    for terminal in started:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.end()


def test_a_terminal_shows_one_picture_that_moves_until_the_verdict(pair, watch):
    router, _, canary = pair
    router.start_rollout(steps=[HOLD])
    terminal = watch()
    terminal.wait_for("Progressing")
    with Traffic(router.url, clients=3, pause=0.01):  # slowly: some seconds from the first error to the verdict
        router.wait_for_answers(20)
        wait_until(lambda: not any("canary 0 (" in line for line in terminal.lines), 20, "answers counted on the screen")
        assert sum("Progressing" in line for line in terminal.lines) == 1, "redrawn in place, not written again below"
        assert any("[#####...............] canary 25 %" in line and "next step in about" in line for line in terminal.lines)
        canary.faults = Faults(error_rate=0.01)
        terminal.wait_for("err rolls it back in about")
        canary.faults = Faults(error_rate=1)
        terminal.wait_for("RolledBack")
    assert terminal.end() == 3
    lines = terminal.lines
    assert sum("digits-1" in line for line in lines) == 1 and not any("Progressing" in line for line in lines)
    evidence = next(i for i, line in enumerate(lines) if line.startswith("evidence"))
    assert lines[evidence + 1].split()[0] == "err", "the strongest first"
    assert not any(word in "".join(lines) for word in ("certificate", "rolls it back")), "nothing is left to show"


def test_what_does_not_fit_is_cut_off_and_nothing_scrolls(pair, watch):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    terminal = watch(columns=40, lines=8)
    terminal.wait_for("Progressing")
    wait_until(lambda: terminal.raw.count(b"\x1b[J") >= 5, 20, "redrawn a few times")
    assert terminal.lines[0].startswith("digits: stable version 1") and len(terminal.lines) == 7
    router.command("abort")
    assert terminal.end() == 3


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(pair, watch):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    terminal = watch(term="dumb", columns=200)
    terminal.wait_for("Progressing")
    router.command("pause")
    terminal.wait_for("Paused")
    router.command("abort")
    assert terminal.end() == 3
    assert b"\x1b" not in terminal.raw
    assert [line.split()[2] for line in terminal.lines] == ["Progressing", "Paused", "RolledBack"]
