"""Whose records this user uses: keys of remotes, and stores on this machine: `cache trust`."""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Exit, UsageError
from engine.system import own_stores

if TYPE_CHECKING:
    from engine.store.remote.trust import TrustedKey


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe cache trust`."""
    parser.add_argument("store", metavar="PATH", nargs="?", type=Path, help="use the store in this folder")
    parser.add_argument("--remove", metavar="PATH", type=Path, help="take a store off the list")
    parser.add_argument("--key", metavar="KEY", help="use what this key signs: ed25519:BASE64")
    parser.add_argument("--name", metavar="NAME", default="", help="a name for the key, for messages")
    parser.add_argument("--until", metavar="DAY", help="the last day on which the key may sign: 2027-01-31")
    parser.add_argument("--revoke", metavar="KEY", help="use nothing that this key signs or has signed")
    parser.add_argument("--forget", metavar="KEY", help="take a key off the list")


def run(arguments: argparse.Namespace) -> Exit:
    """Change the user's lists of keys and stores, and print them. Raises UsageError."""
    from engine.store.remote import settings, trust

    if (arguments.name or arguments.until) and not arguments.key:
        raise UsageError("--name and --until belong to a key", hint="`recipe cache trust --key KEY --until DAY`")
    path = settings.trusted_keys_path()
    listed = {each.key.raw: each for each in trust.read(path)}
    changed = _changed(arguments, listed)
    if changed:
        trust.write(path, list(listed.values()))
    if arguments.store is not None:
        _trust_store(arguments.store)
    if arguments.remove is not None and not own_stores.forget(str(arguments.remove)):
        raise UsageError(f"the store {arguments.remove} is not on the list")
    print(f"keys ({path}):")
    for each in listed.values():
        print(f"  {each}")
    print(f"stores ({own_stores.folder()}):")
    for place in own_stores.listed():
        print(f"  {place}")
    return Exit.OK


def _trust_store(path: Path) -> None:
    """Put a store on the user's list: its folder, or the project that has it as `cache`; or an empty folder."""
    place = next((each for each in (path, path / "cache") if (each / "format").is_file()), path)
    if not (place / "format").is_file() and not (place.is_dir() and not any(place.iterdir())):
        raise UsageError(f"there is no store at {path}")
    try:
        own_stores.trust(str(place))
    except OSError as error:
        raise UsageError(f"the store {place} cannot be put on the list: {error.strerror or error}") from None


def _changed(arguments: argparse.Namespace, listed: dict[bytes, TrustedKey]) -> bool:
    from engine.store.remote.keys import PublicKey
    from engine.store.remote.trust import TrustedKey

    changed = False
    if arguments.key:
        key = PublicKey.parse(arguments.key)
        if key.raw in listed and listed[key.raw].revoked:
            raise UsageError(
                f"the key {key} is revoked", hint="`recipe cache trust --forget KEY` takes it off the list"
            )
        listed[key.raw] = TrustedKey(key, _name(arguments.name), _day(arguments.until))
        changed = True
    if arguments.revoke:
        key = PublicKey.parse(arguments.revoke)
        before = listed.get(key.raw)
        listed[key.raw] = TrustedKey(key, before.name if before else "", None, revoked=True)
        changed = True
    if arguments.forget:
        key = PublicKey.parse(arguments.forget)
        if listed.pop(key.raw, None) is None:
            raise UsageError(f"the key {key} is not on the list")
        changed = True
    return changed


def _name(text: str) -> str:
    if text and (not text.isprintable() or any(letter.isspace() for letter in text)):
        raise UsageError(f"{text!r} is no name for a key", hint="a name has no spaces: ci, anna@example.com")
    return text


def _day(text: str | None) -> dt.date | None:
    from engine.store.remote import trust

    return None if text is None else trust.day(text, "--until")
