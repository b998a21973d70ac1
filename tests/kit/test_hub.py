"""The hub's client against a fake hub: a real server on this machine, with real misbehaviour."""

import os
import subprocess
import sys
import time

import fake_hub
import pytest
from fake_hub import FIRST, SECOND, FakeHub

from engine import digest
from engine.errors import StepError
from engine.sources import resolve
from engine.step import Source
from engine.steps.fetch import Fetch

REPO = "acme/tiny"
TOKEN = "hf_" + "s3cret" * 5


@pytest.fixture
def hub(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING_FACE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with FakeHub(repositories={REPO: {FIRST: fake_hub.model(), SECOND: fake_hub.model(fill=1)}}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        yield server


@pytest.fixture
def built(tmp_path):
    """Resolve and fetch a source into a fresh folder; return it."""
    numbers = iter(range(100))

    def build(uri=f"hf:{REPO}", revision=None, *, remembered=lambda _: None, **options):
        source = Source(uri=uri, revision=revision)
        found = resolve(source, digest_file=digest.of_file, remembered=remembered)
        out = tmp_path / f"out{next(numbers)}"
        Fetch(source=source, **options).run(out, source=found.location)
        return out

    return build


def failure(built, *args, **options):
    with pytest.raises(StepError) as caught:
        built(*args, **options)
    told = str(caught.value)
    assert TOKEN not in told
    assert "Signature" not in told
    assert caught.value.__cause__ is None, "the client's own error may quote headers"
    return told


def test_only_the_files_that_matter_are_fetched_and_arrive_whole(hub, built):
    out = built()
    wanted = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert digest.walk(out) == wanted
    assert hub.downloads() == wanted
    assert (out / "model.safetensors").read_bytes() == hub.repositories[REPO][FIRST]["model.safetensors"]
    assert not any(path.is_symlink() or path.stat().st_nlink > 1 for path in out.iterdir())


def test_a_pinned_commit_is_resolved_without_asking_anybody(hub):
    found = resolve(Source(uri=f"hf:{REPO}", revision=SECOND), digest_file=digest.of_file, remembered=lambda _: None)
    assert (found.row, found.location, found.resolution) == (f"hf:{REPO}@{SECOND}", f"hf:{REPO}@{SECOND}", None)
    assert hub.requests == []


def test_a_moving_revision_stays_where_it_was_until_a_refresh(hub):
    notes = {}

    def ask(*, refresh=False):
        found = resolve(Source(uri=f"hf:{REPO}"), digest_file=digest.of_file, remembered=notes.get, refresh=refresh)
        notes.update([found.resolution])
        return found.row

    assert ask() == f"hf:{REPO}@{FIRST}"
    hub.branches["main"] = SECOND
    assert ask() == f"hf:{REPO}@{FIRST}"
    assert ask(refresh=True) == f"hf:{REPO}@{SECOND}"
    assert notes == {f"hf:{REPO}@main": SECOND}


def test_a_second_fetch_takes_the_files_from_the_hubs_own_cache(hub, built):
    first = built()
    hub.requests.clear()
    second = built()
    assert hub.downloads() == []
    assert digest.walk(first) == digest.walk(second)


def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(hub, built, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    built()
    assert {with_token for path, with_token in hub.requests if "/cdn/" in path} == {False}
    assert {with_token for path, with_token in hub.requests if "/cdn/" not in path} == {True}


def test_a_gated_model_without_a_token_says_accept_the_licence_and_set_the_token(hub, built):
    hub.refuse = (401, "GatedRepo")
    told = failure(built)
    assert "the model is gated" in told
    assert "status: 401 (GatedRepo)" in told
    assert f"accept its licence at 127.0.0.1:{hub.port}/{REPO}" in told
    assert "HF_TOKEN" in told
    assert "`source: path/to/it`" in told


def test_a_gated_model_with_a_token_never_repeats_the_token(hub, built, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.refuse = (403, "GatedRepo")
    told = failure(built)
    assert "status: 403 (GatedRepo)" in told
    assert "with the account of HF_TOKEN" in told


def test_a_missing_repository_is_named(hub, built):
    told = failure(built, "hf:acme/typo")
    assert "there is no acme/typo, or it is private and HF_TOKEN is not set" in told
    assert "status: 401 (RepoNotFound)" in told


def test_a_repository_that_the_token_may_not_see_is_named(hub, built, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    told = failure(built, "hf:acme/typo")
    assert "there is no acme/typo, or HF_TOKEN may not see it" in told
    assert "status: 404 (RepoNotFound)" in told


def test_a_missing_revision_is_named(hub, built):
    told = failure(built, revision="v9")
    assert f"{REPO} has no revision v9" in told
    assert "revision: v9" in told


def test_a_name_that_is_no_repository_is_refused_without_asking(hub, built):
    assert "'acme/tiny/x' is no name of a repository" in failure(built, "hf:acme/tiny/x")
    assert hub.requests == []


def test_a_timm_model_comes_from_its_repository_on_the_hub(hub, tmp_path):
    files = {
        "config.json": b'{"architecture": "resnet18", "pretrained_cfg": {"input_size": [3, 224, 224]}}',
        "model.safetensors": fake_hub.safetensors({"conv1.weight": [8, 3, 7, 7]}),
        "pytorch_model.bin": b"not wanted",
    }
    hub.repositories["timm/resnet18.a1_in1k"] = {FIRST: files}
    source = Source(uri="timm:resnet18.a1_in1k")
    found = resolve(source, digest_file=digest.of_file, remembered=lambda _: None)
    assert found.row == f"hf:timm/resnet18.a1_in1k@{FIRST}"
    report = Fetch(source=source).run(tmp_path / "out", source=found.location)
    assert (report["kind"], report["architecture"], report["parameters"]) == ("timm", "resnet18", 8 * 3 * 7 * 7)
    assert report["axes"] == {"pixel_values": ["batch", 3, 224, 224]}
    assert digest.walk(tmp_path / "out") == ["config.json", "model.safetensors"]


def test_a_repository_with_only_a_pickle_is_refused_before_anything_is_fetched(hub, built):
    del hub.repositories[REPO][FIRST]["model.safetensors"]
    told = failure(built)
    assert f"hf:{REPO} has its weights only as a pickle" in told
    assert "weights: pickle-tensors-only" in told
    assert hub.downloads() == []


@pytest.fixture
def small_chunks(monkeypatch):
    """Let the hub's client keep what it has every 1 KB, not every 10 MB: small files are cut off in their middle."""
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1024)


def test_a_connection_that_is_cut_once_resumes_where_it_was(hub, built, small_chunks):
    hub.cuts = {"model.safetensors": 1}
    out = built()
    assert (out / "model.safetensors").read_bytes() == hub.repositories[REPO][FIRST]["model.safetensors"]
    assert (hub.cuts, hub.resumed) == ({"model.safetensors": 0}, 1)


@pytest.mark.slow
def test_a_server_that_always_cuts_and_never_resumes_is_given_up(hub, built, small_chunks):
    hub.cuts, hub.resumes = {"model.safetensors": 1000}, False
    started = time.monotonic()
    told = failure(built)
    assert f"model.safetensors of hf:{REPO} could not be fetched: the connection was cut off again and again" in told
    assert hub.cuts == {"model.safetensors": 995}, "the first attempt and four that started from nothing"
    assert time.monotonic() - started < 15
    hub.cuts = {}
    built()


def test_a_proxys_page_in_the_place_of_the_api_is_not_the_hub(hub, built):
    hub.api_page = True
    told = failure(built)
    assert f"what answers at 127.0.0.1:{hub.port} is not the hub" in told
    assert "a proxy's page, or a wrong HF_ENDPOINT?" in told


def test_a_proxys_page_in_the_place_of_a_files_description_is_not_the_hub(hub, built):
    hub.head_page = {"config.json"}
    told = failure(built)
    assert f"config.json of hf:{REPO} could not be fetched: what answers at" in told
    assert "is not the hub" in told


def test_a_proxys_page_in_the_place_of_a_files_content_is_found_and_not_kept(hub, built):
    hub.body_page = {"model.safetensors"}
    told = failure(built)
    assert f"model.safetensors of hf:{REPO} is not what the hub states" in told
    assert "it is a web page" in told
    hub.body_page = set()
    built()


@pytest.mark.parametrize(("file", "kind"), [("model.safetensors", "SHA-256"), ("config.json", "git SHA-1")])
def test_content_that_differs_from_what_the_hub_states_is_refused_and_not_kept(hub, built, file, kind):
    hub.damaged = {file}
    told = failure(built)
    assert f"{file} of hf:{REPO} is not what the hub states" in told
    assert f"{kind} " in told
    hub.damaged = set()
    built()


def test_a_damaged_file_in_the_cache_is_fetched_again(hub, built, tmp_path, capsys):
    built()
    (cached,) = (tmp_path / "hf").glob("hub/models--*/snapshots/*/model.safetensors")
    content = cached.read_bytes()
    cached.resolve().write_bytes(b"x" + content[1:])
    out = built()
    assert (out / "model.safetensors").read_bytes() == content
    assert "model.safetensors in the cache is damaged" in capsys.readouterr().out


def test_a_server_in_trouble_is_asked_twice_and_then_given_up(hub, built):
    hub.trouble = [503]
    built()
    hub.trouble = [503, 503, 503]
    told = failure(built)
    assert "the hub is in trouble" in told
    assert "status: 503" in told
    assert hub.trouble == [503]


def test_the_hubs_limit_on_questions_is_told(hub, built):
    hub.trouble = [429]
    assert "the hub limits how often it may be asked" in failure(built)


def test_a_server_that_does_not_answer_in_time_is_given_up(hub, built, monkeypatch):
    monkeypatch.setattr("engine.kit.hub_files.PATIENCE", 0.3)
    hub.delay = 2
    assert f"127.0.0.1:{hub.port} does not answer in time" in failure(built)


def test_offline_the_cache_answers_for_a_branch_and_for_the_files(hub, built, monkeypatch, tmp_path):
    from huggingface_hub import hf_hub_download

    built(revision=FIRST)
    hf_hub_download(REPO, "config.json", endpoint=hub.endpoint, cache_dir=tmp_path / "hf" / "hub")
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = built()
    assert hub.requests == []
    assert (out / "model.safetensors").read_bytes() == hub.repositories[REPO][FIRST]["model.safetensors"]


def test_offline_a_damaged_cache_is_an_error_and_stays_as_it_is(hub, built, monkeypatch, tmp_path):
    built(revision=FIRST)
    (cached,) = (tmp_path / "hf").glob("hub/models--*/snapshots/*/model.safetensors")
    cached.resolve().write_bytes(b"x" + cached.read_bytes()[1:])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told = failure(built, revision=FIRST)
    assert "HF_HUB_OFFLINE is set, so it is not fetched again" in told
    assert cached.is_file()


def test_offline_without_a_cache_says_so(hub, built, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told = failure(built)
    assert "HF_HUB_OFFLINE is set, and the cache lacks the commit of main" in told
    assert "unset HF_HUB_OFFLINE" in told
    assert f"the cache lacks the commit {FIRST}" in failure(built, revision=FIRST)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:9", "127.0.0.1:9 cannot be reached"),
        ("http://user:passw0rd@hub.invalid", "hub.invalid cannot be reached"),
        ("hub.example", "HF_ENDPOINT is no address"),
    ],
)
def test_a_hub_that_cannot_be_reached_is_one_error_at_once(hub, built, monkeypatch, endpoint, reason):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    started = time.monotonic()
    told = failure(built)
    assert time.monotonic() - started < 10
    assert f"hf:{REPO} could not be fetched: {reason}" in told
    assert "passw0rd" not in told


def test_a_fresh_process_without_a_network_fails_within_seconds_and_shows_no_bars(tmp_path):
    program = (
        "from engine import digest; from engine.sources import resolve; from engine.step import Source\n"
        "resolve(Source(uri='hf:philschmid/MiniLM-L6-H384-uncased-sst2'), digest_file=digest.of_file,"
        " remembered=lambda _: None)"
    )
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert "hf:philschmid/MiniLM-L6-H384-uncased-sst2 could not be fetched" in done.stderr
    assert "Retrying" not in done.stderr


def test_the_log_has_one_line_a_file_and_no_progress_bar(hub, built, capfd):
    out = built()
    told = capfd.readouterr()
    assert [line.split(" (")[0] for line in told.out.splitlines()] == [f"fetching {name}" for name in digest.walk(out)]
    assert "fetching model.safetensors (26.3 KB)" in told.out
    assert "\r" not in told.out + told.err
    assert told.err == ""


def test_without_the_hubs_package_the_error_names_the_extra(hub, built, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'recipe[cpu]'" in failure(built)
