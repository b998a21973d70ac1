"""A bundle of results to send back: records, logs and facts of the machine in an archive, without private words."""

from __future__ import annotations

import contextlib
import getpass
import io
import json
import platform
import re
import socket
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.errors import StoreError
from engine.system import regular
from engine.text import redaction

_LARGEST = 4 << 20
"""The largest file in bytes that a bundle takes; of a larger log, the end."""
_WORD = 3
"""The shortest name that is replaced."""
_SECRETS = re.compile(
    r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|nvapi-|sk-|AKIA)[A-Za-z0-9_-]{8,}"
    r"|(?i:(?<=bearer )[\w.~+/-]{8,}=*)"
    r"|(?i:(?<=token=)|(?<=password=)|(?<=secret=)|(?<=api_key=))[^\s&\"']+"
)
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_IP = r"(?:\d{1,3}\.){3}\d{1,3}"
_ADDRESSES = re.compile(
    rf"(?<=//){_IP}|(?i:(?<=\bat )|(?<=\bhost )|(?<=\bfrom )|(?<=\baddress )){_IP}\b|\b{_IP}(?=:\d)"
    r"|(?i:\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|\bf[de][0-9a-f]{2}:[0-9a-f:]+)"
    r"|\b[\w.+-]+@[\w-]+\.[\w.]+\b"
)
"""Addresses of machines and of people. Four numbers alone are a version, such as TensorRT's 10.13.0.35."""
_GPU = re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_HOMES = re.compile(r"(?:/home|/Users)/[^/\s:\"']+|/root(?=[/\s:\"']|$)")


def redacted(text: str, private: Mapping[str, str]) -> str:
    """Return a text without secrets and the words in `private`, each of which its value in `private` replaces."""
    text = redaction.redacted(text)
    for word, replacement in sorted(private.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", replacement, text)
    for pattern, replacement in (
        (_SECRETS, "TOKEN"), (_CREDENTIALS, ""), (_HOMES, "HOME"), (_GPU, "GPU-ID"), (_ADDRESSES, "ADDRESS"),
    ):  # fmt: skip
        text = pattern.sub(replacement, text)
    return text


def private_words() -> dict[str, str]:
    """Return the words of this machine that a bundle leaves out, each with its replacement."""
    words = {str(Path.home()): "HOME", socket.gethostname(): "HOST", platform.node(): "HOST"}
    with contextlib.suppress(KeyError, OSError):  # a container may run as a number without a name
        words[getpass.getuser()] = "USER"
    return {word: replacement for word, replacement in words.items() if len(word) >= _WORD and word != "root"}


def files(store: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each record, log, report and passport of a store."""
    for pattern in ("records/*.json", "logs/*", "artifacts/*/passport.json", "artifacts/*/report.json"):
        for path in sorted(store.glob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(store)), regular.read(path)[-_LARGEST:].decode("utf-8", "replace")


def write(target: Path, store: Path, facts: Mapping[str, object], further: Mapping[str, str] | None = None) -> int:
    """Write the bundle, with `further` texts by file name; return the number of files. Raises StoreError."""
    private = private_words()
    machine = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
    contents = {"machine.json": machine, **(further or {}), **dict(files(store))}
    try:
        with tarfile.open(target, "w:gz") as archive:
            for name, text in contents.items():
                content = redacted(text, private).encode()
                info = tarfile.TarInfo(f"recipe-results/{name}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    except OSError as error:
        what = f"the bundle {target} cannot be written: {error.strerror or error}"
        raise StoreError(what, hint="name a file in a folder that you may write") from error
    return len(contents)
