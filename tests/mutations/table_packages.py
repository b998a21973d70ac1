"""A step of another package, slotted in: its code, its helper, its data and its options count, its version does not."""

from mutations.actions import append, copy, edit, mode, move, recipe, remove, rewrite, touch, write
from mutations.actions_around import tool
from mutations.mutation import changes, nothing

S = "stamped"
_PACKAGE = "site/stamp_package"
_BEHIND = "fuse validate package"
_CODE = {"stamp": "code"}
_INFO = "site/stamp_package-1.0.dist-info"


def _data(folder: str):
    """Let the helper read its greeting from a folder."""
    return rewrite(
        f"{_PACKAGE}/words.py",
        lambda text: text.replace('("greeting.txt",)', f'("{folder}/greeting.txt",)').replace(
            'parent / "greeting.txt"', f'parent / "{folder}" / "greeting.txt"'
        ),
    )


TABLE = (
    changes("another constant in its code", S, edit(f"{_PACKAGE}/step.py", "self.often)", "self.often + 1)"),
            causes=_CODE, spreads=_BEHIND),
    changes("a statement more in its code, with the same result", S, append(f"{_PACKAGE}/step.py", "\nEDITED = 1\n"),
            causes=_CODE),
    changes("another constant in its helper", S, edit(f"{_PACKAGE}/words.py", '" ".join', '"-".join'), causes=_CODE,
            spreads=_BEHIND),
    changes("a statement in the package itself", S, write(f"{_PACKAGE}/__init__.py", "VERSION = 2\n"), causes=_CODE),
    changes("another word in its data", S, write(f"{_PACKAGE}/greeting.txt", "good"), causes=_CODE, spreads=_BEHIND),
    changes("a helper that takes the place of another", S, move(f"{_PACKAGE}/words.py",
            f"{_PACKAGE}/words/__init__.py"),
            edit(f"{_PACKAGE}/words/__init__.py", "parent / ", "parent.parent / "),
            edit(f"{_PACKAGE}/words/__init__.py", '("greeting.txt",)', '("../greeting.txt",)'), causes=_CODE),
    changes("its option", S, recipe("text: hello", "text: goodbye"), causes={"stamp": "options.text"}, spreads=_BEHIND),
    changes("an option of it that was left out", S, recipe("{text: hello}", "{text: hello, often: 2}"),
            causes={"stamp": "options.often"}, spreads=_BEHIND),
    nothing("an option of it said, as it is by default", S, recipe("{text: hello}", "{text: hello, often: 1}")),
    changes("it is not asked for", S, recipe("steps: {stamp: {text: hello}}\n", ""),
            causes={"fuse": ("inputs.shaped", "recipe.steps")}, spreads="validate package"),
    changes("data in a folder that was there before", S, write(f"{_PACKAGE}/data/greeting.txt", "dear"), _data("data"),
            causes=_CODE),
    nothing("other words about it: docstrings, a comment, its version", S,
            edit(f"{_PACKAGE}/step.py", '"""Stamps a text', '"""It stamps a text'),
            edit(f"{_PACKAGE}/words.py", '"""The words', '"""All the words'),
            append(f"{_PACKAGE}/words.py", "# the end\n"), move(_INFO, "site/stamp_package-1.1.dist-info"),
            edit("site/stamp_package-1.1.dist-info/METADATA", "Version: 1.0", "Version: 1.1")),
    nothing("a module and data that it does not read", S, write(f"{_PACKAGE}/other.py", "VALUE = 1\n"),
            write(f"{_PACKAGE}/other.txt", "no")),
    nothing("its files touched, one of them read-only, and its compiled code removed", S,
            remove(f"{_PACKAGE}/__pycache__"), touch("site"), mode(0o444, f"{_PACKAGE}/greeting.txt")),
    nothing("line ends of another system in its code", S, rewrite(f"{_PACKAGE}/step.py",
            lambda text: text.replace("\n", "\r\n"))),
    nothing("another package beside it", S, copy(_PACKAGE, "site/other_package"),
            write("site/other_package-1.0.dist-info/METADATA", "Name: other-package\nVersion: 1.0\n")),
    changes("the tool that it names", S, tool("onnx"), causes={"fetch": "tools.onnx"},
            spreads="shape-infer reference stamp fuse validate package"),
)  # fmt: skip
