"""What the fixtures of conftest.py hold of each server that a test has started."""

import os
import signal

import pytest
from conftest import MODELS, ON_FREE_PORTS, Process


def test_a_server_that_dies_behind_a_tests_back_fails_it(tmp_path):
    with pytest.raises(AssertionError, match="serve-0 (had died|ended) with -9"):
        with Process(tmp_path, "serve", "--models", MODELS, *ON_FREE_PORTS) as process:
            os.kill(process.process.pid, signal.SIGKILL)


def test_what_a_test_has_killed_is_its_own_affair_and_no_drain_time_is_waited_for(tmp_path):
    with Process(tmp_path, "serve", "--models", MODELS, *ON_FREE_PORTS) as killed:
        killed.kill()
    with Process(tmp_path, "serve", "--models", MODELS, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 600) as patient:
        pass
    assert patient.process.returncode == 0, "the drain time was cut short"
