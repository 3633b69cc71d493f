"""What was found out, a line of JSON each, so that a run can be cut anywhere, carried to another machine and gone on with."""

import datetime
import hashlib
import json


def digest(paths):
    """Of the contents of files: what was found out with other programs does not count."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


class Ledger:
    """known: {key: the last record of it}, whichever programs it was found out with."""

    def __init__(self, file, of):
        self.file, self.of, self.known = file, of, {}
        file.parent.mkdir(parents=True, exist_ok=True)
        for line in file.read_text().splitlines() if file.exists() else []:
            record = json.loads(line)
            self.known[record["key"]] = record

    def has(self, key):
        """Found out with these programs."""
        return key in self.known and self.known[key]["of"] == self.of

    def seconds(self, key, otherwise):
        """How long it took the last time, with whichever programs."""
        return self.known.get(key, {}).get("seconds", otherwise)

    def add(self, key, **what):
        self.known[key] = record = {"key": key, "date": f"{datetime.date.today()}", "of": self.of, **what}
        with self.file.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return record
