"""The samples: a sentence counts, a link, a time stamp or a name does not."""

from mutations.actions import (
    aged,
    append,
    as_link,
    by_link,
    by_rename,
    mode,
    move,
    older,
    recipe,
    rewrite,
    swap_text,
    touch,
    write,
)  # fmt: skip
from mutations.actions_samples import drawn, link_switched
from mutations.mutation import changes, nothing

B, T = "bert", "tensors"
_SAMPLES = {"reference": "inputs.samples"}
_FILE = "samples.jsonl"


def _anew(says, *action):
    return changes(says, B, *action, causes=_SAMPLES, spreads="validate")


TABLE = (
    _anew("a line more", append(_FILE, '{"text": "a slow train"}\n')),
    _anew("a line less", rewrite(_FILE, lambda text: text.split("\n", 1)[1])),
    _anew("the first line last", rewrite(_FILE, lambda text: "".join(text.splitlines(keepends=True)[i] for i in (1, 2,
            0)))),
    _anew("a word for another of equal length, size and time kept", swap_text(_FILE, "film", "plot")),
    _anew("an older file in its place", older(_FILE, "film", "movie")),
    _anew("an older file of equal size in its place", older(_FILE, "film", "plot")),
    _anew("another file renamed over it", by_rename(_FILE, "bad", "great")),
    _anew("a link to another file in its place", by_link(_FILE, "bad", "great")),
    _anew("a hard link to another file in its place", by_link(_FILE, "bad", "great", hard=True)),
    _anew("a link whose target was switched", link_switched(_FILE, "bad", "great")),
    _anew("a label for each", rewrite(_FILE, lambda text: text.replace('"}', '", "label": 0}'))),
    _anew("pairs instead of texts", rewrite(_FILE, lambda text: text.replace('"}', '", "pair": "it was fast"}'))),
    changes("spaces between words of JSON", B, rewrite(_FILE, lambda text: text.replace('": "', '" : "')),
            causes=_SAMPLES),
    changes("no newline at the end", B, rewrite(_FILE, lambda text: text.rstrip("\n")), causes=_SAMPLES),
    changes("other tensors, size and time kept", T, drawn("samples.npz", seed=4, keeps_time=True), causes=_SAMPLES,
            spreads="validate"),
    changes("other tensors", T, drawn("samples.npz", seed=4), causes=_SAMPLES, spreads="validate"),
    nothing("the same tensors written anew", T, drawn("samples.npz", seed=3)),
    nothing("the tensors touched", T, touch("samples.npz")),
    nothing("the samples touched", B, touch(_FILE)),
    nothing("the samples given a time long ago", B, aged(_FILE)),
    nothing("the samples read-only", B, mode(0o400, _FILE)),
    nothing("the samples written anew with the same text", B, rewrite(_FILE, lambda text: text)),
    nothing("the same samples renamed over themselves", B, move(_FILE, "s"), move("s", _FILE)),
    nothing("the samples behind a link", B, as_link(_FILE)),
    nothing("the samples renamed, and the recipe with them", B, move(_FILE, "texts.jsonl"), recipe(_FILE,
            "texts.jsonl")),
    nothing("other samples beside them", B, write("samples2.jsonl", '{"text": "no"}\n'), write("samples.jsonl~", "{}")),
)  # fmt: skip
