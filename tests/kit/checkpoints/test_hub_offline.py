"""The hub's client without a network, with and without the hub's own cache."""

import os
import subprocess
import sys

import pytest
from fake_hub import FIRST, REPO


def test_offline_the_cache_answers_for_a_branch_and_for_the_files(hub, built, monkeypatch, tmp_path):
    from huggingface_hub import hf_hub_download

    built(revision=FIRST)
    hf_hub_download(REPO, "config.json", endpoint=hub.endpoint, cache_dir=tmp_path / "hf" / "hub")
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = built()
    assert hub.requests == []
    assert (out / "model.safetensors").read_bytes() == hub.repositories[REPO][FIRST]["model.safetensors"]


def test_offline_a_damaged_cache_is_an_error_and_stays_as_it_is(hub, built, failure, monkeypatch, tmp_path):
    built(revision=FIRST)
    (cached,) = (tmp_path / "hf").glob("hub/models--*/snapshots/*/model.safetensors")
    cached.resolve().write_bytes(b"x" + cached.read_bytes()[1:])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    error = failure(revision=FIRST)
    assert "HF_HUB_OFFLINE is set, so it is not fetched again" in error
    assert cached.is_file()


def test_offline_without_a_cache_says_so(hub, failure, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    error = failure()
    assert "HF_HUB_OFFLINE is set, and the cache lacks the commit of main" in error
    assert "unset HF_HUB_OFFLINE" in error
    assert f"the cache lacks the commit {FIRST}" in failure(revision=FIRST)
    assert hub.requests == []


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:9", "127.0.0.1:9 cannot be reached"),
        ("http://user:passw0rd@hub.invalid", "hub.invalid cannot be reached"),
        ("hub.example", "HF_ENDPOINT is no address"),
    ],
)
def test_a_hub_that_cannot_be_reached_is_one_error_at_once(failure, naps, monkeypatch, endpoint, reason):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    error = failure()
    assert naps == [], "it does not try again"
    assert f"hf:{REPO} could not be fetched: {reason}" in error
    assert "passw0rd" not in error


@pytest.mark.whole("test_a_hub_that_cannot_be_reached_is_one_error_at_once")
def test_a_fresh_process_without_a_network_does_not_try_again_and_shows_no_bars(tmp_path):
    program = (
        "from engine import digest; from engine.builder.sources import resolve; from engine.step import Source\n"
        "resolve(Source(uri='hf:philschmid/MiniLM-L6-H384-uncased-sst2'), digest_file=digest.of_file, commits={})"
    )
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert "hf:philschmid/MiniLM-L6-H384-uncased-sst2 could not be fetched" in done.stderr
    assert "Retrying" not in done.stderr
