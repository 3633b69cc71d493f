"""An authority of the test's own, and what it signs, made with the openssl command.

    authority = Authority(tmp_path)
    server = authority.issue("server")                 # server.cert, server.key: paths; names localhost and 127.0.0.1
    ann = authority.issue("ann", names="URI:spiffe://corp/ann")
    context = authority.client(ann)                    # an ssl.SSLContext that believes it, and shows ann's certificate
"""

import dataclasses
import ssl
import subprocess


@dataclasses.dataclass(frozen=True)
class Pair:
    cert: str
    key: str

    def yaml(self, **more):
        return {"cert": self.cert, "key": self.key, **more}


def openssl(*arguments, stdin=None):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, input=stdin)


class Authority:
    def __init__(self, folder, name="authority"):
        self.folder = folder / name
        self.folder.mkdir()
        self.ca, self._key = str(self.folder / "ca.crt"), self.folder / "ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30, "-subj", f"/CN={name}",
                "-keyout", self._key, "-out", self.ca)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1", days=10, subject=None):
        """Over the one of that name, where there is one; negative days: expired. The files change one after the other, as with many tools."""
        pair = Pair(str(self.folder / f"{name}.crt"), str(self.folder / f"{name}.key"))
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"basicConstraints=CA:FALSE\nsubjectAltName={names}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject or f"/CN={name}", "-keyout", pair.key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-CAcreateserial", "-days", days, "-extfile", extensions,
                "-out", pair.cert)
        return pair

    def client(self, pair=None):
        context = ssl.create_default_context(cafile=self.ca)
        if pair:
            context.load_cert_chain(pair.cert, pair.key)
        return context

    def server(self, pair, ask=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        if ask:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
