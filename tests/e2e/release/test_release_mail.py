"""`notify` of release.yaml by mail: what a mailbox gets, and that no mail server can stop a release."""

import json
import socket

import pytest

from certificates import Authority
from conftest import free_port
from mail_server import PASSWORD, USER, MailServer
from release_loop import DIGITS
from test_release_policy import GOOD, refusal

STOPS = {"require": ["top1 >= 99.99%"]}
FROM, TO = "serin@corp.example", ["team@corp.example", "on-call@corp.example"]


@pytest.fixture
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def receiver(loop, server, authority=None, **more):
    """An entry of `notify` with a login from a file."""
    password = loop.folder / "mail.password"
    password.write_text(PASSWORD + "\n")
    password.chmod(0o600)
    login = {"user": USER, "password": "mail.password", "ca": authority.ca} if authority else {"tls": "none"}
    return {"mail": server.url, "from": FROM, "to": TO, **login, **more}


@pytest.mark.parametrize("implicit", [False, True], ids=["STARTTLS", "TLS"])
def test_a_mailbox_gets_the_end_of_a_release(loop, authority, implicit):
    with MailServer(authority, implicit=implicit) as server:
        loop.policy(eval=STOPS, notify=[receiver(loop, server, authority)])
        stopped = loop.outcome(DIGITS / "2", "--by", "ci", code=3)
        [mail] = server.mails
    assert (mail.sender, mail.receivers, mail.encrypted, mail.user) == (FROM, TO, True, USER.encode())
    message = mail.message
    assert message["from"].addresses[0].addr_spec == FROM and message["to"].addresses[1].addr_spec == TO[1] and message["date"].datetime and message["auto-submitted"] == "auto-generated"
    assert message["subject"] == "[serin] digits: the release of digits has ended at eval (refused)"
    text, attached = message.iter_parts()
    assert text.get_content().strip() == f"digits: the release of digits ({DIGITS / '2'}) has ended at eval: {stopped['reason']}"
    assert attached.get_filename() == "release.json" and json.loads(attached.get_content())["id"] == stopped["id"]
    record = (loop.registry / ".releases/digits/records.jsonl").read_text()
    assert PASSWORD not in record and b"mail.password" not in mail.raw


def test_a_mail_that_is_refused_for_now_is_sent_again(loop):
    with MailServer() as server:
        server.answers = ["451 try again later"]
        loop.policy(eval=STOPS, notify=[receiver(loop, server)])
        assert "notify" not in loop.release(DIGITS / "2", code=3).stdout
        assert len(server.mails) == 1 and not server.mails[0].encrypted


def test_a_name_is_no_header(loop):
    """The name of the file comes from whoever exports models; it is in the text, where it is base64."""
    hostile = loop.folder / "digits\r\nBcc: evil@example.com\r\n\r\nécrit"
    hostile.mkdir()
    (hostile / "model.onnx").write_bytes((DIGITS / "2/model.onnx").read_bytes())
    with MailServer() as server:
        loop.policy(eval=STOPS, notify=[receiver(loop, server)])
        loop.release(hostile, code=3)
        [mail] = server.mails
    assert mail.receivers == TO and mail.message["bcc"] is None and "evil" not in str(mail.message["subject"])
    assert b"evil" not in mail.raw.split(b"\r\n\r\n")[0] and "écrit" in next(mail.message.iter_parts()).get_content()


@pytest.fixture
def deaf():
    """A port whose server takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("fault, words", [("away", "connect"), ("login", "535"), ("authority", "certificate"), ("no tls", "SSL"), ("receiver", "550"), ("deaf", "imeout")])
def test_a_mail_server_that_fails_is_named_and_changes_nothing(loop, authority, deaf, fault, words):
    with MailServer(None if fault in ("no tls", "receiver") else authority) as server:
        entry = receiver(loop, server, authority if fault != "receiver" else None)
        if fault == "away":
            entry["mail"] = f"smtp://localhost:{free_port()}"
        elif fault == "deaf":
            entry["mail"] = f"smtp://127.0.0.1:{deaf}"
        elif fault == "login":
            (loop.folder / "mail.password").write_text("another\n")
        elif fault == "authority":
            del entry["ca"]
        elif fault == "receiver":
            server.refused = [TO[1]]
        loop.policy(eval=STOPS, notify=[entry])
        done = loop.release(DIGITS / "2", code=3)
        assert server.mails == []
    line = next(line for line in done.stdout.splitlines() if "notify" in line)
    assert f"the receiver at {entry['mail']} is not notified: " in line and words in line, line
    assert PASSWORD not in done.stdout + done.stderr and len(loop.records()) == 1 and not loop.journal().exists()


MAIL = 'mail: "smtp://mail:587", from: a@b.c, to: [d@e.f]'


@pytest.mark.parametrize("entry, words", [
    ("mail: mail.corp, from: a@b.c, to: [d@e.f]", "must be smtp://HOST:PORT"), ('mail: "smtp://mail.corp", from: a@b.c, to: [d@e.f]', "must be smtp://HOST:PORT"),
    ('mail: "smtp://u:p@mail:25", from: a@b.c, to: [d@e.f]', "must be smtp://HOST:PORT"), ('mail: "smtp://mail:25/x", from: a@b.c, to: [d@e.f]', "must be smtp://HOST:PORT"),
    ('mail: "smtp://mail:587", from: "a@b.c\\r\\nBcc: x@y.z", to: [d@e.f]', "must be an address"), ('mail: "smtp://mail:587", from: a@b.c, to: ["d@e.f> SIZE=1"]', "must be an address"),
    ('mail: "smtp://mail:587", from: a@b.c, to: []', "must be a list of 1 to 100"), ('mail: "smtp://mail:587", to: [d@e.f]', "key 'from' is missing"),
    (MAIL + ", user: u", "needs either 'password'"), (MAIL + ", user: u, password: no.file", "no.file"), (MAIL + ", user: u, passwordVariable: NOBODY_SETS_IT", "NOBODY_SETS_IT is not set"),
    (MAIL + ", password: p", "a password needs 'user'"), (MAIL + ", user: u, passwordVariable: PATH, tls: none", "would send the password as it is"),
    ('mail: "smtps://mail:465", from: a@b.c, to: [d@e.f], tls: none', "contradicts smtps"), (MAIL + ", tls: maybe", "required, none"), (MAIL + ", cc: x", "unknown key 'cc'"),
])
def test_a_bad_entry_is_named(tmp_path, entry, words):
    assert words in refusal(tmp_path, GOOD + f"notify: [{{{entry}}}]\n")


def test_others_cannot_read_the_password(tmp_path):
    (tmp_path / "open.password").write_text("x")
    (tmp_path / "open.password").chmod(0o644)
    assert "open.password" in refusal(tmp_path, GOOD + f"notify: [{{{MAIL}, user: u, password: open.password}}]\n")
