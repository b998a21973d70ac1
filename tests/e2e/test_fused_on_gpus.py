"""Packages for GPUs in one Python model on a real server, with many clients: on a CPU, and so without CUDA graphs.

The files are those of the package. Its settings name the CPU provider in place of the CUDA provider, and no graphs;
requests are still padded to the profiles, in fixed buffers.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import executions
import models
import numpy as np
import pytest
import torch
import transformers
import triton_server

from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.triton.serving import Serving
from engine.recipe.values import Range
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

CLIENTS = 64
CLASSES, TAGS = "text-classification", "token-classification"
WORDS = "the river ships are slow and a film was not very good in the city " * 3
LENGTHS = (*range(1, 15), 30, 40)
TEXTS = tuple(" ".join(WORDS.split()[number % 3 :][: LENGTHS[number % len(LENGTHS)]]) for number in range(CLIENTS))
"""Texts of 3 to 42 tokens; the two longest are longer than every profile of one size."""
PROFILES = tuple(
    {"batch": Range.model_validate(batch), "sequence": Range.model_validate(tokens)}
    for batch, tokens in ((1, 8), (1, 16), (4, 16), ([1, 2, 8], [1, 16, 64]))
)
AUTO = {CLASSES: transformers.AutoModelForSequenceClassification, TAGS: transformers.AutoModelForTokenClassification}
WAIT = {"dynamic_batching": {"max_queue_delay_microseconds": 2000}}
SERVED = {"bert": CLASSES, "mpnet": CLASSES, "electra": TAGS}


def packaged(folder, name, source, task, **options):
    """Package the exported model of a checkpoint for a GPU, in one Python model."""
    exported = folder / f"{name}-exported"
    if not exported.is_dir():
        Export(task=task).run(exported, checkpoint=source)
    serving = Serving(
        model_name=name, ensemble=f"{name}_text", task=task, layout="fused", profiles=PROFILES,
        largest={"batch": 8, "sequence": 64}, execution=executions.execution("cuda"),
        **options,
    )  # fmt: skip
    Package(serving=serving).run(folder / "packages" / name, validated=exported, checkpoint=source)
    return folder / "packages" / name / f"{name}_text"


def on_the_cpu(model):
    """Let a package for a GPU run on the CPU: its kind of instance, its provider, and no package that is not here."""
    config = model / "config.pbtxt"
    config.write_text(config.read_text().replace("KIND_GPU", "KIND_CPU"))
    settings = json.loads((model / "1" / "settings.json").read_text())
    assert len(settings["session"]["routing"]["fixed"]) == 3
    settings["session"] |= {"provider": "CPUExecutionProvider", "graphs": False}
    (model / "1" / "settings.json").write_text(json.dumps(settings))
    lines = (model / "requirements.txt").read_text().replace("onnxruntime-gpu[cuda,cudnn]", "onnxruntime")
    (model / "requirements.txt").write_text(lines)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, task in SERVED.items():
        models.checkpoint(folder / name, name, task=task, num_labels=3)
    return folder


@pytest.fixture(scope="module")
def server(sources, environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    for name, task in SERVED.items():
        on_the_cpu(packaged(folder, name, sources / name, task, fields=WAIT))
    with triton_server.serving(environment, *(folder / "packages").iterdir()) as running:
        yield running


def logits_of(server, name, rows):
    return triton_server.infer(server, f"{name}_text", TEXT=triton_server.texts(*rows))["logits"]


def alone(folder, task):
    """Return the logits of each text alone, by PyTorch."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = AUTO[task].from_pretrained(folder).eval()
    with torch.inference_mode():
        return {
            text: model(**tokenizer(text, return_tensors="pt", truncation=True)).logits[0].numpy()
            for text in set(TEXTS)
        }


@pytest.mark.parametrize("name", SERVED)
def test_64_clients_get_the_answers_of_pytorch_to_their_texts_alone(server, sources, name):
    expected = alone(sources / name, SERVED[name])
    with ThreadPoolExecutor(CLIENTS) as pool:
        for text, logits in zip(TEXTS, pool.map(lambda text: logits_of(server, name, [text]), TEXTS), strict=True):
            assert logits.shape == (1, *expected[text].shape), "no position of the padding is left"
            np.testing.assert_allclose(logits[0], expected[text], atol=1e-4)
        groups = [TEXTS[start : start + 3] for start in range(0, CLIENTS, 3)]
        for rows, logits in zip(groups, pool.map(lambda rows: logits_of(server, name, rows), groups), strict=True):
            for row, text in zip(logits, rows, strict=True):
                own = expected[text]
                np.testing.assert_allclose(row[: len(own)], own, atol=1e-4)


@pytest.mark.parametrize("joins", [RowBatching.EQUAL_LENGTHS, RowBatching.ALONE])
def test_a_model_whose_answers_depend_on_padding_or_neighbours_has_no_such_package(sources, tmp_path, joins):
    Export(task=CLASSES).run(tmp_path / "bert-exported", checkpoint=sources / "bert")
    batching.write(tmp_path / "bert-exported", joins)  # as validate does
    with pytest.raises(StepError, match="layout: fused is not possible"):
        packaged(tmp_path, "bert", sources / "bert", CLASSES)
