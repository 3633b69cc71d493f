"""A mail server on loopback, of aiosmtpd: it keeps what it gets.

    with MailServer(authority) as server:            # STARTTLS, by an authority of certificates.py
        server.url                                   # "smtp://localhost:25011"
        server.mails                                 # [Received(sender, receivers, message, encrypted, user)]
"""

import dataclasses
import email
import email.message
import email.policy

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from conftest import free_port

USER, PASSWORD = "serin", "a secret word"


@dataclasses.dataclass(frozen=True)
class Received:
    sender: str
    receivers: list
    raw: bytes
    encrypted: bool
    user: object

    @property
    def message(self) -> email.message.EmailMessage:
        return email.message_from_bytes(self.raw, policy=email.policy.default)


class MailServer:
    """answers: what the next mails are answered after their data, instead of 250. implicit: TLS from the beginning."""

    def __init__(self, authority=None, implicit=False, login=True):
        self.mails, self.answers, self.refused = [], [], []
        context = authority.server(authority.issue("mail")) if authority else None
        options = {"tls_context": context, "require_starttls": True} if context and not implicit else {}
        if login and context:
            options |= {"authenticator": self._authenticate, "auth_required": True, "auth_require_tls": not implicit}
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port(), server_hostname="localhost", decode_data=False,
                                      ssl_context=context if implicit else None, **options)
        self.url = f"{'smtps' if implicit else 'smtp'}://localhost:{self._controller.port}"

    def _authenticate(self, server, session, envelope, mechanism, data):
        good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=good, handled=False, auth_data=data.login if good else None)

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refused:
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        answer = self.answers.pop(0) if self.answers else "250 taken"
        if answer.startswith("250"):
            self.mails.append(Received(envelope.mail_from, list(envelope.rcpt_tos), envelope.content, server.transport.get_extra_info("ssl_object") is not None,
                                       session.auth_data))
        return answer

    def __enter__(self):
        self._controller.start()
        return self

    def __exit__(self, *_):
        self._controller.stop()
