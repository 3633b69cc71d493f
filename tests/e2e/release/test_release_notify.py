"""`notify` of release.yaml: a chat and a program hear how a release has ended; one that is away changes nothing."""

import hashlib
import json

from conftest import free_port
from release_loop import DIGITS


def messages(receiver):
    return [json.loads(body) for _, _, body in receiver.requests]


def test_receivers_get_the_end_of_a_release_once_they_answer(loop, receiver):
    secret = loop.folder / "chat.url"
    secret.write_text(receiver.url.replace("from=tests", "token=secret") + "\n")
    secret.chmod(0o600)
    loop.policy(eval={"require": ["top1 >= 99.99%"]}, notify=["chat.url", receiver.url])
    receiver.answers.extend([500])
    stopped = loop.outcome(DIGITS / "2", "--by", "ci", code=3)
    assert [path for path, _, _ in receiver.requests] == ["/serin?token=secret", "/serin?token=secret", "/serin?from=tests"]
    assert all(headers["content-type"] == "application/json" for _, headers, _ in receiver.requests)
    first, *others = messages(receiver)
    assert others == [first, first]
    line = (loop.registry / ".releases/digits/records.jsonl").read_text().splitlines()[-1]
    assert first["release"] == {"id": stopped["id"], "service": "digits", "model": "digits", "version": None, "given": str(DIGITS / "2"), "by": "ci", "outcome": "refused",
                                "stage": "eval", "reason": stopped["reason"], "record": "sha256:" + hashlib.sha256(line.encode()).hexdigest()}
    assert first["text"].startswith(f"digits: the release of digits ({DIGITS / '2'}) has ended at eval: top1 ")
    assert "secret" not in line.replace("read_secret", ""), "the record has the path of the file, not what is in it"


def test_a_promotion_is_one_sentence(loop, clients, receiver):
    loop.policy(eval=None, notify=[receiver.url])
    loop.release(DIGITS / "2")
    [message] = messages(receiver)
    assert message["text"] == "digits: digits:2 is in production" and message["release"]["outcome"] == "promoted" and message["release"]["version"] == 2


def test_a_receiver_that_is_away_is_named_without_its_path(loop):
    port = free_port()
    loop.policy(eval={"require": ["top1 >= 99.99%"]}, notify=[f"http://127.0.0.1:{port}/secret"])
    done = loop.release(DIGITS / "2", code=3)
    assert "notify" in done.stdout and f"the receiver at 127.0.0.1:{port} is not notified: " in done.stdout and "secret" not in done.stdout + done.stderr
    assert len(loop.records()) == 1 and not loop.journal().exists()
