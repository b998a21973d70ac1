"""Edited recipe: a recipe's own text with some fields changed; what the user has written around them stays."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from engine.drafts import yaml_edit
from engine.drafts.draft import comment_lines
from engine.errors import UsageError
from engine.recipe import extends, recipe_file
from engine.recipe.load import OpenedRecipe, opened
from engine.recipe.matrix import variants
from engine.recipe.node import Node, merged, plain, put, without
from engine.recipe.overrides import ONLY, SET, assignments, same, texts
from engine.recipe.yaml_text import parse
from engine.store import disk
from engine.system import regular
from engine.text import lists
from engine.text.places import Text

_OURS = re.compile(r"# [^\n]*`recipe (tune|bisect)`[^\n]*\n(#[^\n]*\n)*\n?")
"""The comments that a search writes at the top of a recipe, and the empty line below them."""
_MODELINE = "# yaml-language-server:"
_BOM = "\ufeff"


def edited(
    path: Path,
    changes: Mapping[str, object],
    head: Sequence[str],
    *,
    set: Sequence[str] = (),  # noqa: A002  the command line's word
    only: Sequence[str] = (),
    allow: Sequence[Path] = (),
) -> str:
    """Return the text of the recipe at `path` with other values of some fields, which are named as for `--set`.

    None removes a field. `set` are assignments of the command line, before the changes. The lines of `head` are
    comments at the top. If the recipe has a matrix, `only` chooses the variant that it becomes. Raises RecipeError for
    a wrong recipe or a wrong change, and UsageError for a text that cannot be changed.
    """
    recipe, content = opened(path, allow=allow), recipe_file.read(path, str(path)).content
    root, files = recipe.document.root, recipe.document.files
    sets = (*set, *texts(SET, changes))
    expected = recipe.variants(set=sets, only=only)
    if len(expected) > 1:
        hint = f"choose one: --only {expected[0].variant.replace(',', ' --only ')}"
        raise UsageError(f"{path} has {lists.counted(len(expected), 'variant')}, and one is written", hint=hint)
    assigned = assignments(SET, sets)
    target = variants(root, assigned, assignments(ONLY, only))[0].root
    name = root.child("name")
    if name is not None and root.child("matrix") is None and all(each.path != ("name",) for each in assigned):
        target = put(target, ["name"], name)  # with its placeholders
    parent = extends.document(files[1], recipe.bounds).root if len(files) > 1 else None

    def read(text: str) -> Node:
        own = without(parse(Text(str(path), text)), extends.VERSION_FIELD, extends.ABSTRACT, "extends")
        return own if parent is None else merged(parent, own)

    text = content.replace("\r\n", "\n")
    if yaml_edit.has_alias(text):
        raise _not_changed(path, changes, "write its aliases (*name) out")
    seen = {text}
    while (difference := next(_differences(read(text), target), None)) is not None:
        text = _with(text, *difference)
        if text in seen:
            raise _not_changed(path, [".".join(difference[0])])
        seen.add(text)
    text = _headed(text, head)
    result = OpenedRecipe(path, extends.Document(read(text), files), recipe.bounds).variants()
    if [each.recipe for each in result] != [expected[0].recipe]:
        raise _not_changed(path, changes)
    return text.replace("\n", "\r\n") if "\r\n" in content else text


def refuse_place(place: Path, recipe: Path, allow: Sequence[Path] = ()) -> None:
    """Raise UsageError where `write` would refuse a place: a search asks before it starts."""
    if os.path.realpath(place.parent) != os.path.realpath(recipe.parent):
        hint = f"write {recipe.with_name(place.name)}"
        raise UsageError(f"{place} lies in another folder than {recipe}, whose paths are relative", hint=hint)
    is_own = os.path.realpath(place) == os.path.realpath(recipe)
    if is_own and opened(recipe, allow=allow).document.root.child("matrix") is not None:
        raise UsageError(f"{recipe} has a matrix, and one variant is written", hint="write another file")
    if is_own or not os.path.lexists(place):
        return
    if not place.is_file() or not _OURS.match(regular.read(place)[:1000].decode("utf-8", "replace").lstrip(_BOM)):
        raise UsageError(f"{place} exists, and no search has written it", hint="write another file")


def write(text: str, place: Path, recipe: Path, allow: Sequence[Path] = ()) -> None:
    """Write an edited recipe into the recipe's folder: the whole file, or none. Raises UsageError."""
    refuse_place(place, recipe, allow)
    place = Path(os.path.realpath(place))
    try:
        begins = codecs.BOM_UTF8 if regular.read(recipe).startswith(codecs.BOM_UTF8) else b""
        disk.replace(place, begins + text.encode(), fresh=place.with_name(f".{place.name}.{os.getpid()}"))
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}", hint="write another file") from None


def _differences(recipe: Node, target: Node) -> Iterator[tuple[yaml_edit.Path, Node | None]]:
    """Yield the path of each field in which a recipe is not what it has to become, and the field's value there."""
    for name in dict.fromkeys((*(recipe.mapping or ()), *(target.mapping or ()))):
        one, other = recipe.child(name), target.child(name)
        if one and other and one.mapping is not None and other.mapping is not None:
            yield from (((name, *path), value) for path, value in _differences(one, other))
        elif not same(one, other):
            yield (name,), other


def _with(text: str, path: yaml_edit.Path, value: Node | None) -> str:
    """Return a text with the value of a field; None removes it, from the text or else, by `null`, from a parent's."""
    if value is None and (shorter := yaml_edit.without(text, path)) != text:
        return shorter
    return yaml_edit.with_value(text, path, None if value is None else plain(value))


def _headed(text: str, head: Sequence[str]) -> str:
    """Return a text with lines of comments at the top, in place of those that a search has written there before."""
    first, line_end, rest = text.partition("\n") if text.startswith(_MODELINE) else ("", "", text)
    rest = _OURS.sub("", rest, count=1) if _OURS.match(rest) else rest
    block = "".join(f"{line}\n" for each in head for line in comment_lines(each))
    return f"{first}{line_end}{block}{chr(10) if block else ''}{rest}"


def _not_changed(path: Path, fields: Iterable[str], hint: str = "change it by hand") -> UsageError:
    """Return the error for a text that is written in a way that this program cannot change; nothing was written."""
    named = ", ".join(f"`{each}`" for each in fields)
    return UsageError(f"the text of {path} cannot be changed at {named}", hint=hint)
