"""An API server of Kubernetes in memory, for faults that a real one does not have on command; tests/kubernetes asks a real one the same questions.

    objects = Objects()
    with Server(objects) as api:          # one way to the same objects; a router can have its own
        api.url, api.cut(), api.mend()
        api.answer_next(429, times=3, retry_after=1)     # instead of doing what is asked
        api.lose_answers_of("PUT", "state")    # does what is asked, and gives no answer; None: no longer
        objects.expire_watches()          # 410 Gone to each watch that goes on, as after a compaction
        api.tokens = {"another"}          # what a client shows from now on
        api.page = 2                      # objects of a list that one answer has at most
        api.hidden = {"nodes"}            # collections that no client has the right to
        api.asked                         # [(time, method, path, query)] so far

It has what Serin uses: collections with label selectors, resourceVersion and its conflicts, merge and JSON patches, the subresource status, watches with bookmarks,
tokens. What it refuses and how it answers is compared with the real server by tests/kubernetes/test_emulated_api.py.
"""

import contextlib
import copy
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse

PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>status))?$")
KEPT = 1000  # events, for watches that begin at an older version


class Refused(Exception):
    def __init__(self, code, reason, message="", retry_after=None):
        super().__init__(message)
        self.code, self.headers = code, {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message or reason, "code": code}


def selected(labels, selector):
    """Whether an object with these labels is in a selector of the forms `a=b` and `a in (b,c)`."""
    for part in re.findall(r"[^,(]+(?:\([^)]*\))?", selector or ""):
        inside = re.fullmatch(r"\s*(\S+) in \(([^)]*)\)\s*", part)
        key, values = (inside[1], inside[2].split(",")) if inside else (part.partition("=")[0], [part.partition("=")[2].lstrip("=")])
        if labels.get(key) not in values:
            return False
    return True


def merged(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def json_patched(value, operations):
    """RFC 6902, as far as Serin uses it: members are added and replaced."""
    result = copy.deepcopy(value)
    for each in operations:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = result
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        if not isinstance(place, dict) or each["op"] not in ("add", "replace") or (each["op"] == "replace" and last not in place):
            raise Refused(422, "Invalid", f"the patch cannot be applied: {each}")
        place[last] = each["value"]
    return result


class Objects:
    def __init__(self):
        self.changed = threading.Condition()
        self.version = 1
        self.all = {}       # (collection, name) -> object; a collection is (group, namespace, plural)
        self.events = []    # (version, type, collection, object)
        self.forgotten = 0  # watches from an older version are told 410
        self.expired = 0

    def list(self, collection, selector=""):
        with self.changed:
            return [copy.deepcopy(each) for (where, _), each in sorted(self.all.items(), key=lambda item: item[0][1])
                    if where == collection and selected(each["metadata"].get("labels") or {}, selector)]

    def get(self, collection, name):
        with self.changed:
            return copy.deepcopy(self._there(collection, name))

    def _there(self, collection, name):
        found = self.all.get((collection, name))
        if found is None:
            raise Refused(404, "NotFound", f'{collection[2]} "{name}" not found')
        return found

    def _record(self, kind, collection, value):
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, collection, copy.deepcopy(value)))
        if len(self.events) > KEPT:
            self.forgotten = max(self.forgotten, self.events.pop(0)[0])
        self.changed.notify_all()

    def create(self, collection, value):
        name = value.get("metadata", {}).get("name", "")
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name) or len(name) > 253:
            raise Refused(422, "Invalid", f'metadata.name: Invalid value: "{name}"')
        with self.changed:
            if (collection, name) in self.all:
                raise Refused(409, "AlreadyExists", f'{collection[2]} "{name}" already exists')
            value = copy.deepcopy(value)
            value["metadata"] |= {"namespace": collection[1], "uid": f"uid-{self.version}", "generation": 1}
            self._record("ADDED", collection, value)
            self.all[(collection, name)] = value
            return copy.deepcopy(value)

    def replace(self, collection, name, value, status=False):
        with self.changed:
            old = self._there(collection, name)
            asked = value.get("metadata", {}).get("resourceVersion")
            if asked and asked != old["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", f'Operation cannot be fulfilled on {collection[2]} "{name}": the object has been modified')
            new = copy.deepcopy(value)
            new["metadata"] = {**new.get("metadata", {}), **{key: old["metadata"][key] for key in ("namespace", "uid", "generation")}}
            if status:
                new = {**copy.deepcopy(old), "status": new.get("status", {})}
            elif collection[2] == "rollouts":
                new.pop("status", None)
                if "status" in old:
                    new["status"] = copy.deepcopy(old["status"])
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] += 1
            if {**new, "metadata": {**new["metadata"], "resourceVersion": ""}} == {**old, "metadata": {**old["metadata"], "resourceVersion": ""}}:
                return copy.deepcopy(old)  # nothing changed, and no event
            self._record("MODIFIED", collection, new)
            self.all[(collection, name)] = new
            return copy.deepcopy(new)

    def patch(self, collection, name, patch, status=False):
        with self.changed:
            old = self._there(collection, name)
            return self.replace(collection, name, json_patched(old, patch) if isinstance(patch, list) else merged(old, patch), status)

    def delete(self, collection, name):
        with self.changed:
            gone = self._there(collection, name)
            if gone["metadata"].get("finalizers"):
                return self.patch(collection, name, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
            del self.all[(collection, name)]
            self._record("DELETED", collection, gone)
            return gone

    def expire_watches(self):
        with self.changed:
            self.version += 1  # so that a watch that is only about to begin is from an older one, too
            self.forgotten, self.expired = self.version, self.expired + 1
            self.changed.notify_all()


class Server:
    """One address of the API. `tokens`: None lets everybody in."""

    def __init__(self, objects, tokens=None):
        self.objects, self.tokens = objects, tokens
        self.refusals, self.lost = [], None
        self.hidden = set()
        self.page = 500
        self.asked = []
        self.port = 0
        self.server = None
        self.open = set()

    def __enter__(self):
        self.mend()
        return self

    def __exit__(self, *_):
        self.cut()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def answer_next(self, status, times=1, retry_after=None):
        self.refusals += [(status, retry_after)] * times

    def lose_answers_of(self, method, name=""):
        """Of requests to objects whose names begin so."""
        self.lost = method and (method, name)

    def cut(self):
        if self.server is None:
            return
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self.objects.changed:
            self.objects.changed.notify_all()

    def mend(self):
        if self.server is None:
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), type("Bound", (Handler,), {"api": self}))
            self.server.daemon_threads = True
            self.port = self.server.server_address[1]
            threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def setup(self):
        super().setup()
        self.running = self.api.server
        self.api.open.add(self.connection)

    def finish(self):
        self.api.open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True  # the client is gone, or the way was cut

    def answer(self, status, body, headers=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        self.api.asked.append((time.monotonic(), self.command, url.path, query))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        try:
            if self.api.refusals:
                status, retry_after = self.api.refusals.pop(0)
                raise Refused(status, "TooManyRequests", retry_after=retry_after)
            if self.api.tokens is not None and token not in self.api.tokens:
                raise Refused(401, "Unauthorized")
            place = PATH.match(url.path)
            if place is None:
                raise Refused(404, "NotFound", f"the server could not find the requested resource {url.path}")
            collection, name, status = (place["group"] or "", place["namespace"], place["plural"]), place["name"], place["sub"] == "status"
            if collection[2] in self.api.hidden:
                raise Refused(403, "Forbidden", f"{collection[2]} is forbidden")
            if self.command == "GET" and query.get("watch"):
                return self.watch(collection, query)
            result = self.done(collection, name, status, query, body)
        except Refused as refused:
            return self.answer(refused.code, refused.body, refused.headers)
        if self.api.lost and self.command == self.api.lost[0] and (name or "").startswith(self.api.lost[1]):
            self.close_connection = True
            self.connection.recv(1)  # until the client gives up
            return None
        return self.answer(201 if self.command == "POST" else 200, result)

    def done(self, collection, name, status, query, body):
        objects = self.api.objects
        if self.command == "GET" and name:
            return objects.get(collection, name)
        if self.command == "GET":
            with objects.changed:
                items, first = objects.list(collection, query.get("labelSelector")), int(query.get("continue") or 0)
                after = first + min(int(query.get("limit") or len(items)), self.api.page)
                more = {"continue": str(after)} if after < len(items) else {}
                return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": str(objects.version), **more}, "items": items[first:after]}
        if self.command == "POST":
            return objects.create(collection, body)
        if self.command == "PUT":
            return objects.replace(collection, name, body, status)
        if self.command == "PATCH":
            return objects.patch(collection, name, body, status)
        return objects.delete(collection, name)

    def watch(self, collection, query):
        objects, selector = self.api.objects, query.get("labelSelector")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def send(kind, value):
            line = json.dumps({"type": kind, "object": value}, separators=(",", ":")).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()

        with objects.changed:
            expired, seen = objects.expired, int(query.get("resourceVersion") or 0)
            pending = []
            if seen == 0:
                seen = objects.version
                pending = [("ADDED", each) for each in objects.list(collection, selector)]
            elif seen < objects.forgotten:
                pending, expired = [], -1
        while True:
            for kind, value in pending:
                send(kind, value)
            with objects.changed:
                if objects.expired != expired:
                    break
                new = [event for event in objects.events if event[0] > seen]
                if not new:
                    objects.changed.wait(1)
                    new = [event for event in objects.events if event[0] > seen]
                if self.api.server is not self.running:
                    return
                seen = max([seen, *(event[0] for event in new)])
                pending = [(kind, value) for _, kind, where, value in new
                           if where == collection and selected(value["metadata"].get("labels") or {}, selector)]
                if not new:
                    pending = [("BOOKMARK", {"metadata": {"resourceVersion": str(seen)}})]
        send("ERROR", Refused(410, "Expired", "too old resource version").body)
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do
