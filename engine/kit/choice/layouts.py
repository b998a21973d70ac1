"""Layouts: the measured latencies of the two layouts of a package, and the choice between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import StepError
from engine.kit.bench.report import ServerReport
from engine.kit.choice.candidates import Latency, Lead
from engine.reporting import TypedReport
from engine.system import regular
from engine.text import lists

_FILE = "layout.json"
"""The file beside a built model that names the layout of its package; it holds no figures."""
_LAYOUT, _PADDING = "layout", "padding"


@dataclass(frozen=True)
class TimedLayout:
    """The latencies of a package in one layout, through a server; none where there was nothing to compare with."""

    latencies: tuple[Latency, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LayoutsReport(TypedReport):
    """The measured layouts by their names, with the CPU, the number of threads and the server."""

    cpu: str
    threads: int
    layouts: Mapping[str, TimedLayout]
    absent: Mapping[str, str] = field(default_factory=dict)
    """The layouts that the package cannot have, with the reasons."""
    paddings: Mapping[str, TimedLayout] = field(default_factory=dict)
    """Texts of different lengths from several clients at once, without padding and padded to buckets, in the faster
    layout; empty for a recipe that names its padding.
    """
    server: ServerReport | None = None
    """The server that measured; None where one layout alone is possible, and none was started."""


@dataclass(frozen=True, kw_only=True)
class LayoutReport(TypedReport):
    """The chosen layout and padding, and the figures that decided."""

    layout: str
    padding: str = "none"
    lead: Lead | None = None
    """How many times faster `fused` answers than `ensemble`; None where it was not measured."""
    padding_lead: Lead | None = None
    """How many times faster requests of several clients are answered with padding; None where it was not measured."""
    absent: Mapping[str, str] = field(default_factory=dict)
    cpu: str
    threads: int
    shapes: tuple[Mapping[str, int], ...] = ()
    server: ServerReport | None = None

    def lines(self) -> Iterator[str]:
        """Yield the choice and its reason as lines of text."""
        yield f"layout: {self.layout}, padding: {self.padding}"
        for name, reason in self.absent.items():
            yield f"{name} is not possible: {reason}"
        if self.lead is not None:
            yield f"fused answers {self.lead} as fast as ensemble"
        if self.padding_lead is not None:
            yield f"padding to buckets answers mixed lengths of several clients {self.padding_lead} as fast as none"
        if self.lead is not None or self.padding_lead is not None:
            where = f" at {lists.counted(len(self.shapes), 'shape')}" if self.shapes else ""
            yield f"measured interleaved{where} on {self.cpu}, {lists.counted(self.threads, 'thread')}"


def write(directory: Path, layout: str, padding: str) -> None:
    """Write the names of the chosen layout and padding beside the model in `directory`."""
    (directory / _FILE).write_text(json.dumps({_LAYOUT: layout, _PADDING: padding}) + "\n", "utf-8")


def read(directory: Path) -> tuple[str, str]:
    """Return the layout and the padding that were chosen for a model. Raises StepError where no file says it."""
    path = directory / _FILE
    try:
        chosen = json.loads(regular.read(path))
        return str(chosen[_LAYOUT]), str(chosen[_PADDING])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(f"nothing says which layout was chosen: {_FILE} cannot be read", [f"{path}: {error}"]) from None
