"""Slips on the command line: hints for words that are no command, no option or no value of it."""

from __future__ import annotations

import os
import re
from argparse import Action, ArgumentParser
from collections.abc import Iterable, Sequence

from engine.errors import UsageError
from engine.text import suggestions

_MEANT = {
    **dict.fromkeys(("compile", "run", "make", "exec", "start", "train", "update", "rebuild"), "build"),
    **dict.fromkeys(("init", "create", "add", "draft", "generate", "import"), "new"),
    **dict.fromkeys(("validate", "verify", "lint", "test"), "check"),
    **dict.fromkeys(("clean", "clear", "gc", "prune", "purge", "rm", "remove"), "cache gc"),
    "ls": "list",
    "watch": "build --watch",
    "open": "report --open",
    **dict.fromkeys(("config", "settings"), "doctor"),
    **dict.fromkeys(("status", "explain", "reason"), "why"),
    **dict.fromkeys(("info", "results", "inspect", "print"), "show"),
    **dict.fromkeys(("plan", "tree", "dot", "dag"), "graph"),
    **dict.fromkeys(("deploy", "release", "upload"), "publish"),
    **dict.fromkeys(("benchmark", "perf", "load", "stress"), "loadtest"),
    **dict.fromkeys(("ask", "predict", "infer", "curl", "call"), "query"),
    **dict.fromkeys(("devices", "gpu", "hardware"), "gpus"),
    **dict.fromkeys(("env", "diagnose", "setup", "install"), "doctor"),
    **dict.fromkeys(("push", "pull"), "cache push or pull"),
    "version": "--version",
    "help": "--help",
}
"""Words of other programs for a command, and the command."""
_ACTIONS = {
    **dict.fromkeys(("clean", "clear", "prune", "purge", "rm", "remove", "delete"), "gc"),
    **dict.fromkeys(("list", "show"), "ls"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    **dict.fromkeys(("info", "size", "du", "status"), "stats"),
    **dict.fromkeys(("upload", "save"), "push"),
    **dict.fromkeys(("download", "fetch", "load"), "pull"),
}
"""Words of other programs for an action of `recipe cache`, and the action."""
_OPTIONS = {
    "-n": "--dry-run --limit",
    "--plan": "--dry-run",
    "-f": "--force",
    "-p": "--http-port",
    "-c": "--concurrency",
    "--users": "--concurrency",
    "--rebuild": "--force",
    "-k": "--keep-going",
    "--parallel": "--jobs",
    "--workers": "--jobs",
    "--threads": "--jobs",
    "--gpu": "--device",
    "--target": "--device",
    "--out": "--output",
    "--output-dir": "--output",
    "--step": "--to",
    "--until": "--to",
    "--override": "--set",
    "--param": "--set",
    "-s": "--set",
    "--variant": "--only",
    "--filter": "--only",
    "--cache-dir": "--cache",
    "--store": "--cache",
    "--colour": "--color",
    "--silent": "--quiet",
}
"""Options of other programs, and the options that mean the same here, of which a command has one."""
_FOLDER = ("--directory", "--chdir", "--cwd", "--workdir", "--project")
"""Names of other programs for `-C DIR`."""
_PRECISIONS = ("--fp32", "--fp16", "--bf16", "--int8")
_FIELDS = {
    **dict.fromkeys(("--device", "--gpu", "--target"), "target.device"),
    **dict.fromkeys(("--runtime", "--backend", "--provider"), "target.runtime"),
    **dict.fromkeys(("--precision", "--dtype", "--quantize"), "precision"),
    **dict.fromkeys(_PRECISIONS, "precision"),
    "--task": "model.task",
    "--model": "model.source",
}
"""Options of other programs, and the field of a recipe that says the same."""
_ELSEWHERE = {
    **dict.fromkeys(("--no-cache", "--fresh"), "--force STEP runs a stored job again; --cache DIR names another store"),
    **dict.fromkeys(("--clean", "--clear"), "`recipe cache gc` removes what no recipe needs"),
    **dict.fromkeys(("--format", "--as-json"), "--json prints what programs read"),
    **dict.fromkeys(("--keep", "--days", "--max-age"), "--older-than AGE keeps what is younger"),
    **dict.fromkeys(
        ("--set", "--only"), "`recipe build`, `why` and `show` take it; write into the recipe what is to stay"
    ),
    **dict.fromkeys(("--update", "--upgrade"), "--refresh looks for newer revisions"),
    **dict.fromkeys(("--config", "--file", "--recipe", "--yaml", "-r"), "`RECIPE.yaml` needs no option: leave it out"),
    **dict.fromkeys(("--from", "--start"), "--force STEP runs a step again; what is stored is never built again"),
    **dict.fromkeys(("--skip", "--exclude", "--without"), "--to STEP builds no further than a step"),
    **dict.fromkeys(_FOLDER, "`-C DIR` changes the folder"),
    **dict.fromkeys(("--no-color", "--no-colour"), "--color never prints no colours"),
    **dict.fromkeys(("-o", "--output"), "`> FILE` behind the command keeps what it prints"),
    **dict.fromkeys(("-y", "--yes"), "`recipe` does not ask here: leave it out"),
    "--remote": "`RECIPE_REMOTE=URL`, or `remote` in recipe.toml, names it",
}
"""Options of other programs, and what does the same here, if the option that it names is there."""
_RECIPES = (".yaml", ".yml")


def of_command(words: Sequence[str], commands: Sequence[str]) -> str:
    """Return the hint for `words`, whose first is no command: the command that is meant, or where all are listed."""
    word = words[0]
    meant = _recipe_in(word) or _before_command(words, commands) or _MEANT.get(word.lower())
    if not meant and word in _steps():
        meant = f"build RECIPE.yaml --to {word}"
    if not meant and (near := suggestions.nearest(word, commands)):
        meant = near[0]
    return suggestions.did_you_mean(f"`recipe {meant}`") if meant else "recipe --help lists all commands"


def _recipe_in(word: str) -> str:
    """Return the command that builds the recipe `word`, whose ending may be missing; "" where there is none."""
    if word.endswith(_RECIPES) or os.path.isfile(word):
        return f"build {word}"
    return f"build {word}.yaml" if os.path.isfile(f"{word}.yaml") else ""


def _before_command(words: Sequence[str], commands: Sequence[str]) -> str:
    """Return the words in their order where an option or `help` stands before a command; "" where none does."""
    command = next((each for each in words[1:] if each in commands), "")
    if words[0] == "help":
        return f"{command} --help" if command else ""
    if words[0] in ("-v", "-V"):
        return "--version"
    option, equals, value = words[0].partition("=")
    if option in _FOLDER:
        return f"-C {value if equals else words[1] if words[1:] else 'DIR'} {command or 'COMMAND'}"
    return f"{command} {words[0]}" if command and words[0].startswith("-") else ""


def refuse_in_place_of_recipe(word: str, parser: ArgumentParser) -> None:
    """Raise UsageError for a word in place of a recipe that is K=V or a step, with a hint that fits the command."""
    from engine.recipe import outline

    key, equals, value = word.partition("=")
    if equals and outline.is_known(key.split(".")):
        way = f"--set {key}={value}"
        once = f"`recipe build RECIPE.yaml {way}` changes a field for one build; write into the recipe what is to stay"
        hint = f"a field is changed with {way}" if "--set" in _options(parser) else once
        raise UsageError(f"{word!r} is no recipe", hint=hint)
    if word.isidentifier() or "-" in word:
        near = [step for step in _steps() if step == word.replace("_", "-")]
        if near:
            one = f"`recipe why RECIPE.yaml {near[0]}` and `recipe logs RECIPE.yaml {near[0]}` are about one step"
            hint = f"write RECIPE.yaml --to {near[0]}" if "--to" in _options(parser) else one
            raise UsageError(f"{word!r} is a step and no recipe", hint=hint)


def _options(parser: ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001  argparse has no list of its options


def _steps() -> Iterable[str]:
    from engine.builder import registry

    return registry.steps()


def of_unknown(parser: ArgumentParser, rest: Sequence[str]) -> tuple[str, str]:
    """Return the message and the hint for `rest`, the words that the command of `parser` does not take."""
    word = next((each for each in rest if each.startswith("-")), None)
    known = _options(parser)
    if word is None:
        mend = f"write --for {rest[0]}" if "--for" in known and rest[0].endswith(_RECIPES) else "leave it out"
        what = f"`{parser.prog}` does not take {' '.join(rest)!r}"
        return what, f"{mend}; {parser.prog} --help says what it takes"
    name = word.split("=")[0]
    elsewhere = _elsewhere(name, rest, known)
    if elsewhere:
        return f"`{parser.prog}` has no option {name}", elsewhere
    near = [each for each in _meant_options(name) if each in known] or _near_options(name, known)
    hint = (
        suggestions.did_you_mean(f"`{_usage(parser, near[0])}`") if near else f"{parser.prog} --help lists its options"
    )
    return f"`{parser.prog}` has no option {name}", hint


def _elsewhere(name: str, rest: Sequence[str], known: Sequence[str]) -> str:
    """Return the hint for an option that is a field of the recipe, or that another option or command stands for."""
    field = _FIELDS.get(name)
    if field and "--set" in known and not {*_meant_options(name)}.intersection(known):
        at = next(index for index, word in enumerate(rest) if word.partition("=")[0] == name)
        after = next((word for word in rest[at + 1 : at + 2] if not word.startswith("-")), "")
        own = name.removeprefix("--") if name in _PRECISIONS else "VALUE"
        return f"a field is changed with --set {field}={rest[at].partition('=')[2] or after or own}"
    hint = _ELSEWHERE.get(name, "")
    return hint if hint.startswith("`") or hint.partition(" ")[0] in known else ""


def _meant_options(name: str) -> list[str]:
    return _OPTIONS.get(name, "").split()


def _near_options(name: str, known: Sequence[str]) -> list[str]:
    words = [option for option in known if option.startswith("--") and name.startswith("--")]
    longer = [option for option in words if option.startswith(name) or name.startswith(f"{option}-")]
    bare = [option.removeprefix("--") for option in words if option != "--help"]
    return longer[:1] or [f"--{each}" for each in suggestions.nearest(name.removeprefix("--"), bare)]


def _usage(parser: ArgumentParser, option: str) -> str:
    """Return an option with the name of its value, as in `--to STEP`."""
    action = next(each for each in parser._actions if option in each.option_strings)  # noqa: SLF001
    return f"{option} {_value(action)}".rstrip()


def _value(action: Action) -> str:
    return "" if action.nargs == 0 else str(action.metavar or action.dest.upper())


def of_choice(action: Action, value: object, choices: Iterable[object]) -> str:
    """Return the hint for a value that is none of `choices`."""
    names = [str(choice) for choice in choices]
    meant = _ACTIONS.get(str(value)) if action.metavar == "ACTION" else None
    return suggestions.did_you_mean(f"`{meant}`") if meant in names else suggestions.hint(str(value), names)


def of_message(parser: ArgumentParser, message: str) -> str:
    """Return the hint for an error of argparse: how an option and its value are written, or how a recipe is named."""
    if "not allowed with argument" in message:
        return "leave one of them out"
    if flag := re.match(r"argument (?:\S*/)?(-[\w-]+): ignored explicit argument", message):
        return f"write `{flag[1]}` without a value"
    lone = re.fullmatch(r"argument (?:-\w/)?(-[\w-]+)(?:/\S+)?: expected .* argument", message)
    if lone:
        return f"write `{_usage(parser, lone[1])}`; {parser.prog} --help says what it does"
    if "required: RECIPE" in message:
        from engine.recipe import near_files

        recipes = near_files.recipes()
        return f"write `{parser.prog} {recipes[0] if recipes else 'RECIPE.yaml'}`" + (
            "" if recipes else "; `recipe new MODEL` writes a first recipe"
        )
    return f"{parser.prog} --help"
