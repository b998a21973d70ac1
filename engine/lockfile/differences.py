"""Compare the lock beside a recipe with a lock of this machine, row by row, and merge the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from engine.errors import LockError
from engine.lockfile.content import Lock, LockedOutput, LockedVariant, OutputName, Rows, sections
from engine.text import distribution, lists

_LISTED = 60
"""The greatest number of differing rows that an error lists; further rows are only counted."""
_CODE = "code of "
"""How the names of the rows about the code of steps begin."""
_DEFAULT = ("locked the default", "here the default")
"""The words that stand for the value of a field that a recipe leaves out, because the field then has its default."""


@dataclass(frozen=True)
class Difference:
    """A row that differs between two locks, with its value in the lock file and its value on this machine.

    A row that is missing in the lock or on this machine has the value None there, and errors show words of `absent` for
    it.
    """

    row: str
    locked: str | None
    here: str | None
    absent: tuple[str, str] = ("not locked", "not here")

    def __str__(self) -> str:
        locked = self.absent[0] if self.locked is None else f"locked {self.locked}".rstrip()
        here = self.absent[1] if self.here is None else f"here {self.here}".rstrip()
        return f"{self.row}: {locked}, {here}"


def refuse(locked: Lock, here: Lock, *, partly: bool, overridden: bool, lock: str, recipe: str) -> None:
    """Raise LockError, which lists the differing rows, if two locks differ.

    The code of all steps differs from that of an older version of this program, which is said in one line. `overridden`
    is True if `--set` changes the recipe, which no lock has.
    """
    rows = list(differences(locked, here, partly=partly))
    if not rows:
        return
    count = "1 row differs" if len(rows) == 1 else f"{len(rows)} rows differ"
    code = [each.row.removeprefix(_CODE) for each in rows if each.row.startswith(_CODE)]
    if code and locked.version != here.version:
        facts = [code_of(code), *(str(each) for each in rows if not each.row.startswith(_CODE))]
        raise LockError(
            f"{lock} {of_another_version(locked)}: {count}",
            _listed(facts),
            f"`recipe lock {recipe}` accepts the new code; `recipe build --frozen {recipe}` delivers what is stored",
        )
    accept = f"`recipe lock {recipe}` and review what that changes in the lock"
    undo = "leave --set out, or write its change into the recipe" if overridden else "undo the change"
    raise LockError(
        f"{lock} is not what is here: {count}",
        _listed([str(difference) for difference in rows]),
        f"{undo} and run {accept}" if overridden else f"{undo}, or accept it with {accept}",
    )


def _listed(facts: list[str]) -> list[str]:
    more = [f"and {len(facts) - _LISTED} more"] if len(facts) > _LISTED else []
    return [*facts[:_LISTED], *more]


def merged(old: Lock | None, new: Lock) -> Lock:
    """Return the new lock with the old lock's sections for other machines.

    They stay for each variant whose sources, tools, code and jobs are unchanged. A lock in which no row changes keeps
    its form and the version that wrote it, so that its bytes stay.
    """
    if old is None:
        return new
    headings = [section.facts for section in new.machines]
    same = {variant for variant in old.variants if _is_as_it_was(old, new, variant)}
    others = [
        (section.facts, name, output)
        for section in old.machines
        if section.facts not in headings
        for name, output in section.outputs.items()
        if name[0] in same
    ]
    own = [(section.facts, name, output) for section in new.machines for name, output in section.outputs.items()]
    whole = replace(new, machines=sections([*others, *own]))
    same_rows = replace(whole, version=old.version, is_sealed=old.is_sealed)
    return same_rows if same_rows == old else whole


def of_another_version(locked: Lock) -> str:
    """Return which version of this program wrote a lock, and which one runs."""
    return f"was written by {distribution.earlier(locked.version)}, and this is {distribution.running()}"


def code_of(steps: Iterable[str]) -> str:
    """Return one line for the code of many steps."""
    names = sorted(set(steps))
    return f"the code of {lists.counted(len(names), 'step')}: {', '.join(names)}"


def differences(locked: Lock, here: Lock, *, partly: bool = False) -> Iterator[Difference]:
    """Yield the rows in which two locks differ.

    `partly` is True if the command line selects only some variants or jobs; then a row that is only in the lock does
    not count as a difference. In a lock, keys and artifacts follow from the other rows, so keys and artifacts are
    compared only if all other rows are equal.
    """
    causes = [
        *_of_rows("", locked.sources, here.sources, partly=partly),
        *_of_rows("tools.", locked.tools, here.tools, partly=partly),
        *_of_rows("env.", locked.variables, here.variables, partly=partly),
        *_of_code(locked, here),
        *_of_variants(locked, here, partly=partly),
    ]
    yield from causes or _of_outputs(locked, here)


def _of_rows(prefix: str, locked: Rows, here: Rows, *, partly: bool = False) -> Iterator[Difference]:
    for name in sorted(locked.keys() | here.keys()):
        old, new = locked.get(name), here.get(name)
        if old != new and not (new is None and partly):
            yield Difference(prefix + name, old, new)


def _of_code(locked: Lock, here: Lock) -> list[Difference]:
    """Return a row for each step whose code differs. Jobs that only one of the locks has are rows of their own."""
    places = [(name, job) for name, variant in here.variants.items() if name in locked.variants for job in variant.jobs]
    common = [(name, job) for name, job in places if job in locked.variants[name].jobs]
    rows = {Difference(_CODE + job, locked.code_of(name, job), here.code_of(name, job)) for name, job in common}
    return sorted((each for each in rows if each.locked != each.here), key=str)


def _of_variants(locked: Lock, here: Lock, *, partly: bool) -> Iterator[Difference]:
    for name in sorted(locked.variants.keys() | here.variants.keys()):
        old, new = locked.variants.get(name), here.variants.get(name)
        if old is not None and new is not None:
            yield from _of_variant(name, old, new, partly=partly)
        elif new is not None or not partly:
            yield _presence("variant", name, locked=old is not None)


def _of_variant(name: str, locked: LockedVariant, here: LockedVariant, *, partly: bool) -> Iterator[Difference]:
    for each in _of_rows("recipe.", locked.recipe, here.recipe):
        yield replace(each, row=f"{each.row} of {name}", absent=_DEFAULT)
    for job in (*here.jobs, *(gone for gone in locked.jobs if gone not in here.jobs)):
        old, new = locked.jobs.get(job), here.jobs.get(job)
        if old is not None and new is not None:
            for each in _of_rows("", old.rows, new.rows):
                yield replace(each, row=f"{each.row} of {job} in {name}")
        elif new is not None or not partly:
            yield _presence("job", f"{job} of {name}", locked=old is not None)


def _presence(kind: str, name: str, *, locked: bool) -> Difference:
    return Difference(f"{kind} {name}", "" if locked else None, None if locked else "")


def _of_outputs(locked: Lock, here: Lock) -> Iterator[Difference]:
    """Yield the rows in which two locks differ in a job's output; all sections of `here` are this machine's."""
    headings = [section.facts for section in here.machines]
    known = locked.outputs_where(lambda facts: facts in headings)
    for name, new in here.outputs_where(lambda _: True).items():
        yield from _of_output(name, known.get(name), new)


def _of_output(name: OutputName, locked: LockedOutput | None, here: LockedOutput | None) -> Iterator[Difference]:
    """Yield the row in which two outputs of a job differ; none where one of them is not known."""
    variant, job = name
    if locked is None or here is None:
        return
    if locked.key != here.key:
        yield Difference(f"key of {job} in {variant}", locked.key, here.key)
    elif None not in (locked.artifact, here.artifact) and locked.artifact != here.artifact:
        yield Difference(f"artifact of {job} in {variant}", locked.artifact, here.artifact)


def _is_as_it_was(old: Lock, new: Lock, variant: str) -> bool:
    """Say whether a variant's jobs have the same keys in both locks, leaving out rows that depend on the machine."""
    was, now = old.variants.get(variant), new.variants.get(variant)
    if was is None or now is None or was.jobs.keys() != now.jobs.keys() or old.variables != new.variables:
        return False
    for before, after in ((old.sources, new.sources), (old.tools, new.tools), (old.steps, new.steps)):
        if any(after[name] != value for name, value in before.items() if name in after):
            return False
    pairs = ((name, was.jobs[name], job) for name, job in now.jobs.items())
    return all(a.rows == b.rows and not [*_of_output((variant, name), a.output, b.output)] for name, a, b in pairs)
