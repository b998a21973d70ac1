"""License ids: the ids of SPDX that the list of a policy may have, in SPDX's own spelling."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from engine.recipe.fields import Text, wrong
from engine.text import suggestions

OWN = "LicenseRef-"
"""The prefix by which SPDX names a licence that is not in its list."""


def canonical(text: str) -> str | None:
    """Return an SPDX expression in SPDX's own spelling, such as `Apache-2.0` for `apache-2.0`; None for other texts."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None


def listed(name: str) -> str:
    """Return an id of a policy's list in SPDX's spelling. Raises pydantic's error for a text that is no single id."""
    known = canonical(name)
    if known is None:
        near = suggestions.nearest(name, _ids())
        hint = suggestions.did_you_mean(f"`{near[0]}`") if near else f"a licence of its own is written {OWN}NAME"
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


License = Annotated[Text, AfterValidator(listed)]
"""A licence in a policy's list, as an SPDX id."""
