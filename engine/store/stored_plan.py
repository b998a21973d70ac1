"""Stored plans: the jobs of a finished build as plain data, so that the next build plans only what has changed."""

from __future__ import annotations

import marshal
import os
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from engine import snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.snapshot import ChangedFiles

Fields = dict[str, Any]
"""A variant as plain data: what `engine.builder.stored.fields_of` returns, and three more fields.

`inputs` and `outputs` are lists of files: of the local sources, and of what the build made. `model` says whether
the model was read, and `sections` whether a table is printed about the variant.
"""
_FOLDER = "plans"


class StoredPlan:
    """The plan of the build that a snapshot is about: variants by number, and the source files that each reads.

    A stored plan is used with its snapshot only: both files have the same token.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    @classmethod
    def of(cls, changes: ChangedFiles) -> StoredPlan | None:
        """Return the stored plan of a snapshot; None for a missing, damaged or older plan."""
        try:
            content = dict(snapshot.read(path_beside(changes.path)))
            return cls(content) if content["token"] == changes.snapshot["token"] else None
        except snapshot.UNREADABLE:
            return None

    @classmethod
    def new(
        cls,
        variants: Sequence[Fields],
        *,
        fixed: Collection[str],
        code: Mapping[str, list[tuple[str, tuple[int, ...]]]],
        machine: Mapping[str, str],
        tables: Mapping[str, str],
        abstract: Sequence[str],
        packages: Mapping[str, str],
    ) -> StoredPlan:
        """Return the plan of a build that ended without a failure.

        `fixed` are the files whose change can change the plan itself. `code` maps the digest of each step's code to the
        code's files with their stat rows. `machine` are the facts that records hold about this machine.
        `tables` maps the name of each variant to the variant's table, and `packages` the names of variants to the
        folders of their packages. `abstract` are the named recipe files that are only extended.
        """
        readers: dict[str, list[int]] = {}
        for number, variant in enumerate(variants):
            for name in variant["inputs"]:
                if name not in fixed:
                    readers.setdefault(name, []).append(number)
        shared = _twice(name for variant in variants for name in set(variant["outputs"]))
        return cls(
            {
                "variants": [marshal.dumps(variant) for variant in variants],
                "readers": {name: numbers for name, numbers in readers.items() if _is_file(name)},
                "shared": shared,
                "code": dict(code),
                "machine": dict(machine),
                "tables": dict(tables),
                "abstract": list(abstract),
                "packages": dict(packages),
            }
        )

    @property
    def code(self) -> Mapping[str, list[tuple[str, tuple[int, ...]]]]:
        """For the digest of each step's code, the code's files with their stat rows."""
        code: Mapping[str, list[tuple[str, tuple[int, ...]]]] = self._content["code"]
        return code

    @property
    def machine(self) -> Mapping[str, str]:
        """The facts about this machine that records hold."""
        machine: Mapping[str, str] = self._content["machine"]
        return machine

    @property
    def tables(self) -> dict[str, str]:
        """The table of each variant, by the variant's name."""
        tables: dict[str, str] = self._content["tables"]
        return tables

    @property
    def abstract(self) -> Sequence[str]:
        """The named recipe files that other recipes extend and that make no package of their own."""
        abstract: Sequence[str] = self._content["abstract"]
        return abstract

    @property
    def packages(self) -> Mapping[str, str]:
        """The folder of each package, by the name of the variant."""
        packages: Mapping[str, str] = self._content["packages"]
        return packages

    @property
    def size(self) -> int:
        """The number of variants."""
        return len(self._content["variants"])

    def reading(self, names: Iterable[str]) -> list[int] | None:
        """Return the numbers of the variants that read the files `names`.

        Returns None if the change of one of the files may change the plan: for example, the file is a recipe or code.
        """
        numbers: set[int] = set()
        for name in names:
            if name not in self._content["readers"] or not _is_file(name):
                return None
            numbers.update(self._content["readers"][name])
        return sorted(numbers)

    def variant(self, number: int) -> Fields:
        """Return the plain data of a variant."""
        variant: Fields = marshal.loads(self._content["variants"][number])  # noqa: S302 - sealed by this program
        return variant

    def every(self) -> Iterable[Fields]:
        """Yield the plain data of all variants."""
        return map(self.variant, range(self.size))

    def replace(self, number: int, variant: Fields) -> set[str]:
        """Put a variant that was built again in place of the old one; return the old outputs that no variant has now.

        Both must have the same inputs.
        """
        old, new = set(self.variant(number)["outputs"]), set(variant["outputs"])
        self._content["variants"][number] = marshal.dumps(variant)
        return old - new - set(self._content["shared"])

    def share(self, names: Iterable[str]) -> None:
        """Note that several variants have the output files `names`."""
        self._content["shared"] = sorted({*self._content["shared"], *names})

    def sealed(self, path: str, token: bytes) -> bytes:
        """Return the bytes of the plan's file, for the path `path`."""
        return snapshot.sealed(path, {**self._content, "token": token})


def path_beside(path: str) -> str:
    """Return the path of the stored plan that belongs to the snapshot at `path`."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.dirname(folder), _FOLDER, name)


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]


def _is_file(name: str) -> bool:
    try:
        return S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False
