"""Somebody who is told by webhooks, and fails on command."""

import collections
import http.server
import json
import threading


class Receiver:
    """Answers what it is told to, and keeps what it was sent."""

    def __init__(self):
        self.answers = collections.deque()  # statuses of the next requests; then `usual`
        self.usual = 200
        self.requests = []  # (path, {lower-case header: value}, body)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.answers.popleft() if receiver.answers else receiver.usual)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/serin?from=tests"

    @property
    def events(self):
        """What arrived, in its order, repetitions included."""
        return [json.loads(body)["data"]["event"] for _, _, body in list(self.requests)]
