"""Share what was built, and say whose results are used: `cache push`, `pull`, `export`, `import`, `keygen`, `trust`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.commands import options
from engine.errors import Exit, StepError, StoreError, UsageError
from engine.system import folders, own_stores
from engine.text import sizes

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.variant import PlannedVariant
    from engine.builder.why import Finding
    from engine.store.remote.tier import Tier
    from engine.store.remote.trust import TrustedKey
    from engine.store.store import Store


_ELSEWHERE = "name another file with -o"
Add = Callable[[str, str], argparse.ArgumentParser]


def arguments(action: Add) -> None:
    """Declare the actions; `action` adds one with its name and description."""
    push = action("push", "push what recipes have built to the remote")
    options.add_recipes(push)
    _add_remote(push)
    push.add_argument("--locked", action="store_true", help="push only what the recipe's lock says, else exit 2")
    pull = action("pull", "bring the packages of recipes from the remote; nothing is built")
    options.add_recipes(pull)
    _add_remote(pull)
    pull.add_argument("--locked", dest="frozen", action="store_true", help="by the recipe's lock: no model, no tools")
    pull.add_argument("-o", "--output", metavar="DIR", type=Path, help="where packages go (default: build/)")
    options.add_json(pull)
    export = action("export", "write what recipes have built into one file, for a machine without a network")
    options.add_recipes(export)
    export.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the new file")
    taking = action("import", "take what `recipe cache export` wrote into the store")
    taking.add_argument("file", metavar="FILE", type=Path, help="what `recipe cache export` wrote")
    options.add_cache(taking)
    keygen = action("keygen", "make a pair of keys: the private one signs what this user pushes")
    keygen.add_argument("-o", "--output", metavar="FILE", type=Path, help="the private key; FILE.pub is the public one")
    for parser, run in ((push, _push), (pull, _pull), (export, _export), (taking, _import), (keygen, _keygen)):
        parser.set_defaults(run=run)
    _add_trust(action("trust", "whose records are used: keys of remotes, and stores on this machine"))


def _add_remote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--remote", metavar="URL", default="", help="s3://, gs://, az://, file:// or https:// (default: RECIPE_REMOTE)"
    )


def _push(arguments: argparse.Namespace) -> Exit:
    session = _session(arguments)
    tier = _joined(session.lookup.store, session.selection.project, arguments.remote)
    if tier.settings.proposed:
        raise UsageError(
            f"the remote {tier.shown} is only proposed by the project, and nothing is pushed there",
            hint="name it yourself: --remote, RECIPE_REMOTE, or the user's config.toml",
        )
    return _pushed(session, tier)


def _export(arguments: argparse.Namespace) -> Exit:
    from engine.store.remote import remotes

    folders.refuse_unwritable(arguments.output.parent, f"{arguments.output} cannot be written", _ELSEWHERE)
    session = _session(arguments)
    tier = _tier(session.lookup.store, remotes.archive(arguments.output, mode="x"))
    try:
        return _pushed(session, tier)
    except BaseException:
        arguments.output.unlink(missing_ok=True)
        raise


def _pushed(session: Session, tier: Tier) -> Exit:
    if tier.settings.signer is None and not tier.settings.trust.everything:
        raise UsageError(
            "nothing is pushed without a signature, and there is no signing key",
            hint="`recipe cache keygen` makes one; RECIPE_SIGNING_KEY names one; RECIPE_TRUST=none does without",
        )
    with _progress(tier):
        count = _push_records(tier, session.variants, session.findings())
        tier.close()
    new = tier.counts.pushed
    written = sizes.decimal(tier.counts.bytes_out)
    print(f"{tier.shown}: {count} records, {new} of them new, {written} of files written{tier.counts.repairs}")
    session.lookup.store.leave()
    return Exit.OK


def _pull(arguments: argparse.Namespace) -> Exit:
    from engine.builder.options import Options
    from engine.report import report_for, results, table

    session = _session(arguments)
    tier = _joined(session.lookup.store, session.selection.project, arguments.remote)
    if tier.settings.trust.is_empty:
        raise UsageError(
            f"nothing of the remote {tier.shown} is used: no key is trusted",
            hint="`recipe cache trust --key KEY` adds the key of whoever pushes; RECIPE_TRUST=none trusts everything",
        )
    with report_for(json=arguments.json, variants=len(session.variants)) as report:
        finished = session.build(Options(out=arguments.output, keep_going=True, runs=False), report.on_event)
    tables = {each.variant.name: table.tables([each]) for each in session.summaries()}
    report.finish(results.results(finished, tables))
    return finished.exit


def _import(arguments: argparse.Namespace) -> Exit:
    from engine.builder.selection import store_of
    from engine.store.opening import open_store
    from engine.store.remote import remotes

    archive = remotes.archive(arguments.file, mode="r")
    store = open_store(store_of(arguments.cache, Path("recipe.yaml")))
    store.tier = tier = _tier(store, archive)
    with _progress(tier):
        records = tier.take_all()
        with contextlib.suppress(StoreError):  # one file that is refused; then one after the other
            tier.bring_all(records)
        brought = [record for record in records if store.bring(record)]
        tier.close()
    print(f"{arguments.file}: {len(brought)} records taken, {sizes.decimal(tier.counts.bytes_in)} of files")
    store.leave()
    if not tier.trouble:
        return Exit.OK
    print(f"error: {tier.trouble}", file=sys.stderr)
    return Exit.FAILED


def _keygen(arguments: argparse.Namespace) -> Exit:
    from engine.store.remote import keys, settings

    path = arguments.output or settings.signing_key_path()
    folders.refuse_unwritable(path.parent, f"{path} cannot be written", _ELSEWHERE)
    pair = keys.generate(path)
    print(f"private key: {path} (keep it; a CI gets it as the secret {keys.VARIABLE})")
    print(f"public key:  {pair.public}")
    print(f"whoever uses what you push: recipe cache trust --key {pair.public}")
    return Exit.OK


def _session(arguments: argparse.Namespace) -> Session:
    """Return the session of the recipes, without a remote: the action joins the one that it is about."""
    from engine import api

    reading: Any = options.reading(arguments)
    return api.session(arguments.recipes, remote=False, **reading)


def _joined(store: Store, project: Path, url: str) -> Tier:
    from engine.store import opening

    tier = opening.join(store, project, url=url, brief=False)
    if tier is None:
        raise UsageError("no remote is named", hint="--remote s3://BUCKET/PREFIX, or RECIPE_REMOTE")
    return tier


def _tier(store: Store, remote: Any) -> Tier:
    from engine.store.remote import settings
    from engine.store.remote.tier import Tier

    chosen = settings.without_remote(os.environ)
    return Tier(store, chosen, brief=False, remote=remote)


@contextmanager
def _progress(tier: Tier) -> Iterator[None]:
    from engine.report import progress

    with progress.transfer_bar(tier.shown) as tier.counts.on_bytes:
        yield


def _push_records(tier: Tier, variants: Iterable[PlannedVariant], findings: Iterable[Finding]) -> int:
    """Push all stored records of the variants; return their number. Raises the remote's first error, or StepError."""
    records = {(each.job.recipe, each.job.name): each.record for each in findings}
    count, missing = 0, []
    for variant in variants:
        for job in variant.jobs:
            record = records.get((variant.name, job.name))
            if record is None:
                missing.append(f"{variant.name} {job.name}")
                continue
            earlier = [records.get((variant.name, name)) for name in variant.before(job)]
            tier.push(record, earlier=[each for each in earlier if each is not None])
            count += 1
    if not count:
        raise StepError(
            "there is nothing to push: the store has no record of these recipes",
            [f"without a record: {', '.join(missing)}"],
            "build first: `recipe build`",
        )
    error = tier.wait()
    if error is not None:
        raise error
    return count


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="PATH", nargs="?", type=Path, help="use the store in this folder")
    parser.add_argument("--remove", metavar="PATH", type=Path, help="take a store off the list")
    parser.add_argument("--key", metavar="KEY", help="use what this key signs: ed25519:BASE64")
    parser.add_argument("--name", metavar="NAME", default="", help="a name for the key, for messages")
    parser.add_argument("--until", metavar="DAY", help="the last day on which the key may sign: 2027-01-31")
    parser.add_argument("--revoke", metavar="KEY", help="use nothing that this key signs or has signed")
    parser.add_argument("--forget", metavar="KEY", help="take a key off the list")
    parser.set_defaults(run=_trust)


def _trust(arguments: argparse.Namespace) -> Exit:
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
    from engine.store.remote import trust
    from engine.store.remote.keys import PublicKey
    from engine.store.remote.trust import TrustedKey

    changed = False
    if arguments.key:
        key = PublicKey.parse(arguments.key)
        if key.raw in listed and listed[key.raw].revoked:
            raise UsageError(
                f"the key {key} is revoked", hint="`recipe cache trust --forget KEY` takes it off the list"
            )
        until = None if arguments.until is None else trust.day(arguments.until, "--until")
        listed[key.raw] = TrustedKey(key, _name(arguments.name), until)
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
