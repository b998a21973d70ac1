"""Which remote a build uses, whose signatures count there, and whether the build pushes."""

# The user decides: by the environment, or by `config.toml` in the user's configuration folder. A project's
# `recipe.toml` may propose a remote. A proposed remote is only read, gets no credentials, and needs trusted keys.

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.recipe import settings_file
from engine.store import revocations
from engine.store.remote import keys, trust
from engine.store.remote.keys import Signer
from engine.store.remote.trust import NONE, Trust, TrustedKey
from engine.store.revocations import TRUST, folder
from engine.text import redaction

REMOTE, PUSH = "RECIPE_REMOTE", "RECIPE_PUSH"
_USER: settings_file.Kinds = {
    "remote": {"url": str, "push": bool, "retention_days": settings_file.NUMBER},
    "sign": {"command": list, "key": str},
}
"""The settings of the user's `config.toml`."""
_DAY = 86400.0


@dataclass(frozen=True)
class RemoteSettings:
    """A remote and what this user allows there."""

    url: str
    environ: Mapping[str, str]
    trust: Trust
    signer: Signer | None
    pushes: bool
    """Whether builds push what they make."""
    proposed: bool = False
    """Whether only the project names this remote."""
    retention: float | None = None
    """The age in seconds at which the remote removes objects; None if it keeps all."""


def signing_key_path() -> Path:
    """Return where `recipe cache keygen` writes the user's signing key."""
    return folder() / "signing.key"


def trusted_keys_path() -> Path:
    """Return the user's list of trusted keys."""
    return folder() / revocations.LIST


def of(project: Path, environ: Mapping[str, str] = os.environ, *, url: str = "") -> RemoteSettings | None:
    """Return the settings for a project, or None without a remote. Raises UsageError for wrong files and keys.

    `url` is the remote of the command line.
    """
    user = settings_file.read(str(folder(environ) / "config.toml"), _USER)
    chosen = url or environ.get(REMOTE) or user.get("remote", {}).get("url", "")
    proposed = False
    if not chosen:
        chosen = settings_file.of_project(str(project)).get("remote", {}).get("url", "")
        proposed = bool(chosen)
    if not chosen or chosen == NONE:
        return None
    redaction.learn([str(chosen)])
    days = user.get("remote", {}).get("retention_days")
    own = replace(without_remote(environ), url=str(chosen), retention=None if days is None else float(days) * _DAY)
    if proposed:  # `none` is said of the remotes that the user names, never of one that a repository brings
        return replace(own, environ={}, trust=Trust(own.trust.keys), pushes=False, proposed=True)
    return replace(own, pushes=_pushes(environ, user, able=own.signer is not None or own.trust.everything))


def without_remote(environ: Mapping[str, str] = os.environ) -> RemoteSettings:
    """Return the user's settings for a place that needs no URL, such as an archive. Raises UsageError."""
    sign = settings_file.read(str(folder(environ) / "config.toml"), _USER).get("sign", {})
    signer = keys.signer(environ, signing_key_path(), sign.get("command", ()), sign.get("key", ""))
    return RemoteSettings(url="", environ=environ, trust=_trust_of(environ, signer), signer=signer, pushes=True)


def _trust_of(environ: Mapping[str, str], signer: Signer | None) -> Trust:
    """Return whose signatures count: the user's list, the variable RECIPE_TRUST, and the user's own signing key."""
    words = environ.get(TRUST, "").replace(",", "\n").splitlines()
    stated = trust.parse(words, TRUST)
    listed = trust.read(trusted_keys_path())
    own = () if signer is None else (TrustedKey(signer.public, "your own key"),)
    every: dict[bytes, TrustedKey] = {}
    for key in (*own, *stated.keys, *listed):  # the list comes last: its revocations hold
        every[key.key.raw] = key
    return Trust(tuple(every.values()), stated.everything)


def _pushes(environ: Mapping[str, str], user: Mapping[str, Any], *, able: bool) -> bool:
    stated = environ.get(PUSH, "")
    if stated not in ("", "0", "1"):
        raise UsageError(f"{PUSH} is {stated!r}", hint=f"{PUSH}=1 pushes what builds make, {PUSH}=0 does not")
    wish = stated == "1" if stated else user.get("remote", {}).get("push")
    if wish and not able:
        raise UsageError(
            "builds cannot push: there is no signing key",
            hint="`recipe cache keygen` makes one; RECIPE_SIGNING_KEY names one; RECIPE_TRUST=none does without",
        )
    return able if wish is None else bool(wish)
