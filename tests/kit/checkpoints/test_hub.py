"""The hub's client against a fake hub: a real server on this machine, with real misbehaviour."""

import sys

import fake_hub
import pytest
from fake_hub import FIRST, REPO, SECOND, TOKEN

from engine import digest
from engine.builder.job import SourceName
from engine.builder.sources import SourceReadings, resolve
from engine.step import Source
from engine.steps.fetch import Fetch
from engine.store.store import Store


def test_only_the_files_that_matter_are_fetched_and_arrive_whole(hub, built):
    out = built()
    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert digest.walk(out) == names
    assert hub.downloads() == names
    assert (out / "model.safetensors").read_bytes() == hub.repositories[REPO][FIRST]["model.safetensors"]
    assert not any(path.is_symlink() or path.stat().st_nlink > 1 for path in out.iterdir())


def test_a_pinned_commit_is_resolved_without_asking_anybody(hub):
    place = resolve(Source(uri=f"hf:{REPO}", revision=SECOND), digest_file=digest.of_file, commits={})
    assert (place.row, place.location) == (f"hf:{REPO}@{SECOND}", f"hf:{REPO}@{SECOND}")
    assert hub.requests == []


def test_a_moving_revision_stays_where_it_was_until_a_refresh(hub, tmp_path):
    def ask(**options):
        """Ask in a build of its own."""
        readings = SourceReadings(Store(tmp_path / "cache"), **options)
        return readings.resolved(SourceName(f"hf:{REPO}", None, "all")).row

    assert ask() == f"hf:{REPO}@{FIRST}"
    hub.branches["main"] = SECOND
    assert ask() == f"hf:{REPO}@{FIRST}"
    assert ask(pinned={f"hf:{REPO}@main": SECOND}) == f"hf:{REPO}@{SECOND}"
    assert ask() == f"hf:{REPO}@{FIRST}"
    assert ask(refresh=True) == f"hf:{REPO}@{SECOND}"
    assert ask() == f"hf:{REPO}@{SECOND}"
    before = len(hub.requests)
    assert ask() == f"hf:{REPO}@{SECOND}"
    assert len(hub.requests) == before


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


REFUSALS = {
    "gated, without a token": (
        {"refuse": (401, "GatedRepo")}, {}, ["the model is gated", "status: 401 (GatedRepo)", "HF_TOKEN",
        f"/{REPO} with an account", "accept its licence at 127.0.0.1:", "`source: path/to/it`"],
    ),
    "gated, with a token": (
        {"refuse": (403, "GatedRepo"), "token": True}, {},
        ["status: 403 (GatedRepo)", "with the account of HF_TOKEN"],
    ),
    "no repository": (
        {}, {"uri": "hf:acme/typo"},
        ["there is no acme/typo, or it is private and HF_TOKEN is not set", "status: 401 (RepoNotFound)"],
    ),
    "no repository that the token may see": (
        {"token": True}, {"uri": "hf:acme/typo"},
        ["there is no acme/typo, or HF_TOKEN may not see it", "status: 404 (RepoNotFound)"],
    ),
    "no revision": ({}, {"revision": "v9"}, [f"{REPO} has no revision v9", "revision: v9"]),
    "too many questions": ({"trouble": [429]}, {}, ["the hub limits how often it may be asked"]),
    "a proxy's page in the place of the API": (
        {"api_page": True}, {},
        ["what answers at 127.0.0.1:", "is not the hub", "a proxy's page, or a wrong HF_ENDPOINT?"],
    ),
    "a proxy's page in the place of a file's description": (
        {"head_page": {"config.json"}}, {},
        [f"config.json of hf:{REPO} could not be fetched: what answers at", "is not the hub"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_the_hub_refuses_is_explained(hub, failure, monkeypatch, case):
    state, source, texts = REFUSALS[case]
    if state.get("token"):
        monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name, value in state.items():
        setattr(hub, name, value)
    error = failure(**source)
    for text in texts:
        assert text in error


def test_a_name_that_is_no_repository_is_refused_without_asking(hub, failure):
    assert "'acme/tiny/x' is no name of a repository" in failure("hf:acme/tiny/x")
    assert hub.requests == []


def test_a_timm_model_comes_from_its_repository_on_the_hub(hub, tmp_path):
    files = {
        "config.json": b'{"architecture": "resnet18", "pretrained_cfg": {"input_size": [3, 224, 224]}}',
        "model.safetensors": fake_hub.safetensors({"conv1.weight": [8, 3, 7, 7]}),
        "pytorch_model.bin": b"not wanted",
    }
    hub.repositories["timm/resnet18.a1_in1k"] = {FIRST: files}
    source = Source(uri="timm:resnet18.a1_in1k")
    place = resolve(source, digest_file=digest.of_file, commits={})
    assert place.row == f"hf:timm/resnet18.a1_in1k@{FIRST}"
    report = Fetch(source=source).run(tmp_path / "out", source=place.location)
    assert (report.kind, report.architecture, report.parameters) == ("timm", "resnet18", 8 * 3 * 7 * 7)
    assert report.axes == {"images": ("batch", 3, 224, 224)}
    assert digest.walk(tmp_path / "out") == ["config.json", "model.safetensors"]


def test_a_repository_with_only_a_pickle_is_refused_before_anything_is_fetched(hub, failure):
    del hub.repositories[REPO][FIRST]["model.safetensors"]
    error = failure()
    assert f"hf:{REPO} has its weights only as a pickle" in error
    assert "weights: pickle-tensors-only" in error
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
def test_a_server_that_always_cuts_and_never_resumes_is_given_up(hub, built, failure, small_chunks, naps):
    hub.cuts, hub.resumes = {"model.safetensors": 1000}, False
    error = failure()
    assert f"model.safetensors of hf:{REPO} could not be fetched: the connection was cut off again and again" in error
    assert hub.cuts == {"model.safetensors": 995}, "the first attempt and four that started from nothing"
    assert sum(naps) < 15, "who waits for a model wants to know"
    hub.cuts = {}
    built()


def test_a_proxys_page_in_the_place_of_a_files_content_is_found_and_not_kept(hub, built, failure):
    hub.body_page = {"model.safetensors"}
    error = failure()
    assert f"model.safetensors of hf:{REPO} is not what the hub states" in error
    assert "it is a web page" in error
    hub.body_page = set()
    built()


@pytest.mark.parametrize(("file", "kind"), [("model.safetensors", "SHA-256"), ("config.json", "git SHA-1")])
def test_content_that_differs_from_what_the_hub_states_is_refused_and_not_kept(hub, built, failure, file, kind):
    hub.damaged = {file}
    error = failure()
    assert f"{file} of hf:{REPO} is not what the hub states" in error
    assert f"{kind} " in error
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


def test_a_server_in_trouble_is_asked_twice_and_then_given_up(hub, built, failure):
    hub.trouble = [503]
    built()
    hub.trouble = [503, 503, 503]
    error = failure()
    assert "the hub is in trouble" in error
    assert "status: 503" in error
    assert hub.trouble == [503]


def test_a_server_that_does_not_answer_in_time_is_given_up(hub, failure, monkeypatch):
    monkeypatch.setattr("engine.kit.checkpoints.hub.PATIENCE", 0.3)
    hub.delay = 2
    assert f"127.0.0.1:{hub.port} does not answer in time" in failure()


def test_the_log_has_one_line_a_file_and_no_progress_bar(hub, built, capfd):
    out = built()
    log = capfd.readouterr()
    assert [line.split(" (")[0] for line in log.out.splitlines()] == [f"fetching {name}" for name in digest.walk(out)]
    assert "fetching model.safetensors (26.3 kB)" in log.out
    assert "\r" not in log.out + log.err
    assert log.err == ""


def test_without_the_hubs_package_the_error_names_the_extra(hub, failure, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'recipe-build[cpu]'" in failure()
