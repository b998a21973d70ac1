"""A fused package in this process: the answers of its server, by its own files."""

import shutil
import threading

import executions
import fake_cuda_provider
import models
import numpy as np
import pytest
from padded_texts import inputs

from engine import api
from engine.errors import UsageError
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving
from engine.recipe.values import Range

PROFILES = tuple(
    {"batch": Range.model_validate(batch), "sequence": Range.model_validate(tokens)}
    for batch, tokens in ((1, 8), (4, 16))
)
TEXTS = ["a good film", "the river ships are slow and a film was not very good", "bad"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return models.classifier_with_tokenizer(tmp_path_factory.mktemp("source"))


def written(source, out, *, layout="fused", provider=None):
    serving = Serving(
        model_name="m", ensemble="m_text", layout=layout, task="text-classification", largest={"batch": 8},
        execution=executions.execution(provider), profiles=PROFILES if provider else (),
    )  # fmt: skip
    repository.write(out, serving, validated=source, checkpoint=source)
    return out


def expected(source, text):
    given = {name: array for name, array in inputs(source, [text]).items() if name != "token_type_ids"}
    return fake_cuda_provider.REAL(source / "model.onnx").run(None, given)[0]


def test_texts_get_the_answers_of_the_server(source, tmp_path):
    package = api.load(written(source, tmp_path / "p"))
    answers = package(TEXTS)
    assert set(answers) == set(package.outputs) == {"labels", "logits", "scores"}
    for place, text in enumerate(TEXTS):
        logits = expected(source, text)[0]
        np.testing.assert_allclose(answers["logits"][place], logits, atol=1e-5)
        assert answers["labels"][place][0] == str(logits.argmax())


def test_a_package_for_a_gpu_has_the_same_answers_by_its_graphs(source, tmp_path, monkeypatch):
    fake = fake_cuda_provider.install(monkeypatch)
    package = api.load(written(source, tmp_path / "p", provider="cuda"), device=1)
    [session] = fake.opened
    assert session.settings["device_id"] == "1"
    assert list(session.graphs) == [1, 2]
    session.runs.clear()
    for text in TEXTS:
        np.testing.assert_allclose(package([text])["logits"], expected(source, text), atol=1e-5)
    assert [graph for graph, _ in session.runs] == [1, 2, 1]


def test_calls_of_several_threads_run_one_after_the_other(source, tmp_path, monkeypatch):
    fake_cuda_provider.install(monkeypatch)  # it refuses two threads at once
    package = api.load(written(source, tmp_path / "p", provider="cuda"))
    alone = {text: package([text])["scores"] for text in TEXTS}
    wrong = []

    def ask(text):
        wrong.extend(1 for _ in range(20) if not np.array_equal(package([text])["scores"], alone[text]))

    threads = [threading.Thread(target=ask, args=(text,)) for text in TEXTS]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_the_newest_version_is_opened(source, tmp_path):
    folder = written(source, tmp_path / "p") / "m_text"
    shutil.copytree(folder / "1", folder / "10")
    (folder / "1" / "settings.json").unlink()
    assert api.load(tmp_path / "p")(["bad"])["labels"].shape[0] == 1


def test_an_ensemble_is_refused_with_what_to_do(source, tmp_path):
    with pytest.raises(UsageError, match="is no package of one Python model") as caught:
        api.load(written(source, tmp_path / "p", layout="ensemble"))
    assert "m_tokenizer" in caught.value.facts[0]
    assert "layout: fused" in caught.value.hint


@pytest.mark.parametrize("texts", [[], ["a", ("a", "b")], ["a" * 100_000], [("a", "b", "c")]])
def test_rows_that_the_package_does_not_take_are_refused(source, tmp_path, texts):
    with pytest.raises(ValueError, match=r"row|bytes|texts"):
        api.load(written(source, tmp_path / "p"))(texts)
