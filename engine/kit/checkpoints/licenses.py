"""Licences: what the files of a model say about the model's licence; a licence is never guessed from a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.kit.checkpoints import hub, model_files
from engine.recipe import licenses
from engine.recipe.licenses import Licensed, LicenseStatement
from engine.step import Source

CARD = "README.md"
_OTHER = ("other", "unknown")
"""What a model card says where the hub has no id for the licence, and where the author names none."""
_CLASSIFIERS = {
    "BSD License": None,
    "Apache Software License": None,
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""Licence classifiers of Python packages -> the SPDX id; None for a classifier that names no version."""
_NOT_STATED = "Licence: not stated by the model's files. Ask who published the model before you serve it."


@dataclass(frozen=True)
class LicenseFiles:
    """What was read about a model or a tokenizer, with the texts by the file names that they get in the package."""

    about: Licensed
    texts: Mapping[str, bytes] = field(default_factory=dict)


def of_source(role: str, source: Source | None, place: Path | str | None) -> LicenseFiles:
    """Return what a source says about the licence of the model or of the tokenizer.

    `place` is what a step gets for a source whose part is `license`. All that is returned is covered by the step's key.
    """
    if isinstance(place, str):
        repository, _, commit = place.removeprefix("hf:").rpartition("@")
        with TemporaryDirectory() as folder:
            hub.download_licenses(repository, commit, Path(folder))
            return read(role, Path(folder), source=f"hf:{repository}", revision=commit)
    scheme, _, rest = ("", "", "") if source is None else source.uri.partition(":")
    package = rest.strip("/").partition("/")[0] if scheme == "python" else None
    directory = place if place is not None and place.is_dir() else None
    return read(role, directory, source="a local file or directory", revision=None, package=package)


def read(
    role: str, place: Path | None, *, source: str, revision: str | None, package: str | None = None
) -> LicenseFiles:
    """Return what the licence files in the folder `place` say, and the metadata of the Python package that brings them.

    `place` is None for a model without such files: an .onnx file, whose folder may belong to something else. `package`
    is the name of the Python package whose folder holds the model.
    """
    statements: list[LicenseStatement] = []
    texts: dict[str, bytes] = {}
    for name in [] if place is None else model_files.licenses_of(model_files.listing(place)[0]):
        content = (place / name).read_bytes() if place is not None else b""
        if name == CARD:
            statements += of_card(content.decode("utf-8", "replace"))
        else:
            texts[f"{role}.{name}"] = content
    distribution = None if package is None else distribution_of(package)
    if distribution is not None:
        source = f"the Python package {distribution.name}"
        revision = distribution.version
        statements += of_metadata(distribution.metadata, f"{distribution.name} {revision}")
        texts |= {f"{role}.package.{path.name}": path.read_bytes() for path in _texts(distribution)}
    about = Licensed(
        role=role, source=source, revision=revision, statements=tuple(statements), files=tuple(sorted(texts))
    )
    return LicenseFiles(about, texts)


def of_card(card: str) -> list[LicenseStatement]:
    """Return what the front matter of a model card says: `license`, or `license_name` for a licence of its own."""
    import yaml

    lines = card.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return []
    ends = [number for number, line in enumerate(lines) if number and line.rstrip() == "---"]
    try:
        front = yaml.safe_load("\n".join(lines[1 : ends[0]])) if ends else None
    except yaml.YAMLError:
        front = None
    if not isinstance(front, dict):
        return []
    values = front.get("license")
    values = values if isinstance(values, list) else [values]
    return [statement for value in values if (statement := _of_value(value, front)) is not None]


def of_metadata(fields: Any, name: str) -> list[LicenseStatement]:
    """Return what the metadata of a Python package says: License-Expression, else License, else the classifiers."""
    by = f"the metadata of {name}"
    message: Message = fields
    for key in ("License-Expression", "License"):
        text = str(message.get(key) or "").strip()
        expression = licenses.canonical(text) if text else None
        if expression is not None:
            return [LicenseStatement(text=text, by=by, spdx=expression)]
    classifiers = [each.rpartition(" :: ")[2] for each in message.get_all("Classifier") or () if "License ::" in each]
    if classifiers:
        return [LicenseStatement(text=each, by=by, spdx=_CLASSIFIERS.get(each)) for each in classifiers]
    first = str(message.get("License") or "").strip().partition("\n")[0]
    return [LicenseStatement(text=first, by=by)] if first else []


def distribution_of(package: str) -> metadata.Distribution | None:
    """Return the installed distribution that brings a Python package; None where no single one is known to."""
    try:
        likely = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        names = set(metadata.packages_distributions().get(package, ()))
        return metadata.distribution(names.pop()) if len(names) == 1 else None
    return likely if any(file.parts[0] == package for file in likely.files or ()) else None


def files_of(distribution: metadata.Distribution) -> list[Path]:
    """Return the paths of the metadata and of the licence texts of a distribution, as far as they are files."""
    own = getattr(distribution, "_path", None)
    path = Path(own) / "METADATA" if own is not None else None
    return [*([path] if path is not None and path.is_file() else []), *_texts(distribution)]


def _texts(distribution: metadata.Distribution) -> Iterator[Path]:
    own = getattr(distribution, "_path", None)
    names = distribution.metadata.get_all("License-File") or []
    for name in sorted(map(str, names)):
        for folder in () if own is None else (Path(own) / "licenses", Path(own)):
            path = folder / name
            if ".." not in Path(name).parts and path.is_file():
                yield path
                break


def _of_value(value: object, front: Mapping[str, object]) -> LicenseStatement | None:
    if not isinstance(value, str) or not value.strip():
        return None
    text, by = value.strip(), f"{CARD} (license)"
    link = front.get("license_link")
    link = link if isinstance(link, str) else None
    if text.lower() in _OTHER:
        name = front.get("license_name")
        if text.lower() == "unknown" or not isinstance(name, str) or not name.strip():
            return None
        text, by = name.strip(), f"{CARD} (license_name)"
    own = licenses.OWN_LICENSE + text
    return LicenseStatement(text=text, by=by, spdx=licenses.canonical(text) or licenses.canonical(own), link=link)


def in_words(place: Path | None) -> str:
    """Return a comment with the licence that the files in `place` state; None for a model without such files."""
    statements = read("model", place, source="", revision=None).about.statements if place else ()
    if not statements:
        return _NOT_STATED
    return f"Licence: {'; '.join(f'{each.spdx or each.text} (stated by {each.by})' for each in statements)}."
