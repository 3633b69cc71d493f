"""Gauges by which replicas are counted, of a server under `serin load`: they rise with the load, agree with each other, and fall after it."""

import subprocess
import time

from conftest import SERIN, wait_until
from slow_model import save_busy

CLIENTS = 9


def test_gauges_rise_with_the_load_and_fall_after_it(serve, tmp_path):
    save_busy(tmp_path / "models", 1000)
    runtime = serve(tmp_path / "models", "--threads", 1)

    def gauges():
        page = {name: runtime.metric(name, model="busy") for name in ("serin_model_in_flight_requests", "nv_inference_pending_request_count",
                                                                      "serin_model_queue_wait_ms", "serin_model_busy_ratio")}
        return tuple(page.values())
    assert gauges()[:3] == (0, 0, 0) and gauges()[3] < 0.1
    done = subprocess.Popen([SERIN, "load", runtime.url, "--model", "busy", "--concurrency", str(CLIENTS), "--seconds", "6"], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: gauges()[0] == CLIENTS and gauges()[1] >= CLIENTS - 2, 10, "a queue")
        time.sleep(4)
        in_flight, pending, wait, busy = gauges()
        assert in_flight <= CLIENTS and pending < in_flight and 0.2 < busy <= 1
        ran = runtime.metric("nv_inference_compute_infer_duration_us", model="busy") / runtime.metric("nv_inference_exec_count", model="busy") / 1000
        assert pending * ran / 4 < wait < pending * ran * 4, f"{pending} requests of {ran:.0f} ms each"
    finally:
        assert done.wait(60) == 0
    wait_until(lambda: gauges()[:3] == (0, 0, 0), 10, "nothing is left to do")
    ended = gauges()[3]
    wait_until(lambda: gauges()[3] < ended / 2, 30, "the busy share falls")
