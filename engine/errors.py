"""The errors that users meet. Each error has a message, lines with details, and a hint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from engine.text.places import Position


class Exit(IntEnum):
    """Exit codes of the program. If several exit codes apply to a run, `Exit.worst` chooses one of the codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    JUDGED = 4
    INTERRUPTED = 130

    @staticmethod
    def worst(codes: Sequence[Exit]) -> Exit:
        """Return the first of the exit codes 130, 2, 1, 4, 3 and 0 that `codes` contains; 0 if `codes` is empty."""
        order = (Exit.INTERRUPTED, Exit.USAGE, Exit.FAILED, Exit.JUDGED, Exit.WAITING, Exit.OK)
        return next((code for code in order if code in codes), Exit.OK)


class UserError(Exception):
    """An error that the user can repair.

    `what` is the error message: one line. `facts` are short lines with details, printed under the message. `hint` is a
    line that tells the user how to repair the error.
    """

    exit = Exit.FAILED

    def __init__(self, what: str, facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.facts = tuple(facts)
        self.hint = hint

    def fields(self) -> dict[str, object]:
        """Return the error as a dictionary for JSON."""
        return {"what": self.what, "facts": list(self.facts), "hint": self.hint}

    def __str__(self) -> str:
        lines = [self.what, *(f"  {line}" for fact in self.facts for line in fact.splitlines())]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors behind it, the outermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        yield current
        current = current.__cause__ or current.__context__


class StepError(UserError):
    """A step failed (exit 1)."""


class FieldError(StepError):
    """A field of the recipe does not fit the model, which only a step knows (exit 2). A build adds the field's place.

    `path` leads to the field, as "quantize", "keep_in", "fp32", 0.
    """

    exit = Exit.USAGE

    def __init__(self, what: str, path: Sequence[str | int], facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what, facts, hint)
        self.path = tuple(path)

    def fields(self) -> dict[str, object]:
        """Return the error as a dictionary for JSON, with the path of the field."""
        return {**super().fields(), "path": list(self.path)}


class JudgementError(UserError):
    """A measurement is outside a bound of the recipe (exit 4). The report with the measurement stays in the store."""

    exit = Exit.JUDGED


class PrecisionError(JudgementError):
    """Too little of a model is in the precision of the recipe. A build adds what earlier reports say about it."""


class StoreError(UserError):
    """The store cannot be read or written (exit 1)."""


class UnusableStoreError(StoreError):
    """The folder that the command line names cannot be a store, or nothing can be written there (exit 2)."""

    exit = Exit.USAGE


class HardwareError(UserError):
    """The recipe is right, but a job needs hardware that this machine lacks (exit 3)."""

    exit = Exit.WAITING


class UsageError(UserError):
    """The command line is wrong (exit 2)."""

    exit = Exit.USAGE


class LockError(UserError):
    """A build with a lock cannot run: the lock is missing, or differs from the present state (exit 2)."""

    exit = Exit.USAGE


class RecipeError(UserError):
    """A recipe or a lock is wrong (exit 2). The error message has the place of the error and its line."""

    exit = Exit.USAGE

    def __init__(self, what: str, position: Position, *, facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what, facts, hint)
        self.args = (what, position)  # unpickling calls the class with these arguments
        self.position = position

    def __str__(self) -> str:
        head, *rest = super().__str__().split("\n")
        shown = []
        if line := self.position.shown_line:
            gutter = f"{self.position.line} | "
            caret = " " * (len(gutter) + self.position.column - 1) + "^"
            shown = [gutter + line, caret]
        return "\n".join([f"{self.position}: {head}", *shown, *rest])

    def fields(self) -> dict[str, object]:
        """Return the error as a dictionary for JSON, with its place."""
        return {**super().fields(), "position": str(self.position)}


class RecipesError(UserError):
    """Several recipes are wrong; the error shows the error of each recipe."""

    def __init__(self, errors: Sequence[UserError], *, recipes: int) -> None:
        super().__init__(f"{len(errors)} of {recipes} recipes are wrong, so nothing was done")
        self.args = (errors,)
        self.errors = tuple(errors)
        self.exit = Exit.worst([error.exit for error in errors])

    def fields(self) -> dict[str, object]:
        """Return the error as a dictionary for JSON; `errors` holds the errors of the recipes."""
        return {**super().fields(), "errors": [error.fields() for error in self.errors]}

    def __str__(self) -> str:
        return "\nerror: ".join([*map(str, self.errors), self.what])


class Refusals:
    """Collects the errors of wrong recipes, so that a command reports every wrong recipe and not only the first."""

    def __init__(self) -> None:
        self.by_path: dict[Path, UserError] = {}

    @contextmanager
    def collecting(self, recipe: Path) -> Iterator[None]:
        """Keep a UserError of the block as the error of the file `recipe`."""
        try:
            yield
        except UserError as error:
            self.by_path.setdefault(recipe, error)

    def distinct(self) -> list[UserError]:
        """Return the errors, each text once: a wrong option of the command line is the same error for each recipe."""
        return list({str(error): error for error in self.by_path.values()}.values())

    def refuse(self, recipes: int) -> None:
        """Raise the error of a wrong recipe, or a RecipesError for several; `recipes` counts the recipes in all."""
        errors = self.distinct()
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise RecipesError(errors, recipes=recipes)
