"""The samples: their text counts, not their file's name, time and place."""

import os
from pathlib import Path

from mutations.actions import (
    aged,
    append,
    as_link,
    copy,
    mode,
    move,
    older,
    recipe,
    remove,
    replaced,
    rewrite,
    swap_text,
    touch,
    write,
)
from mutations.mutation import Action, changes, nothing
from mutations.projects import tensors

B, T, P = "bert", "tensors", "photos"
_SAMPLES = {"reference": "inputs.samples"}
_FILE = "samples.jsonl"


def _anew(says: str, *action: Action):
    return changes(says, B, *action, causes=_SAMPLES, spreads="validate")


def _drawn(seed: int) -> Action:
    """Write tensors anew, as many as before."""
    return lambda place: tensors(place.path("samples.npz"), seed=seed)


def _photo(says: str, *action: Action, rows: str):
    names = tuple(f"inputs.samples{f'/{name}' if name != 'names' else ''}" for name in rows.split())
    return changes(says, P, *action, causes={"reference": names}, spreads="validate")


TABLE = (
    _photo("an image for another", copy("photos/cat/photo001.png", "photos/cat/photo000.png"),
           rows="cat/photo000.png"),
    _photo("an image more", copy("photos/cat/photo000.png", "photos/dog/new.png"), rows="names dog/new.png"),
    _photo("an image less", remove("photos/dog/photo001.png"), rows="names dog/photo001.png"),
    _photo("an image of another class", move("photos/dog/photo001.png", "photos/cat/other.png"),
           rows="names cat/other.png dog/photo001.png"),
    nothing("a text and a hidden file beside images", P, write("photos/notes.txt", ""), write("photos/cat/.x.png", "")),
    nothing("an image touched", P, touch("photos/cat/photo000.png")),
    nothing("the images behind a link", P, as_link("photos")),
    _anew("a line more", append(_FILE, '{"text": "a slow train"}\n')),
    _anew("the first line last", rewrite(_FILE, lambda text: "".join(text.splitlines(keepends=True)[i] for i in (1, 2,
            0)))),
    _anew("a word for another of equal length, size and time kept", swap_text(_FILE, "film", "plot")),
    _anew("an older file of equal size in its place", older(_FILE, "film", "plot")),
    _anew("another file renamed over it", replaced(_FILE, "bad", "great", by=Path.rename)),
    _anew("a link to another file in its place", replaced(_FILE, "bad", "great",
            by=lambda other, path: path.symlink_to(other.name))),
    _anew("a hard link to another file in its place", replaced(_FILE, "bad", "great", by=os.link)),
    _anew("a label for each", rewrite(_FILE, lambda text: text.replace('"}', '", "label": 0}'))),
    _anew("pairs instead of texts", rewrite(_FILE, lambda text: text.replace('"}', '", "pair": "it was fast"}'))),
    changes("spaces between words of JSON", B, rewrite(_FILE, lambda text: text.replace('": "', '" : "')),
            causes=_SAMPLES),
    changes("no newline at the end", B, rewrite(_FILE, lambda text: text.rstrip("\n")), causes=_SAMPLES),
    changes("other tensors", T, _drawn(4), causes=_SAMPLES, spreads="validate"),
    nothing("the same tensors written anew", T, _drawn(3)),
    nothing("the samples written anew with the same text", B, rewrite(_FILE, lambda text: text)),
    nothing("the samples touched", B, touch(_FILE)),
    nothing("the samples given a time long ago, read-only", B, aged(_FILE), mode(0o400, _FILE)),
    nothing("the samples behind a link", B, as_link(_FILE)),
    nothing("the samples renamed, and the recipe with them", B, move(_FILE, "t.jsonl"), recipe(_FILE, "t.jsonl")),
    nothing("other samples beside them", B, write("samples2.jsonl", '{"text": "no"}\n'), write("samples.jsonl~", "{}")),
)  # fmt: skip
