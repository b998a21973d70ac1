"""The policy about licences: `recipe check` refuses a model that is here, and a build refuses it before the export."""

import json

import pytest

from engine import api, cli
from engine.errors import Exit, RecipeError

CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 8}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a model of a few numbers; the fixture is a function that writes the model card and the policy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model").mkdir()
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(16)
    (tmp_path / "model" / "model.safetensors").write_bytes(weights)
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))

    def write(front, policy):
        (tmp_path / "model" / "README.md").write_text(f"---\n{front}\n---\n")
        text = f"name: tiny\nmodel: {{source: model, task: feature-extraction}}\npolicy: {{licenses: {policy}}}\n"
        (tmp_path / "tiny.yaml").write_text(text)

    return write


def exit_of(*words):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return ended.value.code


@pytest.mark.parametrize(("front", "word"), [("license: gpl-3.0", "GPL-3.0"), ("language: en", "not known")])
def test_check_refuses_what_is_not_listed_or_not_known_at_its_place(project, front, word):
    project(front, "[apache-2.0, mit]")
    with pytest.raises(RecipeError, match=word) as caught:
        api.check("tiny.yaml")
    assert caught.value.exit is Exit.USAGE
    assert "tiny.yaml:2:17" in str(caught.value)
    assert "allowed: Apache-2.0, MIT" in caught.value.facts


def test_check_allows_what_is_listed(project):
    project("license: mit", "[apache-2.0, mit]")
    assert api.check("tiny.yaml")


def test_a_build_refuses_after_fetch_and_runs_nothing_more(project, capsys):
    project("license: gpl-3.0", "[mit]")
    assert exit_of("build", "tiny.yaml", "--to", "export") == Exit.JUDGED
    lines = "".join(capsys.readouterr()).splitlines()
    assert any(line.startswith("failed   fetch") for line in lines)
    assert any(line.startswith("skipped  export") for line in lines)


def test_a_policy_is_judged_so_no_job_runs_again_for_it(project, capsys):
    project("license: mit", "[apache-2.0]")
    assert exit_of("build", "tiny.yaml", "--to", "fetch") == Exit.JUDGED
    project("license: mit", "[apache-2.0, mit]")
    capsys.readouterr()
    assert exit_of("build", "tiny.yaml", "--to", "fetch") == Exit.OK
    assert "running" not in "".join(capsys.readouterr())
