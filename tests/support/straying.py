"""Steps that leave their worker in all ways that a program can: they fork, daemonize, exec, scribble and linger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step

_BACKGROUND = "import sys, time, pathlib; time.sleep(30); pathlib.Path(sys.argv[1]).write_text('late')"


class Stray(Step):
    """Writes its text, and misbehaves as a process on the way."""

    makes: ClassVar[str] = "text"
    how: str
    text: str = "mine"

    def run(self, out: Path) -> Report:
        (out / "text.txt").write_text(self.text)
        getattr(self, self.how.replace("-", "_"))(out)
        return {"pid": os.getpid(), "text": self.text}

    def nothing(self, out: Path) -> None:
        """Do no harm."""

    def fork_and_return(self, out: Path) -> None:
        os.fork()

    def fork_and_wait(self, out: Path) -> None:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)

    def fork_and_exit(self, out: Path) -> None:
        """Fork as a program should: the copy ends by itself."""
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)

    def daemonize(self, out: Path) -> None:
        """Go on in another process and session, as daemons do."""
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)

    def daemonize_and_return(self, out: Path) -> None:
        """Return at once in a process that its parent has left."""
        if os.fork():
            os._exit(0)

    def exec(self, out: Path) -> None:
        os.execv("/bin/true", ["/bin/true"])

    def close_all(self, out: Path) -> None:
        """Close every descriptor, the usual first act of a daemon."""
        os.closerange(3, 4096)

    def close_standard(self, out: Path) -> None:
        os.closerange(0, 4096)

    def scribble(self, out: Path) -> None:
        for number in range(3, 1024):
            try:
                os.write(number, b'{"id": "x", "pid": 1, "answer": "{}"}\\njunk\\n')
            except OSError:
                continue

    def child_keeps_all(self, out: Path) -> None:
        """Leave a program that inherits every descriptor, in a session of its own, and die."""
        subprocess.Popen(["sleep", "60"], close_fds=False, start_new_session=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def late_child(self, out: Path) -> None:
        """Leave a program that writes into the output much later."""
        subprocess.Popen([sys.executable, "-c", _BACKGROUND, str(out / "late.txt")], start_new_session=True)

    def late_thread(self, out: Path) -> None:
        """Leave a thread that writes into the output for as long as it lives."""

        def write() -> None:
            while True:
                (out / "late.txt").write_text(str(time.monotonic()))

        threading.Thread(target=write, daemon=True).start()
        while not (out / "late.txt").exists():
            time.sleep(0.001)

    def waiting_thread(self, out: Path) -> None:
        """Leave a thread for which Python itself would wait."""
        threading.Thread(target=time.sleep, args=(60,)).start()

    def signal_group(self, out: Path) -> None:
        os.killpg(0, signal.SIGKILL)
