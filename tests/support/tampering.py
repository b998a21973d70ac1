"""Steps that change the state of their process in many ways, and write down the state in which they began."""

from __future__ import annotations

import builtins
import contextlib
import decimal
import functools
import gc
import itertools
import json
import locale
import logging
import os
import pathlib
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import ClassVar

from engine.step import Step

_COUNT = itertools.count()
_CALLS: list[str] = []
_LETTERS = {"a": "A"}


@functools.lru_cache
def _first(text: str) -> int:
    return next(_COUNT)


class _Memory:
    """An object that a module keeps."""

    calls = 0


_MEMORY = _Memory()


class Tamper(Step):
    """Writes down what it sees of its process, and then changes something."""

    makes: ClassVar[str] = "text"
    seen: ClassVar[list[str]] = []
    how: str
    text: str = "mine"

    def run(self, out: Path) -> None:
        (out / "text.txt").write_text(json.dumps(self.view(), default=str))
        getattr(self, self.how.replace("-", "_"))()

    def view(self) -> list[object]:
        """Return everything by which an earlier job could shape this one's output."""
        torch = sys.modules.get("torch")
        return [
            self.text, dict(sorted(os.environ.items())), os.getcwd() and None, locale.setlocale(locale.LC_ALL),
            time.tzname, [str(each) for each in warnings.filters], signal.getsignal(signal.SIGUSR1), sys.path,
            os.path.basename("a/b"), oct(8), str(pathlib.PurePath("x")),
            threading.active_count(), str(decimal.getcontext()), sys.getrecursionlimit(), next(_COUNT), _CALLS,
            _LETTERS, _first("x"), _MEMORY.calls, self.seen, gc.isenabled(), logging.getLogger().level,
            None if torch is None else (str(torch.get_default_dtype()), torch.get_num_threads(), float(torch.rand(()))),
            sorted(os.listdir("/proc/self/fd")), sys.modules.get("json") is json, getattr(builtins, "extra", None),
            os.getpriority(os.PRIO_PROCESS, 0), signal.getitimer(signal.ITIMER_REAL)[0], sys.getswitchinterval(),
        ]  # fmt: skip

    def nothing(self) -> None:
        """Change nothing."""

    def environment(self) -> None:
        os.environ["TAMPERED"] = "1"
        os.environ.pop("PATH", None)

    def time_zone(self) -> None:
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()

    def place(self) -> None:
        os.chdir("/")
        os.umask(0o777)

    def language(self) -> None:
        """Speak another language, where there is one."""
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, "C.UTF-8")

    def warning_filters(self) -> None:
        warnings.simplefilter("error")

    def signals(self) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.2)

    def import_path(self) -> None:
        sys.path.insert(0, "/nowhere")
        sys.modules["json"] = sys.modules["os"]

    def patches(self) -> None:
        os.path.basename = lambda _: "patched"
        pathlib.PurePath.__str__ = lambda _: "patched"
        builtins.oct = lambda _: "patched"
        builtins.extra = True

    def threads(self) -> None:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

    def numbers(self) -> None:
        random.seed(7)
        decimal.getcontext().prec = 3
        sys.setrecursionlimit(5000)
        sys.setswitchinterval(0.5)

    def own_module(self) -> None:
        """Change what the step's own module keeps: containers, counters, caches, objects."""
        _CALLS.append("called")
        _LETTERS["a"] = "Z"
        _MEMORY.calls += 1
        next(_COUNT)
        self.seen.append("seen")

    def interpreter(self) -> None:
        gc.disable()
        logging.getLogger().setLevel(logging.DEBUG)
        sys.settrace(lambda *_: None)
        sys.stdout = None

    def descriptors(self) -> None:
        for _ in range(20):
            os.open("/", os.O_RDONLY)
        os.close(0)

    def priority(self) -> None:
        os.nice(5)

    def torch(self) -> None:
        import torch

        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        torch.manual_seed(3)
        torch.nn.functional.relu = torch.nn.functional.gelu
