"""Links on the way to what a recipe names: what they lead to counts, not how; and what marks a project's root."""

from mutations.actions import copy, edit, link, move, new_folder, recipe, resolved, write
from mutations.actions_around import answered, build_with, mapped
from mutations.mutation import Action, Mutation, changes, nothing

B, N = "bert", "net"
_TEXTS = "samples.jsonl"
_OTHER = (copy(_TEXTS, "other/samples.jsonl"), edit("other/samples.jsonl", "bad", "great"))


def _texts(says: str, *action: Action) -> Mutation:
    return changes(says, B, *_OTHER, *action, causes={"reference": "inputs.samples"}, spreads="validate")


def _same(says: str, *action: Action) -> Mutation:
    return nothing(says, B, move(_TEXTS, "one/samples.jsonl"), copy("one", "two"), *action)


TABLE = (
    _texts("the second of two links to the samples switched", move(_TEXTS, "first.jsonl"), link(_TEXTS, "hop"),
           link("hop", "first.jsonl"), answered, link("hop", "other/samples.jsonl")),
    _texts("the last of three links, one of them absolute, switched", move(_TEXTS, "first.jsonl"), link(_TEXTS, "a"),
           link("a", "{folder}/b"), link("b", "first.jsonl"), answered, link("b", "other/samples.jsonl")),
    _texts("a link in the middle of a link's target switched", move(_TEXTS, "one/samples.jsonl"),
           link(_TEXTS, "hop/samples.jsonl"), link("hop", "one"), answered, link("hop", "other")),
    _texts("a link in the middle of the recipe's path switched", move(_TEXTS, "one/samples.jsonl"),
           recipe("samples: samples.jsonl", "samples: all/samples.jsonl"), link("all", "shelf"), link("shelf", "one"),
           answered, link("shelf", "other")),
    _texts("a link before two dots switched", move(_TEXTS, "one/samples.jsonl"), new_folder("one/in"),
           new_folder("other/in"), recipe("samples: samples.jsonl", "samples: hop/../samples.jsonl"),
           link("hop", "one/in"), answered, link("hop", "other/in")),
    _texts("a folder of links that another takes the place of", move(_TEXTS, "first.jsonl"),
           link("one/samples.jsonl", "../first.jsonl"), link(_TEXTS, "one/samples.jsonl"), answered,
           move("one", "gone"), move("other", "one")),
    _texts("a second write through a mapping that stayed open", mapped(_TEXTS, b"bad", b"sad")),
    changes("the recipe's parent behind two links, one switched", B, move("r.yaml", "b1.yaml"),
            copy("b1.yaml", "b2.yaml"), edit("b2.yaml", "sequence: 8", "sequence: 9"),
            write("r.yaml", "extends: base.yaml\n"), link("base.yaml", "hop.yaml"), link("hop.yaml", "b1.yaml"),
            answered, link("hop.yaml", "b2.yaml"), causes={"bench": "options.shapes"}),
    _same("a link switched to equal samples", link(_TEXTS, "hop"), link("hop", "one/samples.jsonl"), answered,
          link("hop", "two/samples.jsonl")),
    _same("a link written anew", link(_TEXTS, "one/samples.jsonl"), answered, link(_TEXTS, "one/samples.jsonl")),
    _same("a chain that became longer", link(_TEXTS, "one/samples.jsonl"), answered,
          link("hop", "one/samples.jsonl"), link(_TEXTS, "hop")),
    _same("a link resolved", link(_TEXTS, "one/samples.jsonl"), answered, resolved(_TEXTS)),
    _same("a link that leads nowhere, beside the samples", link(_TEXTS, "one/samples.jsonl"), link("x.jsonl", "gone")),
    nothing("another mark at the root of the project", B, new_folder(".git"), write("recipe.toml", "")),
    nothing("a cache of another program beside the samples", B, write("deeper/cache/format", "zip\n")),
    nothing("everything read afresh", B, build_with("--paranoid"), answered,
            lambda place: place.only_build.remove("--paranoid")),
)  # fmt: skip
