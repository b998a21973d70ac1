"""Licences: what is stated about the licence of a model, and whether a policy's list allows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from engine.recipe.fields import Text, wrong
from engine.text import suggestions

NOT_KNOWN = "not known"
OWN_LICENSE = "LicenseRef-"
"""The prefix by which SPDX names a licence that is not in its list."""


def canonical(text: str) -> str | None:
    """Return an SPDX expression in SPDX's own spelling, such as `Apache-2.0` for `apache-2.0`; None for other texts."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None


def _listed(name: str) -> str:
    """Return an id of a policy's list in SPDX's spelling. Raises pydantic's error for a text that is no single id."""
    known = canonical(name)
    if known is None:
        near = suggestions.nearest(name, _ids())
        hint = (
            suggestions.did_you_mean(f"`{near[0]}`") if near else f"a licence of its own is written {OWN_LICENSE}NAME"
        )
        raise wrong(f"names {name!r}, which is no licence of the SPDX list", hint)
    if re.search(r" (AND|OR) |[()]", known):
        raise wrong(f"has the expression {name!r}; a list of single licences is meant", "write each licence as an item")
    return known


def _ids() -> list[str]:
    """Return the ids of the SPDX list. The module is private to `packaging`; without it there is no hint."""
    try:
        from packaging.licenses._spdx import LICENSES
    except ImportError:
        return []
    return [each["id"] for each in LICENSES.values()]


License = Annotated[Text, AfterValidator(_listed)]
"""A licence in a policy's list, as an SPDX id."""


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
    Python evaluates the expression, as `packaging` does to check its form: each name stands there as True or False.
    """
    listed = {" AND ": " and ", " OR ": " or ", "(": "(", ")": ")"}
    parts = re.split(r"( AND | OR |[()])", expression)
    return bool(eval("".join(listed.get(part) or (part and str(part in names)) for part in parts)))  # noqa: S307
