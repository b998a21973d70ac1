"""Licences: what is stated about the licence of a model, and whether a policy's list allows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

NOT_KNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class LicenseStatement:
    """A statement about the licence: `text` as it is written, `by` whom, and its SPDX expression where it has one."""

    text: str
    by: str
    spdx: str | None = None
    link: str | None = None


@dataclass(frozen=True, kw_only=True)
class Licensed:
    """A model or a tokenizer: its source, its revision, and all statements about its licence."""

    role: str
    """`model` or `tokenizer`."""
    source: str
    revision: str | None = None
    statements: tuple[LicenseStatement, ...] = ()
    files: tuple[str, ...] = ()
    """The names of the texts of licences and notices in the package."""

    @property
    def license(self) -> str:
        """The licence in one line: all statements, or `not known`."""
        return " and ".join(dict.fromkeys(each.spdx or each.text for each in self.statements)) or NOT_KNOWN

    def refusals(self, names: Collection[str]) -> list[str]:
        """Return why a list of licences does not allow this one; several statements must all be allowed."""
        if not self.statements:
            return [f"the licence of the {self.role} is not known ({self.source})"]
        return [
            f"the licence of the {self.role} is {each.spdx or f'{each.text!r}, which is no SPDX id'} ({each.by})"
            for each in self.statements
            if each.spdx is None or not allowed(each.spdx, names)
        ]


def allowed(expression: str, names: Collection[str]) -> bool:
    """Tell whether a list of licences allows a canonical SPDX expression.

    Of `A OR B` one is enough, of `A AND B` both must be listed. AND binds tighter than OR. `A WITH E` is one name.
    """
    tokens = re.findall(r"[()]|[^()\s]+(?: WITH [^()\s]+)?", expression)

    def either() -> bool:
        result = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            result = both() or result
        return result

    def both() -> bool:
        result = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            result = one() and result
        return result

    def one() -> bool:
        name = tokens.pop(0)
        if name != "(":
            return name in names
        result = either()
        tokens.pop(0)
        return result

    return either()
