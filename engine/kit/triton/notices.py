"""Notices: the licence texts, the file NOTICE and the bill of materials, at the top of a package."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from engine.kit.checkpoints.licenses import LicenseFiles
from engine.recipe.licenses import NOT_KNOWN, Licensed

NOTICE = "NOTICE"
"""The file's name. Triton takes each folder of a model repository for a model, and passes over files beside them."""
BILL = "sbom.cdx.json"
_PYPI = "the Python package "


def write(
    out: Path, parts: Sequence[LicenseFiles], *, name: str, checkpoint: Path, tools: Iterable[str], image: str | None
) -> tuple[Licensed, ...]:
    """Write the licence texts as they are, NOTICE and the bill of materials into `out`; return what is known.

    `tools` are the distributions whose versions are rows of the job's key; `image` is the server's image in a recipe.
    """
    texts: Mapping[str, bytes] = {file: content for part in parts for file, content in part.texts.items()}
    for file, content in texts.items():
        (out / file).write_bytes(content)
    abouts = tuple(part.about for part in parts)
    (out / NOTICE).write_text(notice(name, abouts), "utf-8")
    write_bill(out, abouts, name=name, checkpoint=checkpoint, tools=tools, image=image)
    return abouts


def notice(name: str, abouts: Iterable[Licensed]) -> str:
    """Return the text of NOTICE: source, revision, licence and texts of the model and of the tokenizer."""
    lines = [name, ""]
    for about in abouts:
        lines += [
            f"{about.role}: {about.source}",
            f"  revision: {about.revision or NOT_KNOWN}",
            f"  licence: {about.license}",
            *(
                f"    {each.spdx or each.text}: stated by {each.by}{f', {each.link}' if each.link else ''}"
                for each in about.statements
            ),
            *(f"  text: {file}" for file in about.files),
            "",
        ]
    return "\n".join(lines)


def write_bill(
    out: Path, abouts: Sequence[Licensed], *, name: str, checkpoint: Path, tools: Iterable[str], image: str | None
) -> None:
    """Write the bill of materials of all files in `out`; the bill itself is not in the list.

    There is no time and no random number in it: the serial number is made from the content.
    """
    bill: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [_tool(each) for each in sorted(set(tools))]},
            "component": {"type": "application", "bom-ref": "package", "name": name},
        },
        "components": [
            *(_model(each, checkpoint) for each in abouts),
            *([{"type": "container", "bom-ref": "server", "name": image}] if image else []),
            *files(out, "package"),
        ],
        "dependencies": [{"ref": "package", "dependsOn": [each.role for each in abouts]}],
    }
    digest = hashlib.sha256(json.dumps(bill, sort_keys=True).encode()).hexdigest()
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"
    (out / BILL).write_text(json.dumps(bill, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def files(folder: Path, ref: str) -> list[dict[str, Any]]:
    """Return a component for each file under `folder`, with its SHA-256; `ref` goes before the names."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    components = []
    for name in (name for name in names if name != BILL):
        with (folder / name).open("rb") as file:
            hashes = [{"alg": "SHA-256", "content": hashlib.file_digest(file, "sha256").hexdigest()}]
        components.append({"type": "file", "bom-ref": f"{ref}/{name}", "name": name, "hashes": hashes})
    return components


def _model(about: Licensed, checkpoint: Path) -> dict[str, Any]:
    """Return the component of a model or a tokenizer; the model's has the files of the checkpoint."""
    component: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": about.role,
        "name": about.source,
        "properties": [
            {"name": "recipe:role", "value": about.role},
            {"name": "recipe:licence", "value": about.license},
            *({"name": f"recipe:licence:{each.by}", "value": each.spdx or each.text} for each in about.statements),
        ],
    }
    if about.revision is not None:
        component["version"] = about.revision
    if purl := _purl(about):
        component["purl"] = purl
    if about.license != NOT_KNOWN:
        component["licenses"] = _licenses(about)
    if about.role == "model":
        component["components"] = files(checkpoint, "model")
    return component


def _licenses(about: Licensed) -> list[dict[str, Any]]:
    """Return the licences in CycloneDX's form: an expression stands alone, so several statements are names and ids."""
    stated = list(dict.fromkeys(each.spdx or each.text for each in about.statements))
    if len(stated) == 1 and all(each.spdx for each in about.statements):
        return [{"expression": stated[0]}]
    return [{"license": {"name": each}} for each in stated]


def _purl(about: Licensed) -> str | None:
    kind, name = "huggingface", about.source.removeprefix("hf:")
    if about.source.startswith(_PYPI):
        kind, name = "pypi", re.sub(r"[-_.]+", "-", about.source.removeprefix(_PYPI)).lower()
    elif not about.source.startswith("hf:"):
        return None
    return f"pkg:{kind}/{quote(name)}@{about.revision}"


def _tool(name: str) -> dict[str, Any]:
    """Return the component of a distribution; without a version where it is not installed."""
    component = {"type": "library", "bom-ref": f"tool/{name}", "name": name}
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return component
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{quote(version)}"
    return {**component, "version": version, "purl": purl}
