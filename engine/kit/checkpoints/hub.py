"""The model hub: the commit of a revision, and verified downloads of a commit's files."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import StepError
from engine.kit.checkpoints import hub_errors, model_files
from engine.kit.checkpoints.hub_errors import Hub
from engine.store.disk import copy
from engine.text import distribution, sizes

_DEFAULT_ENDPOINT = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}")
"""The form of a commit: 40 hexadecimal digits."""
_YES = {"1", "true", "yes", "on"}
PATIENCE = 8.0
"""Seconds to wait until the hub begins to answer a request. Without a network, a build must fail at once."""
_RESTARTS = 3
"""How often the download of a file may start again from its first byte after a cut connection."""
_IDENTITY = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")
_Result = TypeVar("_Result")


class NotTheHub(Exception):  # noqa: N818 - named after its cause
    """A server's answer is well-formed, but lacks the commit or the files that a hub always names."""


def commit_of(repository: str, revision: str) -> str:
    """Return the commit, 40 hexadecimal digits, that a branch or tag of a hub's repository points at now.

    Where HF_HUB_OFFLINE is set, the commit comes from the hub's own cache. Raises StepError.
    """
    place = Repository(_environment(), repository, revision)
    if not place.hub.offline:
        return str(_information(place).sha)
    ref = place.cached / "refs" / revision
    commit = ref.read_text().strip() if ref.is_file() else ""
    if not COMMIT.fullmatch(commit):
        raise hub_errors.offline(f"hf:{repository}", place.hub, f"the commit of {revision}")
    return commit


def download(
    repository: str, commit: str, out: Path, *, weights: model_files.Weights, tokenizer: bool = False
) -> list[str]:
    """Write those files of a commit on which the model's outputs depend into `out`, and return their names.

    With `tokenizer`, only the tokenizer's files are written. Files are downloaded into the hub's own cache, so an
    interrupted download keeps its complete files. Each file is verified by the SHA-256 or git's SHA-1 that the hub
    states. Raises StepError. A repository whose only weights are pickles is refused before any download, unless
    `weights` allows pickles.
    """
    place, listed = _listed(repository, commit)
    if tokenizer:
        chosen = model_files.of_tokenizer(listed)
        if not chosen:
            raise StepError(f"hf:{repository} has no tokenizer", [f"revision: {commit}"], "name another `tokenizer:`")
    else:
        model_files.refuse_incomplete(sorted(listed), weights=weights, where=f"hf:{repository}")
        chosen = model_files.of_model(listed)
    for name in chosen:
        copy(fetch(place, listed[name]), out / name)
    return chosen


def download_licenses(repository: str, commit: str, out: Path) -> list[str]:
    """Write the model card and the licence texts of a commit into `out`, and return their names. Raises StepError.

    Where HF_HUB_OFFLINE is set, only the files in the hub's own cache are written.
    """
    place, listed = _listed(repository, commit)
    chosen = model_files.licenses_of(listed)
    for name in chosen:
        copy(fetch(place, listed[name]), out / name)
    return chosen


def download_settings(repository: str, commit: str, out: Path) -> None:
    """Write the config, tokenizer and licence files of a commit into `out`, and an empty file for each file of weights.

    Raises StepError. A repository without weights is refused before any download.
    """
    place, listed = _listed(repository, commit)
    model_files.refuse_incomplete(sorted(listed), weights="pickle-tensors-only", where=f"hf:{repository}")
    weights = set(model_files.weights_of(sorted(listed)))
    chosen = {*model_files.of_model(listed), *model_files.licenses_of(listed)}
    for name in sorted(chosen):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if name in weights or name.endswith(".safetensors"):
            (out / name).touch()
        else:
            copy(fetch(place, listed[name]), out / name)


def _listed(repository: str, commit: str) -> tuple[Repository, dict[str, File]]:
    """Return a repository at a commit, and the name of each file -> its description. Raises StepError."""
    place = Repository(_environment(), repository, commit)
    return place, _in_cache(place) if place.hub.offline else _on_hub(place)


def _environment() -> Hub:
    """Return the hub that the environment variables describe now, because they may change while a worker runs."""
    try:
        from huggingface_hub import get_token, utils
    except ImportError as error:
        raise StepError(
            "a model from a hub needs the package huggingface-hub", [str(error)], distribution.install("cpu")
        ) from None
    utils.logging.set_verbosity_error()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Hub(
        endpoint=(os.environ.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT).rstrip("/"),
        cache=os.path.expanduser(cache),
        offline=os.environ.get("HF_HUB_OFFLINE", "").lower() in _YES,
        token=get_token(),
    )


def _information(place: Repository) -> Any:
    """Return the hub's response about the commit and files of a revision. Raises StepError."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=place.hub.endpoint, token=place.hub.token or False)

    def ask() -> Any:
        response = api.model_info(place.name, revision=place.revision, files_metadata=True, timeout=PATIENCE)
        if not COMMIT.fullmatch(str(response.sha)) or response.siblings is None:
            raise NotTheHub("the answer names no commit and no files")
        return response

    def ask_patiently() -> Any:
        """Ask the hub, and ask a second time where the HTTP status of the first answer is 500 or more."""
        try:
            return ask()
        except HfHubHTTPError as error:
            if error.response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        return ask()

    return place.ask(ask_patiently)


def _on_hub(place: Repository) -> dict[str, File]:
    """Return the name of each file of a revision -> the hub's description of the file."""
    return {
        file.rfilename: File.stated(file.rfilename, file.size, file.lfs.sha256 if file.lfs else file.blob_id)
        for file in _information(place).siblings
    }


def _in_cache(place: Repository) -> dict[str, File]:
    """Return the name of each file of a commit in the hub's cache -> the file's description.

    In the hub's cache, the name of a blob is the SHA-256 of the blob's content, or git's SHA-1.
    """
    folder = place.cached / "snapshots" / place.revision
    if not folder.is_dir():
        raise hub_errors.offline(f"hf:{place.name}", place.hub, f"the commit {place.revision}")
    names, _ = model_files.listing(folder)
    return {name: File.stated(name, None, (folder / name).resolve().name) for name in names}


class TooManyCuts(Exception):  # noqa: N818 - named after its cause
    """The connection was cut more than `_RESTARTS` times during one download."""


@dataclass(frozen=True)
class Repository:
    """A repository of the hub at one revision."""

    hub: Hub
    name: str
    revision: str

    @property
    def cached(self) -> Path:
        """The repository's folder in the cache of huggingface_hub, with the folders `blobs`, `refs` and `snapshots`."""
        return Path(self.hub.cache) / f"models--{self.name.replace('/', '--')}"

    def ask(self, call: Callable[[], _Result], target: str = "") -> _Result:
        """Call the hub's client through `call`; turn its exceptions into one StepError about the file `target`."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the client raises what its HTTP library, the disk and JSON raise
            target = f"{target} of hf:{self.name}" if target else f"hf:{self.name}"
            explained = hub_errors.explain(
                error, target=target, repository=self.name, revision=self.revision, hub=self.hub
            )
        # Outside the handler: the client's own errors may quote headers and must not travel along as a cause.
        raise explained


@dataclass(frozen=True)
class File:
    """The hub's description of a file; `identity` is a SHA-256 (64 digits), git's SHA-1 (40 digits) or None."""

    name: str
    size: int | None
    identity: str | None

    @classmethod
    def stated(cls, name: str, size: int | None, identity: str | None) -> File:
        """Return the description of a file from the hub's answer; an `identity` that is no digest becomes None."""
        return cls(name, size, identity if _IDENTITY.fullmatch(identity or "") else None)


def fetch(repository: Repository, file: File) -> Path:
    """Return the path of the verified file in the hub's cache.

    A damaged copy of the file in the cache is downloaded once more. Raises StepError.
    """
    hub = repository.hub
    cached = repository.cached / "snapshots" / repository.revision / file.name
    was_there = cached.is_file()
    if not was_there and hub.offline:
        raise hub_errors.offline(f"{file.name} of hf:{repository.name}", hub, "it")
    if was_there:
        print(f"checking {file.name} in the cache ({sizes.decimal(cached.stat().st_size)})")
    else:
        print(f"fetching {file.name}" + (f" ({sizes.decimal(file.size)})" if file.size is not None else ""))
        _download(repository, file, force=False)
    difference = _difference(cached, file)
    if difference and was_there and not hub.offline:
        print(f"{file.name} in the cache is damaged ({difference}): fetching it again")
        _download(repository, file, force=True)
        difference = _difference(cached, file)
    if difference:
        raise _corrupt(repository, file, cached, difference)
    return cached


def _download(repository: Repository, file: File, *, force: bool) -> None:
    from huggingface_hub import hf_hub_download

    hub = repository.hub
    repository.ask(
        functools.partial(
            hf_hub_download,
            repository.name,
            file.name,
            revision=repository.revision,
            endpoint=hub.endpoint,
            token=hub.token or False,
            cache_dir=hub.cache,
            etag_timeout=PATIENCE,
            force_download=force,
            tqdm_class=_counter(),
        ),
        file.name,
    )


def _counter() -> type:
    """Return a class of progress bars that print nothing, and that end a download which starts again too often.

    The hub's client starts a download again without end as long as each attempt brings some bytes. Negative progress
    means that a new attempt began at the first byte.
    """
    from huggingface_hub.utils import tqdm

    class Counter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})
            self.restarts = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.restarts += (n or 0) < 0
            if self.restarts > _RESTARTS:
                raise TooManyCuts(f"started from nothing {self.restarts} times")
            return None

    return Counter


def _difference(path: Path, file: File) -> str:
    """Return how a file differs from the size and digest that the hub states; "" for no difference."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size} bytes, the hub states {file.size}"
    if file.identity is None:
        return ""
    large = len(file.identity) == 64  # noqa: PLR2004 - hexadecimal digits of a SHA-256
    state = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as content:
        while chunk := content.read(1 << 20):
            state.update(chunk)
    if state.hexdigest() == file.identity:
        return ""
    kind = "SHA-256" if large else "git SHA-1"
    return f"{kind} {state.hexdigest()}, the hub states {file.identity}"


def _corrupt(repository: Repository, file: File, cached: Path, difference: str) -> StepError:
    """Return the error for a damaged file, and remove the file from the hub's cache unless HF_HUB_OFFLINE is set."""
    hub = repository.hub
    facts = [f"endpoint: {hub.host}", f"revision: {repository.revision}", difference]
    with cached.open("rb") as content:
        if content.read(512).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            facts.append("it is a web page: a proxy or a login stands between here and the hub")
    if hub.offline:
        facts.append("HF_HUB_OFFLINE is set, so it is not fetched again")
    else:
        cached.resolve().unlink(missing_ok=True)
        cached.unlink(missing_ok=True)
    return StepError(
        f"{file.name} of hf:{repository.name} is not what the hub states",
        facts,
        f"build again; if it stays so, check HF_ENDPOINT and the proxy settings, or {hub_errors.LOCAL}",
    )
