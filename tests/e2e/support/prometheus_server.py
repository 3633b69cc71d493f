"""Debian's Prometheus on loopback, for tests that are asked by it or ask it."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import urllib.parse

from conftest import ROOT, call, free_port, wait_until


def program(name):
    """Where deploy/install-deps --tests has put it, or where Debian's package does; nothing: nowhere."""
    places = (ROOT / ".deps/prometheus/usr/bin" / name, pathlib.Path(shutil.which(name) or "/nowhere"))
    return next((place for place in places if place.exists()), None)


class Prometheus:
    def __init__(self, url):
        self.url = url

    def get(self, path, **query):
        answer = call(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert answer.status == 200, f"{query}: {answer.body}"
        return answer.json["data"]

    def query(self, expression):
        """The series of an instant query."""
        return self.get("query", query=expression)["result"]


@contextlib.contextmanager
def prometheus(folder, target, rules=()):
    """A server that scrapes http://target/metrics five times a second, and has done so once."""
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [{"job_name": "serin-test", "static_configs": [{"targets": [target]}]}],
    }))
    with open(folder / "prometheus.log", "wb") as log:
        process = subprocess.Popen([program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    server = Prometheus(f"http://127.0.0.1:{port}")

    def has_scraped():
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        try:
            return server.query("up == 1")
        except OSError:  # not listening yet
            return False
        except AssertionError:  # listening, and still starting
            return False
    try:
        wait_until(has_scraped, 30, "Prometheus has scraped")
        yield server
    finally:
        process.terminate()
        process.wait(20)
