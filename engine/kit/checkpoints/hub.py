"""The model hub: the commit of a revision, and verified downloads of a commit's files."""

from __future__ import annotations

import os
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import hub_errors, hub_files, model_files
from engine.kit.checkpoints.hub_errors import Hub
from engine.kit.checkpoints.hub_files import File, Repository
from engine.store.disk import copy
from engine.text import distribution

_DEFAULT_ENDPOINT = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}")
"""The form of a commit: 40 hexadecimal digits."""
_YES = {"1", "true", "yes", "on"}


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


def download_licenses(repository: str, commit: str, out: Path) -> list[str]:
    """Write the model card and the licence texts of a commit into `out`, and return their names. Raises StepError.

    Where HF_HUB_OFFLINE is set, only the files in the hub's own cache are written.
    """
    place = Repository(_environment(), repository, commit)
    listed = _in_cache(place) if place.hub.offline else _on_hub(place)
    chosen = model_files.licenses_of(listed)
    for name in chosen:
        copy(hub_files.fetch(place, listed[name]), out / name)
    return chosen


def download_settings(repository: str, commit: str, out: Path) -> None:
    """Write the config, tokenizer and licence files of a commit into `out`, and an empty file for each file of weights.

    Raises StepError. A repository without weights is refused before any download.
    """
    place = Repository(_environment(), repository, commit)
    listed = _in_cache(place) if place.hub.offline else _on_hub(place)
    model_files.refuse_incomplete(sorted(listed), weights="pickle-tensors-only", where=f"hf:{repository}")
    weights = set(model_files.weights_of(sorted(listed)))
    chosen = {*model_files.of_model(listed), *model_files.licenses_of(listed)}
    for name in sorted(chosen):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if name in weights or name.endswith(".safetensors"):
            (out / name).touch()
        else:
            copy(hub_files.fetch(place, listed[name]), out / name)


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
        response = api.model_info(place.name, revision=place.revision, files_metadata=True, timeout=hub_files.PATIENCE)
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
