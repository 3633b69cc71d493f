"""Jobs run side by side as the cores have room for them, and not before what they need is built."""

import threading
import time

import pytest

from schedule import Job, run_jobs


class Stage:
    """Jobs that run until they are let go, and what ran at the same time."""

    def __init__(self, room):
        self.room, self.jobs, self.running, self.ended, self.failing = room, [], set(), [], set()
        self.changed = threading.Condition()
        self.released = set()

    def add(self, name, **job):
        self.jobs.append(Job(lambda: self._work(name), **job))
        return self.jobs[-1]

    def _work(self, name):
        with self.changed:
            self.running.add(name)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: name in self.released, 10)
            self.running.discard(name)
        return name

    def start(self):
        self.thread = threading.Thread(target=lambda: run_jobs(self.jobs, self.room, self._note))
        self.thread.start()

    def _note(self, job, name):
        with self.changed:
            self.ended.append(name)
            self.changed.notify_all()
        return name not in self.failing

    def run(self, *names):
        """These and no others come to run."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.running == set(names), 10), self.running
        time.sleep(0.05)  # nothing else may start
        assert self.running == set(names)

    def release(self, *names):
        with self.changed:
            self.released |= set(names)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: set(names) <= set(self.ended), 10)

    def end(self):
        self.thread.join(10)
        assert not self.thread.is_alive()


def test_as_many_parts_run_as_the_cores_have_room_for():
    stage = Stage(2)
    for name, weight in ("long", 1), ("wide", 1.5), ("half", 0.5), ("other", 0.5), ("last", 0.5):
        stage.add(name, weight=weight)
    stage.start()
    stage.run("long", "half", "other")  # smaller ones pass what does not fit yet
    stage.release("half", "other")
    stage.run("long", "last")
    stage.release("long")
    stage.run("wide", "last")
    stage.release("wide", "last")
    stage.end()


def test_what_is_larger_than_the_machine_runs_alone():
    stage = Stage(1)
    stage.add("huge", weight=3)
    stage.add("small", weight=0.5)
    stage.start()
    stage.run("huge")
    stage.release("huge")
    stage.run("small")
    stage.release("small")
    stage.end()


def test_a_part_starts_as_soon_as_its_build_is_there():
    stage = Stage(2)
    stage.add("program", weight=0, lane="build", builds="program")
    stage.add("tests", weight=0, lane="build", needs={"program"}, builds="tests")
    stage.add("e2e", weight=1, needs={"program"})
    stage.add("graph", weight=1, needs={"tests"})
    stage.add("format", weight=1)
    stage.start()
    stage.run("program", "format")
    stage.release("program")
    stage.run("tests", "format", "e2e")  # builds take what the others leave
    stage.release("tests")
    stage.run("format", "e2e")
    stage.release("format")
    stage.run("e2e", "graph")
    stage.release("e2e", "graph")
    stage.end()
    assert [job.beside for job in stage.jobs] == [True] * 5


def test_what_needs_a_failed_build_does_not_run():
    stage = Stage(2)
    stage.failing = {"program"}
    stage.add("program", weight=0, lane="build", builds="program")
    stage.add("tests", weight=0, lane="build", needs={"program"}, builds="tests")
    stage.add("e2e", needs={"program"})
    stage.add("format")
    stage.start()
    stage.release("program", "format")
    stage.end()
    assert set(stage.ended) == {"program", "format"}


def test_one_of_a_lane_at_a_time():
    stage = Stage(4)
    stage.add("e2e", lane="servers")
    stage.add("serin", lane="servers")
    alone = stage.add("graph")
    stage.start()
    stage.run("e2e", "graph")
    stage.release("graph")
    stage.release("e2e")
    stage.run("serin")
    stage.release("serin")
    stage.end()
    assert [job.beside for job in stage.jobs] == [True, False, True] and alone.beside


def test_a_mistake_of_the_driver_ends_it():
    def breaks():
        raise KeyError("of the driver")

    with pytest.raises(KeyError, match="of the driver"):
        run_jobs([Job(breaks), Job(lambda: 1)], 1, lambda job, result: True)
