"""A backend in a process of its own that really uses more and more: `python hungry_backend.py PORT VERSION [memory|descriptors|cpu|none]`.

It answers as backends.py does, and its /metrics says what the kernel says of it, under the names of Prometheus' clients. With `old` it uses those of an
exporter of its own.
"""

import http.server
import json
import os
import resource
import sys
import time

PORT, VERSION, HUNGER, *MORE = sys.argv[1:]
PLAIN_CPU, BURNT_CPU = 0.002, 0.006  # seconds for an answer
LEAK = 64 << 10  # bytes for an answer
SCORES = [0.01] * 3 + [0.9] + [0.01] * 6
NAMES = {"memory": "process_resident_memory_bytes", "descriptors": "process_open_fds"}
if "old" in MORE:
    NAMES = {"memory": "app_heap_bytes", "descriptors": "app_files"}
kept, answers = [], 0


def metrics():
    with open("/proc/self/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    ticks = os.sysconf("SC_CLK_TCK")
    numbers = {NAMES["memory"]: memory, NAMES["descriptors"]: len(os.listdir("/proc/self/fd")) - 1,
               "process_max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
               "process_cpu_seconds_total": (int(fields[11]) + int(fields[12])) / ticks, "process_start_time_seconds": int(fields[19]) / ticks}
    return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in numbers.items()).encode()


def work():
    global answers
    answers += 1
    until = time.thread_time() + (BURNT_CPU if HUNGER == "cpu" else PLAIN_CPU)
    while time.thread_time() < until:
        pass
    if HUNGER == "memory":
        kept.append(bytearray(os.urandom(LEAK)))
    elif HUNGER == "descriptors" and answers % 2:
        kept.append(os.dup(0))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/metrics":
            self.answer(metrics(), "text/plain; version=0.0.4")
        else:
            self.answer(json.dumps({"ready": True}).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        work()
        output = {"name": "scores", "datatype": "FP32", "shape": [1, len(SCORES)], "data": SCORES}
        self.answer(json.dumps({"model_name": "digits", "model_version": VERSION, "outputs": [output]}).encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Handler.wbufsize = 1 << 16  # an answer is one write
Server(("127.0.0.1", int(PORT)), Handler).serve_forever()
