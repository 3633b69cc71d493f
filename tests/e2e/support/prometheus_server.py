"""Debian's Prometheus on loopback, for tests that are asked by it or ask it."""

import contextlib
import http.server
import json
import pathlib
import shutil
import subprocess
import threading
import urllib.parse

from conftest import ROOT, call, free_port, wait_until


def program(name):
    """Where deploy/install-deps --tests has put it, or where Debian's package does; nothing: nowhere."""
    places = (ROOT / ".deps/prometheus/usr/bin" / name, pathlib.Path(shutil.which(name) or "/nowhere"))
    return next((place for place in places if place.exists()), None)


class Exporter:
    """A target whose metrics are whatever `text` says."""

    def __init__(self, port):
        exporter = self
        self.text = "queue 5\n"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(exporter.text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Prometheus:
    """One that scrapes five times a second what `scrapes` says, in Prometheus' own words, and that can be stopped and started again: at the same port, with what it had.
    `more`: other keys of its configuration."""

    def __init__(self, folder, scrapes, rules=(), more=None):
        self._folder, port = folder, free_port()
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules], "scrape_configs": scrapes, **(more or {}),
        }))
        self._command = [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"]
        self._process = None

    def start(self):
        with open(self._folder / "prometheus.log", "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def stop(self):
        self._process.terminate()
        self._process.wait(20)

    def await_(self, expression):
        """Until it is ready and this has a value."""
        def has_scraped():
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
            try:
                return self.query(expression)
            except OSError:  # not listening yet
                return False
            except AssertionError:  # listening, and still starting
                return False
        wait_until(has_scraped, 30, "Prometheus has scraped")

    def get(self, path, **query):
        answer = call(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert answer.status == 200, f"{query}: {answer.body}"
        return answer.json["data"]

    def query(self, expression):
        """The series of an instant query."""
        return self.get("query", query=expression)["result"]


@contextlib.contextmanager
def prometheus(folder, target, rules=()):
    """A server that scrapes http://target/metrics, and has done so once."""
    with scraping(folder, [{"job_name": "serin-test", "static_configs": [{"targets": [target]}]}], rules) as server:
        yield server


@contextlib.contextmanager
def scraping(folder, scrapes, rules=(), until="up == 1", more=None):
    """A server with these scrape_configs, once the expression `until` has a value."""
    server = Prometheus(folder, scrapes, rules, more)
    server.start()
    try:
        server.await_(until)
        yield server
    finally:
        server.stop()
