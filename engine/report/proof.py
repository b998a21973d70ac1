"""Proof: the outcome of each part of `recipe prove`, as a table for people and as JSON that is written part by part."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from engine.errors import Exit, UserError
from engine.report import grid
from engine.store import disk
from engine.text import distribution, lists

PartState = Literal["passed", "failed", "did not run", "interrupted"]
_NOWHERE = "-"
"""Where a part ran that did not run."""


@dataclass
class PartOutcome:
    """The outcome of one part for one variant: what ran it, a line about it, and its figures as JSON."""

    recipe: str
    part: str
    device: str
    """The GPU that the part ran on, as its driver names it, or "CPU"."""
    state: PartState = "interrupted"
    text: str = ""
    figures: list[Mapping[str, object]] = field(default_factory=list)
    trace: str = ""
    """Where in the program an unexpected error came from."""


@dataclass
class Proof:
    """The outcomes so far, and the file that has them after each part."""

    file: Path
    facts: Mapping[str, str]
    outcomes: list[PartOutcome] = field(default_factory=list)
    is_interrupted: bool = False
    """Whether the user interrupted the proof, in a part or between two parts."""

    @contextlib.contextmanager
    def part(self, recipe: str, name: str, device: str) -> Iterator[PartOutcome]:
        """Run the block as one part, whose outcome its error is; one with exit code 3 says that it did not run."""
        outcome = PartOutcome(recipe, name, device)
        self.outcomes.append(outcome)
        try:
            yield outcome
            outcome.state = "passed"
        except UserError as error:
            outcome.state = "did not run" if error.exit is Exit.WAITING else "failed"
            outcome.text = "; ".join([error.what, *error.facts, *filter(None, [error.hint])])
        except Exception as error:  # noqa: BLE001 - the other parts go on, and the bundle has the place of this error
            outcome.state, outcome.text = "failed", f"{type(error).__name__}: {error}"
            outcome.trace = traceback.format_exc()
        finally:
            self.save()
            print(f"{outcome.state}  {recipe}  {name}  {outcome.text}", file=sys.stderr, flush=True)

    def skip(self, recipe: str, name: str, reason: str) -> None:
        """Note that a part did not run."""
        self.outcomes.append(PartOutcome(recipe, name, "", "did not run", reason))
        self.save()

    def save(self) -> None:
        """Write the outcomes to the file."""
        disk.replace(self.file, self.text().encode(), fresh=self.file.with_name(f".{self.file.name}-{os.getpid()}"))

    def text(self) -> str:
        """Return the outcomes as JSON."""
        fields = {"version": distribution.running(), "machine": self.facts, "parts": [*map(asdict, self.outcomes)]}
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"

    def show(self) -> None:
        """Print the table of the outcomes, and how many parts ran where."""
        rows = [("recipe", "part", "ran on", "result")]
        rows += [(each.recipe, each.part, _place(each), ": ".join(filter(None, (each.state, each.text))))
                 for each in self.outcomes]  # fmt: skip
        grid.show(rows)
        ran = Counter(_place(each) for each in self.outcomes)
        places = ", ".join(f"{count} on {device}" for device, count in ran.items() if device != _NOWHERE)
        print(f"of {lists.counted(len(self.outcomes), 'part')} ran: {places or 'none'}")

    @property
    def exit(self) -> Exit:
        """The exit code: 130 after an interruption, 1 if a part failed, 3 if none passed, else 0."""
        if self.is_interrupted:
            return Exit.INTERRUPTED
        states = {each.state for each in self.outcomes}
        codes: dict[PartState, Exit] = {"failed": Exit.FAILED, "passed": Exit.OK}
        return next((code for state, code in codes.items() if state in states), Exit.WAITING)


def _place(outcome: PartOutcome) -> str:
    return outcome.device if outcome.state in ("passed", "failed") else _NOWHERE
