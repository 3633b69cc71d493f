"""A command on a pseudo terminal, seen through an emulated one."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

import pyte

from conftest import wait_until


class Terminal:
    """A command on a pseudo terminal; `screen` is what a person sees."""

    def __init__(self, *command, columns=100, lines=30, term="xterm-256color"):
        self.screen = pyte.Screen(columns, lines)
        self.raw = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": term})
        os.close(slave)
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        stream = pyte.ByteStream(self.screen)
        while True:
            try:
                some = os.read(self._master, 65536)
            except OSError:  # what Linux says once nobody holds the other end
                return
            with self._lock:
                self.raw += some
                stream.feed(some)

    @property
    def lines(self):
        with self._lock:
            return [line.rstrip() for line in self.screen.display if line.strip()]

    def wait_for(self, text, seconds=30):
        wait_until(lambda: any(text in line for line in self.lines), seconds, f"'{text}' on the screen")

    def end(self, timeout=30):
        code = self.process.wait(timeout)
        self._reader.join(10)
        os.close(self._master)
        return code
