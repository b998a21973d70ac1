"""A recipe of several variants: each makes what is its own, and shares the rest."""

from collections.abc import Iterable

from mutations.actions import edit, flip, recipe
from mutations.actions_around import say
from mutations.mutation import Rows, changes, nothing

M = "matrix"
_ALL = tuple(f"net-{precision}-{batch}" for precision in ("fp32", "int8") for batch in (4, 2))
_INT8 = tuple(name for name in _ALL if "int8" in name)


def _in(variants: Iterable[str], causes: dict[str, Rows]) -> dict[str, Rows]:
    return {f"{variant}:{job}": rows for variant in variants for job, rows in causes.items()}


def _each(variants: Iterable[str], jobs: str) -> str:
    return " ".join(f"{variant}:{job}" for variant in variants for job in jobs.split())


def _base(old: str, new: str):
    return edit("base.yaml", old, new)


TABLE = (
    changes("a value more on an axis", M, recipe("[4, 2]", "[4, 2, 1]"), causes=_in(("net-fp32-1", "net-int8-1"),
            {"package": ()})),
    nothing("a value less on an axis", M, recipe("[4, 2]", "[4]")),
    nothing("the axes and their values in another order", M, recipe("  precision: [fp32, int8]\n", ""),
            recipe("[4, 2]\n", "[4, 2]\n  precision: [int8, fp32]\n")),
    nothing("one combination left out", M, recipe("[4, 2]\n",
            "[4, 2]\n  exclude: [{precision: fp32, package.triton.max_batch_size: 2}]\n")),
    changes("a field for one precision alone", M, recipe("[4, 2]\n",
            "[4, 2]\n  include: [{precision: int8, target.isa: avx2}]\n"),
            causes=_in(_INT8, {"quantize": "options.reduce_range"}), spreads=_each(_INT8, "validate package")),
    nothing("one variant alone", M, say("--only", "precision=int8")),
    nothing("an axis set on the command line", M, say("--set", "precision=int8")),
    changes("another name for each", M, recipe("name: net-", "name: mesh-"),
            causes=_in((name.replace("net", "mesh") for name in _ALL), {"package": ("options.serving.model_name",
            "options.serving.ensemble")})),
    changes("a profile in the parent", M, _base("[1, 2, 4]", "[1, 3, 8]"), causes=_in(_ALL,
            {"reference": "options.profiles"}),
            spreads=_each(_ALL, "validate package")),
    changes("a section more in the parent", M, _base("validate:", "bench: {shapes: [{batch: 2}]}\nvalidate:"),
            causes=_in(_ALL, {"bench": "recipe.bench"})),
    changes("an instruction set in the parent", M, _base("validate:", "target: {isa: avx2}\nvalidate:"),
            causes=_in(_INT8, {"quantize": "options.reduce_range"}), spreads=_each(_INT8, "validate package")),
    changes("one bit of the weights, size and time kept", M, flip("net/net.data"), causes=_in(_ALL,
            {"fetch": "inputs.source"}),
            spreads=_each(_ALL, "reference shape-infer fuse validate package") + " " + _each(_INT8, "quantize")),
    changes("a field of Triton's in the recipe", M, recipe("matrix:",
            "package: {triton: {version_policy: {latest: {num_versions: 1}}}}\nmatrix:"),
            causes=_in(_ALL, {"package": ("options.serving.fields", "options.serving.fields.version_policy")})),
)  # fmt: skip
