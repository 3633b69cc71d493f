"""Which jobs run side by side: those whose builds are there, as many as the cores have room for.

The caller's order counts: the first job in it that fits starts first, and a later, smaller one may pass a job that does not fit yet. Builds weigh nothing.
They run with the lowest priority, one after the other, on what the rest leaves idle: tests of servers wait for most of their time.
"""

import os
import queue
import threading
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Job:
    run: object  # called without arguments, in a thread
    weight: float = 1  # cores that it keeps busy
    lane: str = ""  # of the jobs with the same one, one runs at a time
    needs: set = field(default_factory=set)  # names of builds
    builds: str = ""  # the name of what it builds
    beside: bool = False  # becomes true when another job ran at the same time


def cores():
    """That this process may use: a container's quota counts, too."""
    usable = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(usable, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return usable


def run_jobs(jobs, room, ended):
    """Runs all of them; a job that needs a failed build does not run. ended(job, result) is called in this thread, one job at a time; of a build it says
    whether it is there now. Raises what a job raises."""
    waiting, running, built, results = list(jobs), [], set(), queue.SimpleQueue()
    while waiting or running:
        for job in list(waiting):
            if job.needs <= built and _fits(job, running, room):
                waiting.remove(job)
                _start(job, running, results)
        if not running:
            return
        job, result, error = results.get()
        running.remove(job)
        if error:
            raise error
        if ended(job, result) and job.builds:
            built.add(job.builds)


def _fits(job, running, room):
    if job.lane and any(other.lane == job.lane for other in running):
        return False
    taken = sum(other.weight for other in running)
    return taken == 0 or job.weight == 0 or taken + job.weight <= room


def _start(job, running, results):
    def work():
        try:
            results.put((job, job.run(), None))
        except BaseException as error:
            results.put((job, None, error))

    for other in running:
        job.beside = other.beside = True
    running.append(job)
    threading.Thread(target=work, daemon=True).start()
