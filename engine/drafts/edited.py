"""Edited recipe: a recipe's own text with some fields changed; what the user has written around them stays."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from engine.drafts import own_fields, yaml_edit
from engine.drafts.draft import comment_lines
from engine.errors import UsageError
from engine.recipe import extends, recipe_file
from engine.recipe.extends import Document
from engine.recipe.load import OpenedRecipe, opened
from engine.recipe.matrix import variants
from engine.recipe.node import Node, merged, plain, put, without
from engine.recipe.overrides import ONLY, SET, assignments, texts
from engine.recipe.yaml_text import parse
from engine.store import disk
from engine.text import lists
from engine.text.places import Text

_OURS = re.compile(r"# [^\n]*`recipe (tune|bisect)`[^\n]*\n(#[^\n]*\n)*\n?")
"""The comments that a search writes at the top of a recipe, and the empty line below them."""
_MODELINE = "# yaml-language-server:"
_BOM = "\ufeff"


def edited(
    path: Path,
    changes: Mapping[str, object],
    notes: Mapping[str, str],
    head: Sequence[str],
    drop: Collection[str] = (),
    *,
    only: Sequence[str] = (),
    allow: Sequence[Path] = (),
) -> str:
    """Return the text of the recipe at `path` with other values of some fields, which are named as for `--set`.

    None removes a field, and so does `drop`. `notes` are comments behind fields; the lines of `head` are comments at
    the top. If the recipe has a matrix, `only` chooses the variant that it becomes. Raises RecipeError for a wrong
    recipe or a wrong change, and UsageError for a text that cannot be changed so.
    """
    recipe, content = opened(path, allow=allow), recipe_file.read(path, str(path)).content
    _refuse_text(path, content)
    text = content.replace("\r\n", "\n")
    root, files = recipe.document.root, recipe.document.files
    for field in drop:
        root = put(root, field.split("."), Node(None, root.at))
    asked = texts(SET, changes)
    expected = recipe._replace(document=recipe.document._replace(root=root)).variants(set=asked, only=only)
    if len(expected) > 1:
        hint = f"choose one: --only {expected[0].variant.replace(',', ' --only ')}"
        raise UsageError(f"{path} has {lists.counted(len(expected), 'variant')}, and one is written", hint=hint)
    target = plain(variants(root, assignments(SET, asked), assignments(ONLY, only))[0].root)
    if root.child("matrix") is None and "name" not in changes:
        target["name"] = plain(root)["name"]  # with its placeholders
    parent = extends.document(files[1], recipe.bounds).root if len(files) > 1 else None
    inherited = {} if parent is None else plain(parent)
    while (change := own_fields.difference(plain(_own(path, text)), inherited, target)) is not None:
        where, value = change
        before, text = (
            text,
            yaml_edit.without(text, where) if value is own_fields.GONE else yaml_edit.with_value(text, *change),
        )
        if text == before:
            raise _not_changed(path, where)
    for field, note in notes.items():
        text = yaml_edit.with_note(text, _segments(field), note)
    text = _headed(text, head)
    own = _own(path, text)
    document = Document(own if parent is None else merged(parent, own), files)
    [result] = OpenedRecipe(path, document, recipe.bounds).variants()
    if result.recipe != expected[0].recipe:
        raise _not_changed(path, tuple(changes))
    return text.replace("\n", "\r\n") if "\r\n" in content else text


def refuse_place(place: Path, recipe: Path) -> None:
    """Raise UsageError where `write` would refuse a place: a search asks before it starts."""
    if os.path.realpath(place.parent) != os.path.realpath(recipe.parent):
        hint = f"write {recipe.with_name(place.name)}"
        raise UsageError(f"{place} lies in another folder than {recipe}, whose paths are relative", hint=hint)
    if not os.path.lexists(place) or os.path.realpath(place) == os.path.realpath(recipe):
        return
    if not place.is_file() or not _OURS.match(place.read_bytes()[:1000].decode("utf-8", "replace").lstrip(_BOM)):
        raise UsageError(f"{place} exists, and no search has written it", hint="write another file")


def write(text: str, place: Path, recipe: Path) -> None:
    """Write an edited recipe into the recipe's folder: the whole file, or none. Raises UsageError."""
    refuse_place(place, recipe)
    place = Path(os.path.realpath(place))
    try:
        begins = codecs.BOM_UTF8 if recipe.read_bytes().startswith(codecs.BOM_UTF8) else b""
        disk.replace(place, begins + text.encode(), fresh=place.with_name(f".{place.name}.{os.getpid()}"))
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}", hint="write another file") from None


def _refuse_text(path: Path, text: str) -> None:
    """Raise UsageError for a text in which a change would not stay where it is made."""
    if re.search(r"\r(?!\n)", text) or 0 < text.count("\r\n") < text.count("\n"):
        raise UsageError(f"{path} has line breaks of several kinds", hint="save it with one kind of line break")
    if yaml_edit.has_alias(text):
        what = f"{path} has aliases of YAML (*name): a change of one place would change others"
        raise UsageError(what, hint="write the values out")


def _own(path: Path, text: str) -> Node:
    """Return the recipe's own fields, without those of its parents."""
    return without(parse(Text(str(path), text)), extends.VERSION_FIELD, extends.ABSTRACT, "extends")


def _segments(field: str) -> yaml_edit.Path:
    """Return the path of a field, with numbers for the items of lists."""
    return tuple(int(each) if each.isdecimal() else each for each in field.split("."))


def _headed(text: str, head: Sequence[str]) -> str:
    """Return a text with lines of comments at the top, in place of those that a search has written there before."""
    first, line_end, rest = text.partition("\n") if text.startswith(_MODELINE) else ("", "", text)
    rest = _OURS.sub("", rest, count=1) if _OURS.match(rest) else rest
    block = "".join(f"{line}\n" for each in head for line in comment_lines(each))
    return f"{first}{line_end}{block}{chr(10) if block else ''}{rest}"


def _not_changed(path: Path, where: Sequence[str | int]) -> UsageError:
    """Return the error for a text that is written in a way that this program cannot change; nothing was written."""
    fields = ", ".join(f"`{each}`" for each in where)
    return UsageError(
        f"the text of {path} cannot be changed at {fields}", hint="change it by hand, or write it in block style"
    )
