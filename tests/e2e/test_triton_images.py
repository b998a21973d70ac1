"""Every task of images, on a real Triton server: its entry answers what transformers answers to the same file.

The oracle is the checkpoint in PyTorch with its own Pillow processor, one file at a time, and transformers' own
post-processing.
"""

import concurrent.futures
import contextlib
import io
import json
import subprocess
import time
from types import SimpleNamespace

import image_files
import image_models
import numpy as np
import pytest
import torch
import transformers
import triton_server
from PIL import Image, ImageOps
from program import Program
from tritonclient import http

from engine.client import curl
from engine.client.client import Client
from engine.kit.triton.serving import Serving
from engine.recipe.image_input import Images
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("each answer has unit tests against transformers")]

MODELS = {
    "classes": "vit/image-classification",
    "vectors": "clip/image-feature-extraction",
    "texts": "clip/zero-shot-image-classification",
    "padded_texts": "siglip/zero-shot-image-classification",
    "objects": "detr/object-detection",
    "best_objects": "rt_detr/object-detection",
    "masks": "segformer/image-segmentation",
}
CANDIDATES = [list(image_models.TEXTS), ["a cat", "the very slow train of a long and cold film by the river " * 4]]
THRESHOLD = 0.2
"""The random detectors give no object more than some 0.4."""
BATCH = 4


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return image_files.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return {key: image_models.write(name, folder / key) for key, name in MODELS.items()}


@pytest.fixture(scope="module")
def server(checkpoints, environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    images = Images(library="transformers")
    for key, name in MODELS.items():
        task = image_models.task_of(name)
        Export(task=task, images=images).run(folder / f"{key}-exported", checkpoint=checkpoints[key])
        answers = {"threshold": THRESHOLD} if "detection" in task else {}
        serving = Serving(
            model_name=key, ensemble=f"{key}_entry", task=task, images=images, answers=answers,
            largest={"batch": BATCH, "sequence": 32, "height": 128, "width": 128},
        )  # fmt: skip
        Package(serving=serving).run(
            folder / "packages" / key, validated=folder / f"{key}-exported", checkpoint=checkpoints[key]
        )
    with triton_server.serving(environment, *(folder / "packages").iterdir()) as running:
        yield running


# What transformers says


class Expected:
    """What clients must get for a file, by the checkpoint's own code; computed once for each question."""

    def __init__(self, checkpoints, files):
        self.checkpoints, self.files, self.known = checkpoints, files, {}

    def __call__(self, key, file, texts=()):
        question = (key, file, tuple(texts))
        if question not in self.known:
            self.known[question] = self.answer(*question)
        return self.known[question]

    def answer(self, key, file, texts):
        path, name = self.checkpoints[key], MODELS[key]
        outputs = image_models.reference(path, name, [self.files[file]], list(texts))
        config = transformers.AutoConfig.from_pretrained(path)
        tensors = SimpleNamespace(**{each: torch.tensor(array) for each, array in outputs.items()})
        processor = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
        size = torch.tensor([ImageOps.exif_transpose(Image.open(self.files[file])).size[::-1]])
        if key == "classes":
            return ranked("logits", tensors.logits[0], tensors.logits[0].softmax(0), config.id2label)
        if key == "vectors":
            vector = tensors.pooler_output if hasattr(tensors, "pooler_output") else tensors.image_embeds
            return {"image_embeds": vector[0].numpy()}
        if key in {"texts", "padded_texts"}:
            logits = tensors.logits_per_image[0]
            scores = logits.softmax(0) if key == "texts" else logits.sigmoid()
            return ranked("logits_per_image", logits, scores, dict(enumerate(texts)))
        if key == "masks":
            [mask] = processor.post_process_semantic_segmentation(tensors, target_sizes=size.tolist())
            return {"mask": mask.numpy(), "labels": [config.id2label[number] for number in mask.unique().tolist()]}
        [row] = processor.post_process_object_detection(tensors, THRESHOLD, size)
        order = np.argsort(-row["scores"].numpy(), kind="stable")
        return {
            "labels": [config.id2label[number] for number in row["labels"].numpy()[order].tolist()],
            "scores": row["scores"].numpy()[order],
            "boxes": row["boxes"].numpy()[order],
        }


def ranked(name, logits, scores, labels):
    best = logits.argsort(descending=True, stable=True)
    return {name: logits.numpy(), "labels": [labels[int(number)] for number in best], "scores": scores[best].numpy()}


@pytest.fixture(scope="module")
def expected(checkpoints, files):
    return Expected(checkpoints, files)


def compare(answer, row, right):
    """Hold a row of an answer against transformers' own, and what is behind it against padding."""
    assert set(answer) == set(right)
    for name, ours in right.items():
        theirs = answer[name][row]
        if name == "mask":
            image = np.asarray(Image.open(io.BytesIO(theirs[0])))
            assert image.shape == ours.shape
            assert (image != ours).mean() < 1e-3  # logits that differ by a last bit
            continue
        count = len(ours)
        if name == "labels":
            assert [each.decode() for each in theirs[:count]] == ours
            assert not any(theirs[count:])
        else:
            assert np.allclose(theirs[:count], ours, rtol=1e-3, atol=2e-4 if name != "boxes" else 0.02), name
            assert (theirs[count:] == (-1 if name == "boxes" else 0)).all(), name


# Two clients


def over_grpc(server, model, **arrays):
    return triton_server.infer(server, model, **arrays)


def over_http(server, model, **arrays):
    with contextlib.closing(http.InferenceServerClient(server.http, network_timeout=60)) as client:
        inputs = []
        for name, array in arrays.items():
            inputs.append(http.InferInput(name, list(array.shape), "BYTES"))
            inputs[-1].set_data_from_numpy(array)
        answer = client.infer(model, inputs)
        return {each["name"]: answer.as_numpy(each["name"]) for each in answer.get_response()["outputs"]}


@pytest.fixture(params=[over_http, over_grpc], ids=["http", "grpc"])
def ask(request, server):
    return lambda model, **arrays: request.param(server, model, **arrays)


def of(rows):
    return np.array([[each.encode() if isinstance(each, str) else each for each in row] for row in rows], dtype=object)


def questions(key, names):
    """The questions about files: with several lists of texts for a model that takes texts."""
    lists = CANDIDATES if key in {"texts", "padded_texts"} else [()]
    return [(key, name, lists[number % len(lists)]) for number, name in enumerate(names)]


def arrays(files, question):
    _, name, texts = question
    return {"IMAGE": of([[files[name].read_bytes()]])} | ({"TEXT": of([texts])} if texts else {})


@pytest.mark.parametrize("key", MODELS)
def test_a_file_gets_the_answer_that_transformers_gives(key, ask, files, expected):
    for question in questions(key, image_files.GOOD):
        compare(ask(f"{key}_entry", **arrays(files, question)), 0, expected(*question))


@pytest.mark.parametrize("key", MODELS)
def test_files_of_one_request_are_answered_as_each_alone(key, ask, files, expected):
    names = ("rgb", "wide", "turned", "grey_alpha")
    texts = {"TEXT": of([CANDIDATES[0]] * len(names))} if key in {"texts", "padded_texts"} else {}
    answer = ask(f"{key}_entry", IMAGE=of([[files[name].read_bytes()] for name in names]), **texts)
    for row, name in enumerate(names):
        compare(answer, row, expected(key, name, CANDIDATES[0] if texts else ()))


def test_random_detectors_find_objects(expected):
    counts = [len(expected(key, name)["labels"]) for key in ("objects", "best_objects") for name in image_files.GOOD]
    assert max(counts) > 1


def test_sixty_four_clients_with_mixed_files_get_each_their_own_answers_and_refusals(server, files, expected):
    every = [question for key in MODELS for question in questions(key, image_files.GOOD)]
    for question in every:
        expected(*question)

    def client(place):
        over = over_grpc if place % 2 else over_http
        for step in range(6):
            question = every[(place * 31 + step * 17) % len(every)]
            compare(over(server, f"{question[0]}_entry", **arrays(files, question)), 0, expected(*question))
            bad = image_files.BAD[(place + step) % len(image_files.BAD)]
            with pytest.raises(Exception, match="IMAGE: "):
                over(server, f"{question[0]}_entry", **arrays(files, (question[0], bad, question[2])))
        return place

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(client, range(64))) == list(range(64))


@pytest.mark.parametrize("key", ["classes", "texts", "objects", "masks"])
def test_a_file_that_is_no_image_is_refused_within_a_second(key, ask, files):
    for name in image_files.BAD:
        [question] = questions(key, [name])
        start = time.monotonic()
        with pytest.raises(Exception, match="IMAGE: ") as refused:
            ask(f"{key}_entry", **arrays(files, question))
        assert time.monotonic() - start < 1, name
        assert "Traceback" not in str(refused.value)


# Our client and curl


def test_the_curl_line_sends_a_file_with_texts(server, files, expected):
    texts = ["a photo of a cat", """it's 100% "so" \\n ü"""]
    with Client(f"http://{server.http}") as client:
        for key, own in (("classes", ()), ("texts", texts)):
            line = curl.curl_line(server.http, client.choose(f"{key}_entry"), texts=own, image=str(files["jpeg"]))
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=60)
            outputs = {each["name"]: each["data"] for each in json.loads(done.stdout)["outputs"]}
            right = expected(key, "jpeg", own)
            assert outputs["labels"] == right["labels"]
            assert np.allclose(outputs["scores"], right["scores"], atol=2e-4)


@pytest.fixture
def recipe(tmp_path):
    return Program(tmp_path)


def test_recipe_query_sends_files_with_texts_and_saves_masks(server, recipe, files, expected, tmp_path):
    url = f"grpc://{server.grpc}"
    photos = ("turned", "rgb")
    sent = [word for name in photos for word in ("--image", str(files[name]))]
    words = [word for text in CANDIDATES[0] for word in ("--text", text)]
    said = json.loads(recipe("query", url, "--model", "texts_entry", *sent, *words, "--json", expect=0).stdout)
    for name, row in zip(photos, said["rows"], strict=True):
        assert row["labels"] == expected("texts", name, CANDIDATES[0])["labels"]
    lines = [json.dumps({"image": str(files[name]), "texts": CANDIDATES[0]}) for name in photos]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    again = recipe("query", url, "--model", "texts_entry", "--file", "samples.jsonl", "--json", expect=0)
    assert json.loads(again.stdout)["rows"] == said["rows"]
    shown = recipe("query", url, "--model", "masks_entry", *sent, "--save", "masks", expect=0).stdout
    for number, name in enumerate(photos, 1):
        right = expected("masks", name)
        height, width = right["mask"].shape
        assert f"mask of {width} x {height} pixels: {', '.join(right['labels'])}" in shown
        assert (np.asarray(Image.open(tmp_path / "masks" / f"{number}.png")) == right["mask"]).mean() > 0.999
    shown = recipe("query", url, "--model", "objects_entry", "--image", str(files["rgb"]), expect=0).stdout
    objects = expected("objects", "rgb")
    listed = [line.split() for line in shown.splitlines()]
    assert [label for label, *_ in listed] == list(objects["labels"])
    assert [float(score) for _, score, *_ in listed] == pytest.approx(list(objects["scores"]), abs=1e-3)
    refused = recipe("query", url, "--model", "masks_entry", "--image", str(files["mislabelled"]), expect=1)
    assert "IMAGE: " in refused.stderr
    assert "gives no masks" in recipe("query", url, "--model", "texts_entry", *sent, *words, "--save", "x").stderr


def test_a_load_of_images_with_texts_is_measured(server, recipe, files):
    words = ["--image", str(files["jpeg"]), "--text", "a cat", "--text", "a dog", "--duration", "1", "--warm-up", "0.2"]
    url = f"grpc://{server.grpc}"
    done = recipe("loadtest", url, "--model", "texts_entry", *words, "--concurrency", "4", "--with", "own", "--json")
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["requests"] > 4
    assert figures["errors"]["count"] == 0
