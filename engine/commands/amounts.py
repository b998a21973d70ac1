"""Amounts on the command line: sizes, ages, counts, ports and seconds."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Mapping

from engine.text import quantities, sizes

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MOST_JOBS = 1024
"""Upper limit of the value of the option `--jobs`, larger than the number of CPUs of any machine."""
_LAST_PORT = 65535


def size(text: str) -> int:
    """Return the number of bytes that a text with a unit means: `20GB`, `512MiB`, `1.5g`. Raises ArgumentTypeError."""
    if sizes.lacks_unit(text):
        raise argparse.ArgumentTypeError(f"{text!r} has no unit: {sizes.hint(text)}")
    try:
        return sizes.parse(text.strip(), letters=True)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: write 20GB or 512MiB") from None


def age(text: str) -> float:
    """Return the seconds of an age: `30d`, `12h`, `2w`, `0`. Raises ArgumentTypeError, also for M (months?)."""
    return _time(text, "no age: write 30d, 12h or 2w", {"d": "days", "h": "hours"})


def duration(text: str) -> float:
    """Return the seconds of a duration: `30m`, `90s`, `2h`. Raises ArgumentTypeError, also for a capital M."""
    return _time(text, "no duration: write 30m, 90s or 2h", {"m": "minutes", "s": "seconds"})


def count(text: str) -> int:
    """Return the value of the option `--jobs`: how many jobs run, or files are read, at once."""
    return _within(text, _MOST_JOBS)


def port(text: str) -> int:
    """Return the port number that a command-line argument states. Raises ArgumentTypeError."""
    return _within(text, _LAST_PORT)


def positive(text: str) -> int:
    """Return the whole number that `text` holds, at least 1. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def seconds(text: str) -> float:
    """Return a number of seconds above 0, as a user writes it: `60`, `0.5`. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not _is_duration(number):
        hint = _hint(text, "_seconds", accepts=_is_duration)
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0{hint}")
    return number


def share(text: str) -> float:
    """Return a share from 0 to 1, as a user writes it: `0.01`. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not _is_share(number):
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1{_hint(text, accepts=_is_share)}")
    return number


def since(moment: float) -> str:
    """Return in words how much time has passed since the time stamp `moment`, in the largest fitting unit: "3 days"."""
    seconds = max(0.0, time.time() - moment)
    unit = next((unit for unit in ("w", "d", "h", "m") if seconds >= _SECONDS[unit]), "s")
    names = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    return f"{seconds / _SECONDS[unit]:.0f} {names[unit]}"


def _time(text: str, wrong: str, units: Mapping[str, str]) -> float:
    """Return the seconds of a number with a unit. `wrong` ends the error message; `units` are proposed for a number."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)", text.strip())
    if match is None or len(match[2]) > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is {wrong}")
    number, unit = match[1], match[2]
    if not unit and float(number):
        proposed = ", ".join(f"{number}{each} for {name}" for each, name in units.items())
        raise argparse.ArgumentTypeError(f"{text!r} has no unit: write {proposed}")
    if unit == "M":
        raise argparse.ArgumentTypeError(f"{text!r} may mean minutes or months: write {number}m, or the days as in 30d")
    if unit and unit.lower() not in _SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is {wrong}")
    return float(number) * _SECONDS[unit.lower() or "s"]


def _is_duration(number: float) -> bool:
    return 0 < number < float("inf")


def _is_share(number: float) -> bool:
    return 0 <= number <= 1


def _hint(text: str, name: str = "", *, accepts: Callable[[float], bool]) -> str:
    """Return the end of an error message that writes `text`, such as "60s" or "1%", as a plain number; else ""."""
    hint = quantities.hint(text, name, accepts=accepts)
    return f": {hint}" if hint else ""


def _within(text: str, most: int) -> int:
    """Return the whole number that `text` holds, from 1 to `most`. Raises ArgumentTypeError."""
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number{_hint(text, accepts=float.is_integer)}")
    number = int(text)
    if not 1 <= number <= most:
        raise argparse.ArgumentTypeError(f"{number} is not from 1 to {most}")
    return number
