"""Every task of one pass, on a real Triton server: its entry answers what the original model answers to the same text.

The oracle is the checkpoint in PyTorch through its own tokenizer and head, one row at a time, without padding; what
follows the head (softmax, spans, pooling) is written here once more, in torch.
"""

import concurrent.futures
import io
import json
import struct
import urllib.error
import urllib.request

import generators
import models
import numpy as np
import pytest
import span_rules
import timm_here
import torch
import transformers
import triton_server
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from engine.kit.triton.serving import Serving
from engine.recipe.image_input import Images
from engine.steps.export import Export
from engine.steps.package import Package

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

LARGEST = {"batch": 8, "sequence": 48}
SHORT = "the film was not very good"
EMOJI = "good 👍🏽 film 🎬!"
TEXTS = (SHORT, "", "a boring plot and " * 40, "Das Wetter ist heute schön. 日本語のテキスト", EMOJI)
PAIRS = tuple((text, other) for text, other in zip(TEXTS, (*TEXTS[3:], *TEXTS[:3]), strict=True))
QUESTIONS = (
    ("where is the river?", "the river ships in the city. 👍🏽 it is warm on the train"),
    ("who?", ""),
    ("when was it?", "slow train and fast ships. " * 40),
    ("日本語?", "日本語のテキスト und ein schöner film"),
)
NAMES = {0: "bad", 1: "so so", 2: "gut ☺"}
# name: architecture, task, rows, options of the config
KINDS = {
    "one_label": ("bert", "text-classification", TEXTS, {"id2label": NAMES}),
    "pairs": ("deberta-v2", "text-classification", PAIRS, {"num_labels": 2}),
    "many_labels": ("roberta", "text-classification", TEXTS,
                    {"id2label": NAMES, "problem_type": "multi_label_classification"}),
    "number": ("electra", "text-classification", TEXTS, {"num_labels": 1}),
    "decoder": ("opt", "text-classification", TEXTS, {"num_labels": 2}),
    "tags": ("distilbert", "token-classification", TEXTS, {"id2label": NAMES}),
    "entities": ("distilbert", "token-classification", (SHORT, "the river ships in the city on a train", "film"),
                 {"id2label": {0: "O", 1: "B-PER", 2: "I-PER", 3: "LOC"}}),
    "questions": ("xlm-roberta", "question-answering", QUESTIONS, {}),
    "sentences": ("mpnet", "feature-extraction", TEXTS, {}),
    "states": ("albert", "feature-extraction", TEXTS, {}),
    "masks": ("bert", "fill-mask",
              ("a [MASK] film", "[MASK] [MASK]! 👍🏽 [MASK] 日本語", "[MASK] " + "film " * 60), {}),
}  # fmt: skip

ANSWERS = {"entities": {"aggregation_strategy": "first"}}
"""The options of answers, by kind."""
WINDOWS = {"doc_stride": 8, "align_to_words": True, "handle_impossible_answer": True}
"""The options of answers of a further package for questions."""
FUSED = ("one_label", "tags", "questions", "sentences", "masks")
"""The kinds that are served in the layout `fused`, too: every answer that a Python model makes."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """A tiny random model for each kind, and what sentence-transformers would add to one."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, (architecture, task, _, options) in KINDS.items():
        make = decoder if architecture == "opt" else models.checkpoint
        make(folder / name, architecture, task=task, **options)
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [{"path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
               for n, kind in enumerate(kinds)]  # fmt: skip
    (folder / "sentences" / "modules.json").write_text(json.dumps(modules))
    (folder / "sentences" / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
    (folder / "sentences" / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def decoder(directory, family, *, task, **options):
    """A model with causal attention, whose head reads the last token that is no padding."""
    words = generators.save_tokenizer(directory, family)
    ids = {"pad_token_id": words["<pad>"], "bos_token_id": words["</s>"], "eos_token_id": words["</s>"]}
    sizes = {"hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 64, "num_hidden_layers": 2}
    config = transformers.AutoConfig.for_model(
        family, vocab_size=len(words), num_attention_heads=4, max_position_embeddings=64, **ids, **sizes, **options
    )
    torch.manual_seed(0)
    HEADS[task].from_config(config).save_pretrained(directory)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory, timm):
    """Two image classifiers as timm's repositories hold them: how each wants its images, and what it says of them."""
    folder = tmp_path_factory.mktemp("photographs")
    configs = {
        "middle": {"crop_pct": 0.9, "interpolation": "bicubic", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
        "whole": {"crop_pct": 1.0, "crop_mode": "squash", "interpolation": "bilinear"},
    }
    for name, config in configs.items():
        timm_here.checkpoint(folder / name, "test_efficientnet", size=64, num_classes=4, pretrained_cfg_overlay=config)
    config = json.loads((folder / "whole" / "config.json").read_text())
    config["label_names"] = ["cat", "dog", "boat", "tree"]
    (folder / "whole" / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def server(checkpoints, photographs, environment, tmp_path_factory):
    """All packages in one repository: exported and packaged by the steps themselves."""
    folder = tmp_path_factory.mktemp("packages")
    for name, (_, task, _, _) in KINDS.items():
        own = {"task": task, "answers": ANSWERS.get(name, {})}
        serving = Serving(model_name=name, ensemble=f"{name}_text", largest=LARGEST, **own)
        build(folder, name, checkpoints / name, serving, Export(task=task))
        if name == "questions":
            own = {"model_name": "windows", "ensemble": "windows_text", "layout": "fused", "answers": WINDOWS}
            windows = serving.model_copy(update=own)
            packaged(folder, "windows", folder / "questions-exported", checkpoints / name, windows)
        if name in FUSED:
            own = {"model_name": f"fused_{name}", "ensemble": f"fused_{name}_text", "layout": "fused", "threads": 1}
            fused = serving.model_copy(update=own)
            packaged(folder, f"fused_{name}", folder / f"{name}-exported", checkpoints / name, fused)
    for name, layout in (("middle", "NHWC"), ("whole", "NCHW")):
        images = Images(layout=layout, size=(64, 64), library="timm")
        serving = Serving(model_name=name, ensemble=f"{name}_image", largest=LARGEST, images=images)
        build(folder, name, photographs / name, serving, Export(images=images))
    for name, task in (("plain", None), ("plain_classes", "text-classification")):
        source = folder / f"{name}-source"
        models.onnx_text(source / "model.onnx")
        models.save_tokenizer(source)
        serving = Serving(model_name=name, ensemble=f"{name}_text", largest=LARGEST, task=task)
        Package(serving=serving).run(folder / "packages" / name, validated=source, checkpoint=source)
    with triton_server.serving(environment, *(folder / "packages").iterdir()) as running:
        yield running


def build(folder, name, checkpoint, serving, export):
    export.run(folder / f"{name}-exported", checkpoint=checkpoint)
    packaged(folder, name, folder / f"{name}-exported", checkpoint, serving)


def packaged(folder, name, validated, checkpoint, serving):
    Package(serving=serving).run(folder / "packages" / name, validated=validated, checkpoint=checkpoint)


# Two clients


def bytes_of(rows):
    """TEXT or IMAGE for rows of one or two values each."""
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    return np.array([[each.encode() if isinstance(each, str) else each for each in row] for row in rows], dtype=object)


class OverGrpc:
    def __init__(self, server):
        self.server = server

    def __call__(self, model, name, array):
        return triton_server.infer(self.server, model, **{name: array})


class OverHttp:
    """The input as binary data, as files need it; outputs as JSON."""

    def __init__(self, server):
        self.server = server

    def __call__(self, model, name, array):
        binary = b"".join(struct.pack("<I", len(each)) + each for each in array.reshape(-1))
        header = {"name": name, "shape": list(array.shape), "datatype": "BYTES",
                "parameters": {"binary_data_size": len(binary)}}  # fmt: skip
        head = json.dumps({"inputs": [header]}).encode()
        request = urllib.request.Request(
            f"http://{self.server.http}/v2/models/{model}/infer", head + binary,
            {"Inference-Header-Content-Length": str(len(head))},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                outputs = json.load(answer)["outputs"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code}: {json.load(error)['error']}") from None
        return {each["name"]: self.array(each) for each in outputs}

    @staticmethod
    def array(tensor):
        text = tensor["datatype"] == "BYTES"
        values = [each.encode() for each in tensor["data"]] if text else tensor["data"]
        return np.array(values, dtype=object if text else None).reshape(tensor["shape"])


@pytest.fixture(params=[OverHttp, OverGrpc], ids=["http", "grpc"])
def ask(request, server):
    return request.param(server)


# The originals


HEADS = {
    "text-classification": transformers.AutoModelForSequenceClassification,
    "token-classification": transformers.AutoModelForTokenClassification,
    "question-answering": transformers.AutoModelForQuestionAnswering,
    "feature-extraction": transformers.AutoModel,
    "fill-mask": transformers.AutoModelForMaskedLM,
}


class Original:
    """A checkpoint in PyTorch."""

    def __init__(self, checkpoint, task, aggregation_strategy=None):
        self.task = task
        self.pipeline = aggregation_strategy and transformers.pipeline(
            task, str(checkpoint), aggregation_strategy=aggregation_strategy
        )
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
        self.model = HEADS[task].from_pretrained(checkpoint).eval()
        self.labels = self.model.config.id2label

    @torch.inference_mode()
    def __call__(self, row):
        """Return the outputs that clients get for one row, each without its first axis."""
        texts = row if isinstance(row, tuple) else (row,)
        cut = "only_second" if self.task == "question-answering" else "longest_first"
        options = {"truncation": cut, "max_length": LARGEST["sequence"], "return_tensors": "pt"}
        # As a batch of one: called with single texts, transformers takes an empty second text for none at all.
        tokens = self.tokenizer(
            *([text] for text in texts), return_offsets_mapping=True, return_special_tokens_mask=True, **options
        )
        offsets, special = tokens.pop("offset_mapping")[0], tokens.pop("special_tokens_mask")[0].bool()
        sequences = tokens.sequence_ids(0)
        types = getattr(self.model.config, "type_vocab_size", 0) > 1
        taken = {name: tokens[name] for name in tokens if types or name != "token_type_ids"}
        output = self.model(**taken)
        ids = tokens["input_ids"][0]
        if self.task == "text-classification":
            return self.classes(output.logits[0])
        if self.task == "token-classification":
            tags = self.tags(output.logits[0], ids, torch.where(special[:, None], -1, offsets))
            return tags if self.pipeline is None else {**tags, **self.entities(texts[0])}
        if self.task == "question-answering":
            return self.span(output, texts[1], offsets, torch.tensor([each == 1 for each in sequences]))
        if self.task == "fill-mask":
            return self.fillings(output.logits[0], ids)
        return {"last_hidden_state": output.last_hidden_state[0]}

    def classes(self, logits):
        kind = self.model.config.problem_type
        alone = kind == "multi_label_classification" or len(logits) == 1
        scores = logits.sigmoid() if alone else logits.softmax(0)
        best = sorted(range(len(logits)), key=lambda number: -float(scores[number]))
        return {"logits": logits, "labels": [self.labels[n] for n in best], "scores": scores[best]}

    def tags(self, logits, ids, offsets):
        shares, best = logits.softmax(1).max(1)
        labels = [self.labels[int(number)] for number in best]
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        return {"logits": logits, "labels": labels, "scores": shares, "tokens": tokens, "offsets": offsets}

    def entities(self, text):
        """What transformers' own pipeline says of a text."""
        groups = self.pipeline(text)
        return {
            "entities": [each["entity_group"] for each in groups],
            "entity_scores": [each["score"] for each in groups],
            "entity_texts": [text[each["start"] : each["end"]] for each in groups],
            "entity_offsets": [(each["start"], each["end"]) for each in groups],
        }

    def span(self, output, context, offsets, inside):
        begin, end = (output[name][0].masked_fill(~inside, -1e4).double().softmax(0)
                      for name in ("start_logits", "end_logits"))  # fmt: skip
        logits = {"start_logits": output.start_logits[0], "end_logits": output.end_logits[0]}
        if not inside.any():
            return {**logits, "answer": [""], "score": [0], "start": [-1], "end": [-1]}
        shares = torch.outer(begin, end).triu().tril(14)
        first, last = divmod(int(shares.argmax()), len(end))
        a, b = int(offsets[first, 0]), int(offsets[last, 1])
        return {**logits, "answer": [context[a:b]], "score": [shares[first, last]], "start": [a], "end": [b]}

    def fillings(self, logits, ids):
        shares, best = logits[ids == models.vocabulary()["[MASK]"]].softmax(1).topk(5)
        words = [[self.tokenizer.decode([number]) for number in row] for row in best.tolist()]
        return {"tokens": words, "token_ids": best, "scores": shares}


def pooled(states):
    """As sentence-transformers makes a vector of states: three modes side by side, length 1."""
    whole = torch.cat([states[0], states.max(0).values, states.mean(0)])
    return {"sentence_embedding": torch.nn.functional.normalize(whole, dim=0)}


@pytest.fixture(scope="module")
def expected(checkpoints):
    """For each kind, what clients must get for each of its rows."""
    answers = {}
    for name, (_, task, rows, _) in KINDS.items():
        original = Original(checkpoints / name, task, **ANSWERS.get(name, {}))
        answers[name] = [original(row) for row in rows]
        if name == "sentences":
            answers[name] = [pooled(row["last_hidden_state"]) for row in answers[name]]
    return answers


PADDING = {
    "entities": b"",
    "entity_scores": 0,
    "entity_texts": b"",
    "entity_offsets": -1,
    "labels": b"",
    "tokens": b"",
    "scores": 0,
    "offsets": -1,
    "token_ids": -1,
}


def compare(answer, row, expected_row):
    """Hold a row of an answer against the oracle's, and what is behind it against padding."""
    assert list(answer) == list(expected_row) or set(answer) == set(expected_row)
    for name, value in expected_row.items():
        theirs = answer[name][row]
        count = len(value)
        if theirs.dtype == object:
            ours = np.array([[word.encode() for word in each] if isinstance(each, list) else each.encode()
                             for each in value], dtype=object)  # fmt: skip
            assert theirs[:count].tolist() == ours.tolist(), name
        else:
            ours = np.array([np.asarray(each) for each in value])
            assert theirs[:count].shape == ours.shape, name
            assert np.abs(theirs[:count] - ours).max(initial=0) < 2e-4, name
        if name in PADDING:
            assert (theirs[count:] == PADDING[name]).all(), name


@pytest.mark.parametrize("name", KINDS)
def test_the_entry_answers_what_the_original_answers(name, ask, expected):
    rows = KINDS[name][2]
    for number, row in enumerate(rows):
        compare(ask(f"{name}_text", "TEXT", bytes_of([row])), 0, expected[name][number])
    together = ask(f"{name}_text", "TEXT", bytes_of(rows))
    for number, expected_row in enumerate(expected[name]):
        compare(together, number, expected_row)


@pytest.mark.parametrize("name", FUSED)
def test_one_python_model_answers_as_the_ensemble_does(name, ask, expected):
    rows = KINDS[name][2]
    for number, row in enumerate(rows):
        compare(ask(f"fused_{name}_text", "TEXT", bytes_of([row])), 0, expected[name][number])
    together, ensemble = (ask(f"{entry}_text", "TEXT", bytes_of(rows)) for entry in (f"fused_{name}", name))
    assert set(together) == set(ensemble)
    for output, array in together.items():
        assert np.array_equal(array, ensemble[output]), output  # the same tokens, and the same bits


def test_a_long_context_is_searched_in_windows(ask, checkpoints):
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoints / "questions")
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(checkpoints / "questions").eval()
    rules = {"stride": WINDOWS["doc_stride"], "longest": LARGEST["sequence"]}
    answers = ask("windows_text", "TEXT", bytes_of(QUESTIONS))
    assert set(answers) == {"answer", "score", "start", "end"}
    counts = []
    for number, row in enumerate(QUESTIONS):
        encoded = span_rules.windows(tokenizer, row, **rules)
        counts.append(len(encoded["input_ids"]))
        with torch.inference_mode():
            names = ("input_ids", "attention_mask")
            output = model(**{name: torch.tensor(encoded[name]) for name in names})
        logits = np.stack([output.start_logits.numpy(), output.end_logits.numpy()])
        answer, score, *place = span_rules.expected(
            tokenizer, row, logits, **rules, words=True, impossible=True, length=15
        )
        assert answers["answer"][number, 0] == answer
        assert [answers["start"][number, 0], answers["end"][number, 0]] == place
        assert answers["score"][number, 0] == pytest.approx(score, abs=1e-4)
    assert max(counts) > 4


def test_sixty_four_clients_at_once_get_each_their_own_answers(server, expected):
    entries = [(name, name) for name in KINDS] + [(f"fused_{name}", name) for name in FUSED]
    requests = [(entry, name, number) for entry, name in entries for number in range(len(KINDS[name][2]))]

    def client(place):
        over = OverGrpc(server) if place % 2 else OverHttp(server)
        for step in range(4):
            entry, name, number = requests[(place * 7 + step * 11) % len(requests)]
            compare(over(f"{entry}_text", "TEXT", bytes_of([KINDS[name][2][number]])), 0, expected[name][number])
        return place

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(client, range(64))) == list(range(64))


@pytest.mark.parametrize("name", ["one_label", "tags", "questions", "sentences", "states", "masks", "fused_tags"])
def test_any_of_the_outputs_can_be_asked_for_without_the_others(name, server):
    kind = name.removeprefix("fused_")
    with grpc.InferenceServerClient(server.grpc) as client:
        every = [output.name for output in client.get_model_metadata(f"{name}_text").outputs]
        row = KINDS[kind][2][0]
        array = bytes_of([row if isinstance(row, tuple) else (row,)])
        value = triton_server.inputs(TEXT=array)
        for output in every:
            response = client.infer(
                f"{name}_text", value, outputs=[grpc.InferRequestedOutput(output)], client_timeout=30
            )
            assert [each.name for each in response.get_response().outputs] == [output]


def test_what_is_wrong_with_a_request_is_said_and_hurts_no_other(ask, files):
    wrong = {
        ("masks_text", "TEXT", "no mask in here"): "a text without a mask",
        ("questions_text", "TEXT", ("why " * 60, "a context")): "leaves no room for the second",
        ("tags_text", "TEXT", b"\xff\xfe"): "utf-8",
        ("middle_image", "IMAGE", b"no image at all"): "15 bytes that are no image",
        ("middle_image", "IMAGE", files["png"][:200]): "IMAGE: ",
        ("fused_tags_text", "TEXT", b"\xff\xfe"): "utf-8",
        ("fused_masks_text", "TEXT", "no mask in here"): "a text without a mask",
        ("fused_tags_text", "TEXT", "word " * 200_000): "1000000 bytes; this model takes at most 16384 bytes",
        ("tags_text", "TEXT", "word " * 200_000): "1000000 bytes; this model takes at most 16384 bytes",
        ("questions_text", "TEXT", ("why", "x" * 16_385)): "16385 bytes; this model takes at most 16384 bytes",
    }
    for (model, name, row), message in wrong.items():
        with pytest.raises(Exception, match=message) as refused:
            ask(model, name, bytes_of([row]))
        assert str(refused.value).startswith(("400: ", "[StatusCode.INVALID_ARGUMENT] ")), refused.value
    assert ask("tags_text", "TEXT", bytes_of([SHORT]))


@pytest.mark.parametrize("megabytes", [10, pytest.param(100, marks=pytest.mark.whole)])
def test_a_large_text_is_refused_and_short_ones_are_answered_after_it(server, megabytes):
    """Over gRPC: Triton 2.51 itself dies of a body of more than 4 MB over HTTP (docs/serving.md)."""
    ask = OverGrpc(server)
    for _ in range(2):
        with pytest.raises(InferenceServerException, match=f"a text of {megabytes}000000 bytes") as refused:
            ask("tags_text", "TEXT", bytes_of(["x " * (megabytes * 500_000)]))
        assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"
        assert ask("tags_text", "TEXT", bytes_of([SHORT]))


# Images


def encoded(kind, *, mode="RGB", size=(90, 70), **options):
    """An image file of smooth waves, so that how it is scaled shows."""
    from PIL import Image

    y, x = np.mgrid[: size[1], : size[0]]
    waves = [127 + 120 * np.sin(x / (3 + band) + y / (5 + band) + band) for band in range(4)]
    pixels = np.stack(waves, axis=2).astype(np.uint8)
    image = Image.fromarray(pixels[..., 0] if mode == "L" else pixels[..., : len(mode)], mode=None)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def files(timm):  # with timm comes Pillow
    from PIL import Image

    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held on its side
    return {
        "png": encoded("PNG"),
        "jpeg": encoded("JPEG", size=(300, 200), quality=95),
        "grey": encoded("PNG", mode="L", size=(70, 90)),
        "transparent": encoded("PNG", mode="RGBA"),
        "tiny": encoded("PNG", size=(9, 13)),
        "turned": encoded("JPEG", exif=turned, quality=95),
    }


def prepared(name, file):
    """What timm's evaluation makes of a file: float32 [3, 64, 64]; no rotation by EXIF, and no transparency."""
    from PIL import Image

    image = Image.open(io.BytesIO(file)).convert("RGB")
    if name == "middle":
        side = int(64 / 0.9)
        wide, high = image.size
        size = (side, int(side * high / wide)) if wide <= high else (int(side * wide / high), side)
        image = image.resize(size, Image.Resampling.BICUBIC)
        left, top = round((size[0] - 64) / 2), round((size[1] - 64) / 2)
        image = image.crop((left, top, left + 64, top + 64))
        mean, std = torch.full((3,), 0.5), torch.full((3,), 0.5)
    else:
        image = image.resize((64, 64), Image.Resampling.BILINEAR)
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255
    return (pixels - mean[:, None, None]) / std[:, None, None]


@pytest.mark.parametrize("name", ["middle", "whole"])
def test_an_image_file_gets_the_labels_that_timm_gives_it(name, ask, photographs, files, timm):
    original = timm.create_model(f"local-dir:{photographs / name}", pretrained=True).eval()
    labels = ["cat", "dog", "boat", "tree"] if name == "whole" else ["0", "1", "2", "3"]
    together = ask(f"{name}_image", "IMAGE", bytes_of(list(files.values())))
    for number, file in enumerate(files.values()):
        with torch.inference_mode():
            logits = original(prepared(name, file)[None])[0]
        best = logits.argsort(descending=True)
        expected_row = {"logits": logits, "labels": [labels[n] for n in best], "scores": logits.softmax(0)[best]}
        compare(ask(f"{name}_image", "IMAGE", bytes_of([file])), 0, expected_row)
        compare(together, number, expected_row)


# Plain ONNX


def test_a_plain_onnx_file_gives_its_own_outputs_or_answers_to_the_task_that_is_named(ask):
    raw = ask("plain_text", "TEXT", bytes_of(TEXTS))
    assert list(raw) == ["logits"]
    answer = ask("plain_classes_text", "TEXT", bytes_of(TEXTS))
    assert np.allclose(answer["logits"], raw["logits"], atol=1e-5)
    assert set(answer) == {"logits", "labels", "scores"}
    for logits, labels, scores in zip(answer["logits"], answer["labels"], answer["scores"], strict=True):
        assert labels.tolist() == [str(number).encode() for number in np.argsort(-logits)]
        assert np.allclose(scores, np.sort(np.exp(logits) / np.exp(logits).sum())[::-1], atol=1e-5)


def test_the_server_says_which_models_clients_call_and_what_for(server):
    client = grpc.InferenceServerClient(server.grpc)
    tasks = {}
    for model in client.get_model_repository_index().models:
        parameters = client.get_model_config(model.name).config.parameters
        if "recipe_task" in parameters:
            tasks[model.name] = parameters["recipe_task"].string_value
    client.close()
    assert tasks == {
        **{f"{name}_text": task for name, (_, task, _, _) in KINDS.items()},
        **{f"fused_{name}_text": KINDS[name][1] for name in FUSED},
        "windows_text": "question-answering",
        "middle_image": "image-classification",
        "whole_image": "image-classification",
        "plain_text": "tensors",
        "plain_classes_text": "text-classification",
    }
