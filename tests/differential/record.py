"""Asks a real Triton everything in asked.py, asked_grpc.py and asked_control.py and keeps its answers in recorded.jsonl.gz, which the tests replay against Serin.

    deploy/install-deps --tests --bench && .deps/venv/bin/python tests/differential/record.py
"""

import gzip
import pathlib
import re
import tempfile

import asked
import asked_control
import asked_grpc
import asking
from triton import Triton

RECORDED = pathlib.Path(__file__).parent / "recorded.jsonl.gz"


def answers_to(exchanges, folder):
    """One Triton after the other, each until it is asked what ends it, or what is asked of one that is started otherwise."""
    while exchanges:
        kind = exchanges[0].get("server")
        with Triton(folder / str(len(exchanges)), *(asked_control.TRITON if kind else ())) as server, asking.channel_to(server.grpc) as channel:
            while exchanges and exchanges[0].get("server") == kind:
                exchange = exchanges.pop(0)
                answer = asking.ask(server.http, channel, exchange)
                ended = "broken" in answer and server.ended()
                yield exchange, {"ended": True} if ended else answer
                if ended:
                    print(f"{exchange['name']} ends tritonserver")
                    break


def main():
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        lines = []
        for exchange, answer in answers_to([*asked.all_asked(), *asked_grpc.all_asked(), *asked_control.all_asked()], pathlib.Path(folder)):
            line = asking.to_line({**exchange, "answer": answer})
            lines.append(re.sub(rf"{folder}/\d+", "REPOSITORY", line))
    with open(RECORDED, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        packed.write("".join(line + "\n" for line in lines).encode())
    print(f"{len(lines)} exchanges, {RECORDED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
