"""Notices: the licence texts, the file NOTICE and the bill of materials, at the top of a package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from engine.kit.checkpoints.licenses import LicenseFiles
from engine.kit.triton import sbom
from engine.recipe.licenses import NOT_KNOWN, Licensed

NOTICE = "NOTICE"
"""The file's name. Triton takes each folder of a model repository for a model, and passes over files beside them."""


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
    sbom.write(out, abouts, name=name, checkpoint=checkpoint, tools=tools, image=image)
    return abouts


def notice(name: str, abouts: Iterable[Licensed]) -> str:
    """Return the text of NOTICE: source, revision, licence and texts of the model and of the tokenizer."""
    lines = [name, ""]
    for about in abouts:
        lines += [
            f"{about.role}: {about.source}",
            f"  revision: {about.revision or NOT_KNOWN}",
            f"  licence: {about.license}",
            *(f"    {each.spdx or each.text}: stated by {each.by}" + _link(each.link) for each in about.statements),
            *(f"  text: {file}" for file in about.files),
            "",
        ]
    return "\n".join(lines)


def _link(link: str | None) -> str:
    return f", {link}" if link else ""
