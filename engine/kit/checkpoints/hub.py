"""A model hub: the commit behind a revision, and a commit's files, each verified."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from engine import distribution
from engine.errors import StepError
from engine.kit.checkpoints import hub_errors, hub_files, model_files
from engine.kit.checkpoints.hub_errors import Hub
from engine.kit.checkpoints.hub_files import File, Repository
from engine.store.copying import copy

_DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_YES = {"1", "true", "yes", "on"}


class NotTheHub(Exception):  # noqa: N818 - it says what answered
    """The answer is well-formed, but not one that a hub gives."""


def commit_of(repository: str, revision: str) -> str:
    """Return the commit, 40 hexadecimal digits, that a branch or tag of the repository points at now.

    With HF_HUB_OFFLINE it is the one that the hub's own cache remembers. Raises StepError.
    """
    place = Repository(_environment(), repository, revision)
    if not place.hub.offline:
        return str(_information(place).sha)
    ref = place.cached / "refs" / revision
    commit = ref.read_text().strip() if ref.is_file() else ""
    if not _COMMIT.fullmatch(commit):
        raise hub_errors.offline(f"hf:{repository}", place.hub, f"the commit of {revision}")
    return commit


def download(
    repository: str, commit: str, out: Path, *, weights: model_files.Weights, tokenizer: bool = False
) -> list[str]:
    """Write a commit's files that matter into `out` and return their names.

    They go through the hub's own cache, so that a download that was interrupted keeps its complete files. Each file is
    held against the SHA-256 or git's SHA-1 that the hub states. With `tokenizer` only a tokenizer's files are wanted.
    Raises StepError; a repository that has only a pickle is refused before anything is fetched.
    """
    place = Repository(_environment(), repository, commit)
    listed = _in_cache(place) if place.hub.offline else _on_hub(place)
    if tokenizer:
        chosen = model_files.of_tokenizer(listed)
        if not chosen:
            raise StepError(f"hf:{repository} has no tokenizer", [f"revision: {commit}"], "name another `tokenizer:`")
    else:
        model_files.refuse_incomplete(sorted(listed), weights=weights, where=f"hf:{repository}")
        chosen = model_files.of_model(listed)
    for name in chosen:
        copy(hub_files.fetch(place, listed[name]), out / name)
    return chosen


def _environment() -> Hub:
    """Read the environment now, not when the hub's client was imported: workers live longer than one build."""
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
    """Ask for a revision's commit and files. Raises StepError."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=place.hub.endpoint, token=place.hub.token or False)

    def ask() -> Any:
        found = api.model_info(place.name, revision=place.revision, files_metadata=True, timeout=hub_files.PATIENCE)
        if not _COMMIT.fullmatch(str(found.sha)) or found.siblings is None:
            raise NotTheHub("the answer names no commit and no files")
        return found

    def ask_patiently() -> Any:
        """Ask a server that is in trouble once more."""
        try:
            return ask()
        except HfHubHTTPError as error:
            if error.response.status_code < 500:  # noqa: PLR2004 - from 500 on it is the server's own trouble
                raise
        return ask()

    return place.ask(ask_patiently)


def _on_hub(place: Repository) -> dict[str, File]:
    return {
        file.rfilename: File.stated(file.rfilename, file.size, file.lfs.sha256 if file.lfs else file.blob_id)
        for file in _information(place).siblings
    }


def _in_cache(place: Repository) -> dict[str, File]:
    """List what the hub's cache holds of a commit. Its blobs are called by their SHA-256 or git's SHA-1."""
    folder = place.cached / "snapshots" / place.revision
    if not folder.is_dir():
        raise hub_errors.offline(f"hf:{place.name}", place.hub, f"the commit {place.revision}")
    names, _ = model_files.listing(folder)
    return {name: File.stated(name, None, (folder / name).resolve().name) for name in names}
