"""Models that differ in their last operator, activation, labels, prompt or modules: served as the original, or refused.

Each case is checked, fetched and packaged, and the package runs in this process. The original's own answer comes from
`pipeline` of transformers, `predict` and `encode` of sentence-transformers, or the ONNX file itself.
"""

import json

import heads
import models
import numpy as np
import pytest
from heads import PAIRS, TEXTS, edit, modules, onnx_file
from onnx import TensorProto, helper

from engine.errors import Exit, RecipeError
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.kit.triton.answers import by_task
from engine.kit.triton.config import Signature
from engine.kit.triton.served.classify import Work as Classify
from engine.runtimes.onnxruntime import session as ort

NODE = helper.make_node
LOGSUM = [NODE("ReduceLogSumExp", ["raw"], ["all"], axes=[1]), NODE("Sub", ["raw", "all"], ["logits"])]
PARTS = [
    NODE("Exp", ["raw"], ["e"]), NODE("ReduceSum", ["e", "middle"], ["all"], keepdims=1),
    NODE("Div", ["e", "all"], ["logits"]),
]  # fmt: skip
BOTH = [
    NODE("Sigmoid", ["raw"], ["p"]), NODE("Sub", ["one", "p"], ["q"]), NODE("Concat", ["q", "p"], ["logits"], axis=1)
]  # fmt: skip


def chain(*operators, **attributes):
    """Return nodes that lead from `raw` to `logits`."""
    names = ["raw", *(f"step{number}" for number in range(1, len(operators))), "logits"]
    return [
        NODE(kind, [names[number]], [names[number + 1]], **attributes.get(kind, {}))
        for number, kind in enumerate(operators)
    ]


def softmax(numbers):
    shares = np.exp(numbers - numbers.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def same(numbers):
    return numbers


CASTS = [
    NODE("Softmax", ["raw"], ["p"], axis=1), NODE("Cast", ["p"], ["d"], to=TensorProto.DOUBLE),
    NODE("Cast", ["d"], ["logits"], to=TensorProto.FLOAT),
]  # fmt: skip
SQUEEZED = [
    NODE("Unsqueeze", ["raw", "middle"], ["u"]), NODE("Softmax", ["u"], ["p"]),
    NODE("Squeeze", ["p", "middle"], ["logits"]),
]  # fmt: skip
OWN = helper.make_function(
    "own", "Shares", ["x"], ["y"], [NODE("Softmax", ["x"], ["y"])], [helper.make_opsetid("", heads.OPSET)]
)
ENDINGS = {
    "logits": ([], {}, softmax),
    "Softmax": (chain("Softmax"), {}, same),
    "Softmax over axis 1": (chain("Softmax", Softmax={"axis": 1}), {}, same),
    "Softmax, Identity": (chain("Softmax", "Identity"), {}, same),
    "Softmax, Dropout": (chain("Softmax", "Dropout"), {}, same),
    "Softmax, Cast, Cast": (CASTS, {}, same),
    "Unsqueeze, Softmax, Squeeze": (SQUEEZED, {}, same),
    "Softmax in its parts": (PARTS, {}, same),
    "LogSoftmax, Exp": (chain("LogSoftmax", "Exp"), {}, same),
    "Hardmax": (chain("Hardmax"), {}, same),
    "LogSoftmax": (chain("LogSoftmax"), {}, np.exp),
    "LogSoftmax, Identity": (chain("LogSoftmax", "Identity"), {}, np.exp),
    "Softmax, Log": (chain("Softmax", "Log"), {}, np.exp),
    "less the logarithm of the sum": (LOGSUM, {}, np.exp),
    "Softmax in a function": (
        [NODE("Shares", ["raw"], ["logits"], domain="own")],
        {"functions": [OWN], "domains": ["own"]},
        same,
    ),
    "Sigmoid": (chain("Sigmoid"), {}, same),
    "HardSigmoid": (chain("HardSigmoid"), {}, same),
    "Sigmoid of one number": (chain("Sigmoid"), {"classes": 1}, same),
    "one number": ([], {"classes": 1}, same),
    "Sigmoid and the rest": (BOTH, {"classes": 1, "shape": ["batch", 2]}, same),
    "Tanh": (chain("Tanh"), {}, softmax),
    "inputs called ids and mask": ([], {"names": ["ids", "mask"]}, softmax),
    "inputs called a, b and c": ([], {"names": ["b", "a", "c"], "types": True}, softmax),
    "three inputs of the usual names": (chain("Softmax"), {"types": True}, same),
}


@pytest.mark.parametrize("ending", ["logits", "LogSoftmax", "inputs called a, b and c"])
def test_the_scores_of_a_file_are_made_once(tmp_path, ending):
    tail, options, score = ENDINGS[ending]
    source = onnx_file(tmp_path / "net.onnx", *tail, **options)
    heads.checked(source, task="text-classification", tokenizer="tokenizer")
    work = heads.served(source, tmp_path, task="text-classification", tokenizer=tmp_path / "tokenizer")
    answer = heads.answers(work, TEXTS[:1])
    [row] = score(original(source, TEXTS[0], options))
    assert heads.scores(answer, 0) == pytest.approx({str(number): value for number, value in enumerate(row)}, abs=1e-5)


def original(source, text, options):
    """Run the file itself on the tokens of a text."""
    row = tokenizers.load(models.classifier_with_tokenizer(source.parent / "t")).row(text)
    usual = ["input_ids", "attention_mask", *(["token_type_ids"] if options.get("types") else [])]
    names = dict(zip(usual, options.get("names", usual), strict=True))
    file = source.parent / "alone" / "model.onnx"
    file.parent.mkdir()
    file.write_bytes(source.read_bytes())
    return ort.run(ort.session(file.parent, threads=1), {names[name]: row[name] for name in usual})["logits"]


@pytest.mark.parametrize("ending", ["logits", "LogSoftmax"])
def test_the_scores_of_tokens_are_made_once(tmp_path, ending):
    tail, _, score = ENDINGS[ending]
    source = onnx_file(tmp_path / "net.onnx", *tail, tokens=True)
    heads.checked(source, task="token-classification", tokenizer="tokenizer")
    work = heads.served(source, tmp_path, task="token-classification", tokenizer=tmp_path / "tokenizer")
    answer = heads.answers(work, TEXTS[:1])
    [rows] = score(original(source, TEXTS[0], {}))
    assert answer["scores"][0] == pytest.approx(rows.max(axis=1), abs=1e-5)
    assert [int(label) for label in answer["labels"][0]] == rows.argmax(axis=1).tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_ending_of_a_graph_gets_its_scores(tmp_path, ending):
    tail, options, score = ENDINGS[ending]
    folder = onnx_file(tmp_path / "model.onnx", *tail, **options).parent
    signature = Signature({}, onnx_files.outputs(onnx_files.load_graph(folder)))
    answer = by_task.of("image-classification", signature, folder, None)
    ids = np.arange(12).reshape(2, 6)
    session = ort.session(folder, threads=1)
    names = options.get("names", ["input_ids", "attention_mask", "token_type_ids"])
    given = dict(zip(names, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=False))
    logits = ort.run(session, {each.name: given[each.name] for each in session.get_inputs()})["logits"]
    classes = Classify(folder, answer.settings)({"logits": logits})
    expected = np.sort(score(logits), axis=1)[:, ::-1]
    assert classes["scores"] == pytest.approx(expected, abs=1e-6)


WHOLE = {"type": TensorProto.INT64}
REFUSED_FILES = {
    "ArgMax": (chain("ArgMax", ArgMax={"axis": 1}), {**WHOLE, "shape": ["batch", 1]}, "is int64 of 2 axes"),
    "ArgMax, Cast": (
        chain("ArgMax", "Cast", ArgMax={"axis": 1}, Cast={"to": TensorProto.FLOAT}), {"shape": ["batch", 1]},
        "ends in ArgMax",
    ),
    "a class alone": (
        chain("ArgMax", ArgMax={"axis": 1, "keepdims": 0}), {**WHOLE, "shape": ["batch"]}, "is int64 of 1 axes"
    ),
    "classes without a number": ([], {"shape": ["batch", "classes"]}, "how many classes"),
    "logits of each token": ([], {"tokens": True}, "of 3 axes"),
    "a tokenizer of more tokens": ([], {"vocabulary": 20}, "has only 20 embeddings"),
    "two inputs of small tables": ([], {"vocabulary": 9}, "not those that a tokenizer fills"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED_FILES)
def test_a_file_that_no_package_can_answer_with_is_refused_before_a_build(tmp_path, fault):
    tail, options, why = REFUSED_FILES[fault]
    if "small" in fault:
        options = {**options, "names": ["x", "y", "z"], "types": True}
    source = onnx_file(tmp_path / "net.onnx", *tail, **options)
    assert why in refusal(source, task="text-classification", tokenizer="tokenizer")


def refusal(source, **model):
    with pytest.raises(RecipeError) as caught:
        heads.checked(source, **model)
    assert caught.value.exit is Exit.USAGE
    assert caught.value.facts
    assert caught.value.hint
    return str(caught.value)


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """Classifiers with so many classes, and their graphs."""
    names = {1: ["relevance"], 2: ["bad", "good"], 3: ["bad", "fine", "good"]}
    return {
        count: heads.exported(
            tmp_path_factory.mktemp(f"of-{count}"), "text-classification", id2label=dict(enumerate(each))
        )
        for count, each in names.items()
    }  # fmt: skip


PROBLEMS = {
    "two classes": (2, None),
    "one of two": (2, "single_label_classification"),
    "several of three": (3, "multi_label_classification"),
    "regression of three": (3, "regression"),
    "one class": (1, None),
    "one class, regression": (1, "regression"),
    "one class of several": (1, "multi_label_classification"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_scores_are_those_of_the_pipeline(classifiers, tmp_path, problem):
    import transformers

    classes, kind = PROBLEMS[problem]
    checkpoint, built = classifiers[classes]
    source = heads.copied(checkpoint, tmp_path)
    edit(source / "config.json", problem_type=kind)
    heads.checked(source)
    answer = heads.answers(heads.served(source, tmp_path, built), TEXTS)
    pipeline = transformers.pipeline("text-classification", model=str(source), top_k=None)
    for row, text in enumerate(TEXTS):
        expected = {each["label"]: each["score"] for each in pipeline([text])[0]}
        assert heads.scores(answer, row) == pytest.approx(expected, abs=1e-4)


SETTINGS, PROMPTS = "config_sentence_transformers.json", {"q": "great movie ", "d": "the actor "}


def torch_name(name):
    return f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"


def in_config(name):
    return {"config.json": {"sentence_transformers": {"activation_fn": torch_name(name), "version": "6.2.0"}}}


def in_settings(name, **more):
    return {SETTINGS: {"model_type": "CrossEncoder", "activation_fn": torch_name(name), **more}}


OLD = {"config.json": {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}}
UNTRUSTED = {SETTINGS: {"model_type": "CrossEncoder", "activation_fn": "mine.Own"}}
RANKERS = {
    "Sigmoid": (1, in_config("Sigmoid")),
    "Identity": (1, in_config("Identity")),
    "Identity, as before 4.0": (1, OLD),
    "Identity in the settings": (1, in_settings("Identity")),
    "Sigmoid in the settings goes first": (1, {**in_config("Identity"), **in_settings("Sigmoid")}),
    "code of its own never runs": (1, UNTRUSTED),
    "three classes, no activation": (3, {SETTINGS: {"model_type": "CrossEncoder"}}),
    "three classes, Sigmoid": (3, in_settings("Sigmoid")),
    "three classes, Softmax": (3, in_settings("Softmax")),
    "a prompt": (1, in_settings("Identity", prompts=PROMPTS, default_prompt_name="q")),
    "prompts without a default": (1, in_settings("Identity", prompts=PROMPTS)),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("ranker", RANKERS)
def test_scores_of_a_cross_encoder_are_those_of_predict(classifiers, tmp_path, ranker):
    from sentence_transformers import CrossEncoder

    classes, files = RANKERS[ranker]
    checkpoint, built = classifiers[classes]
    source = heads.copied(checkpoint, tmp_path)
    if SETTINGS in files:
        CrossEncoder(str(checkpoint), device="cpu").save_pretrained(str(source))
    for name, fields in files.items():
        edit(source / name, **fields)
    heads.checked(source)
    answer = heads.answers(heads.served(source, tmp_path, built), PAIRS)
    names = list(json.loads((source / "config.json").read_text())["id2label"].values())
    expected = np.array(CrossEncoder(str(source), device="cpu").predict([list(pair) for pair in PAIRS]))
    for row, values in enumerate(expected.reshape(len(PAIRS), classes)):
        assert heads.scores(answer, row) == pytest.approx(dict(zip(names, values.tolist(), strict=True)), abs=1e-4)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return heads.exported(tmp_path_factory.mktemp("encoder"), "feature-extraction")


def dense(size=16, activation="Tanh", taken=32, **options):
    import torch
    from sentence_transformers.base.modules import Dense

    torch.manual_seed(5)
    return Dense(taken, size, activation_function=getattr(torch.nn, activation)(), **options)


def layer_norm(size=32):
    import torch
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    torch.manual_seed(6)
    module = LayerNorm(size)
    with torch.no_grad():
        module.norm.weight.normal_()
        module.norm.bias.normal_()
    return module


Q, SKIPPED = {"default_prompt_name": "q", "prompts": PROMPTS}, {"include_prompt": False}
ENCODERS = {
    "mean": {},
    "cls, Normalize": {"modules": lambda: ["Normalize"], "pooling": "cls"},
    "Dense": {"modules": lambda: [dense()]},
    "Dense without bias": {"modules": lambda: [dense(bias=False, activation="Identity")]},
    **{
        f"Dense, {name}": {"modules": lambda name=name: [dense(activation=name)]}
        for name in ("ReLU", "GELU", "SiLU", "Sigmoid")
    },
    "Dense beside its input": {"modules": lambda: [dense(32, use_residual=True)]},
    "Dense beside a product": {"modules": lambda: [dense(use_residual=True)]},
    "Dense, Dense, Normalize": {"modules": lambda: [dense(64, "Identity"), dense(16, taken=64), "Normalize"]},
    "LayerNorm": {"modules": lambda: [layer_norm()]},
    "LayerNorm, Normalize": {"modules": lambda: [layer_norm(), "Normalize"]},
    "Normalize, Dense": {"modules": lambda: ["Normalize", dense()]},
    "Dropout": {"modules": lambda: ["Dropout"]},
    "two vectors and Dense": {"modules": lambda: [dense(taken=64)], "pooling": ["mean", "cls"]},
    "lasttoken, Normalize": {"modules": lambda: ["Normalize"], "pooling": "lasttoken"},
    "shorter": {"modules": lambda: ["Normalize"], "settings": {"truncate_dim": 8}},
    "shorter by the recipe": {"modules": lambda: ["Normalize"], "recipe": {"truncate_dim": 8}},
    "shorter behind Dense": {"modules": lambda: [dense()], "recipe": {"truncate_dim": 5}},
    "a prompt": {"settings": Q},
    "another prompt": {"settings": Q, "recipe": {"prompt": "d"}},
    "an empty prompt": {"settings": {**Q, "prompts": {"q": ""}}},
    "a prompt and Dense": {"settings": Q, "modules": lambda: [dense()]},
    **{
        f"a prompt that does not count, {mode}": {"settings": Q, "options": SKIPPED, "pooling": mode}
        for mode in ("mean", "cls", "max", "weightedmean", "lasttoken", "mean_sqrt_len_tokens")
    },
    "a prompt that does not count, before an end token": {"settings": Q, "options": SKIPPED, "end": "[SEP]"},
    "no prompt to leave out": {"options": SKIPPED},
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ENCODERS)
def test_vectors_are_those_of_encode(encoder, tmp_path, name):
    from sentence_transformers import SentenceTransformer

    case = ENCODERS[name]
    checkpoint, built = encoder
    source = heads.copied(checkpoint, tmp_path)
    modules(source, *case.get("modules", list)(), pooling=case.get("pooling", "mean"), **case.get("options", {}))
    edit(source / SETTINGS, **case.get("settings", {}))
    edit(source / "tokenizer_config.json", sep_token=case.get("end"))
    recipe = case.get("recipe", {})
    heads.checked(source, **recipe)
    vectors = heads.answers(heads.served(source, tmp_path, built, **recipe), TEXTS)["sentence_embedding"]
    model = SentenceTransformer(str(source), device="cpu", truncate_dim=recipe.get("truncate_dim"))
    expected = model.encode(list(TEXTS), prompt_name=recipe.get("prompt"))
    assert vectors.shape == expected.shape
    assert np.abs(vectors - expected).max() < 1e-4


def listed(*kinds):
    types = [
        {"path": f"{number}_{kind}" if number else "", "type": f"sentence_transformers.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]
    return lambda source: (source / "modules.json").write_text(json.dumps(types))


def edit_types(source, second):
    path = source / "modules.json"
    first, pooling = json.loads(path.read_text())
    path.write_text(json.dumps([first, {**pooling, "type": second}]))


def with_dense(**fields):
    def change(source):
        modules(source, dense())
        edit(source / "2_Dense" / "config.json", **fields)

    return change


def adapted(source):
    edit(source / "adapter_config.json", peft_type="LORA")
    (source / "adapter_model.safetensors").write_bytes((source / "model.safetensors").read_bytes())


def with_one_token_more(source):
    path = source / "tokenizer.json"
    content = json.loads(path.read_text())
    number = max(content["model"]["vocab"].values()) + 1
    content["added_tokens"].append({**content["added_tokens"][0], "id": number, "content": "[NEW]", "special": False})
    path.write_text(json.dumps(content))


REFUSED_ENCODERS = {
    "ColBERT": (
        lambda source: edit(source / "config.json", architectures=["HF_ColBERT"]), "ColBERT", "feature-extraction"
    ),
    "PyLate": (listed("Transformer", "Dense"), "modules.json has Transformer, Dense", "feature-extraction"),
    "a module of their own": (
        lambda source: (modules(source), edit_types(source, "mine.Pooling")), "Transformer, mine.Pooling", None
    ),
    "SPLADE": (listed("MLMTransformer", "SpladePooling"), "MLMTransformer, SpladePooling", None),
    "Asym": (listed("Transformer", "Pooling", "Asym"), "Transformer, Pooling, Asym", None),
    "Dense of tokens": (with_dense(module_input_name="token_embeddings"), "token_embeddings", None),
    "Dense with an activation of its own": (with_dense(activation_function="mine.Own"), "mine.Own", None),
    "Dense with an activation of torch": (
        with_dense(activation_function="torch.nn.modules.activation.Softplus"), "Softplus", None
    ),
    "an adapter": (adapted, "adapter beside the weights of a whole model", None),
    "a token without a row": (with_one_token_more, "'[NEW]' has the id", None),
}  # fmt: skip


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", REFUSED_ENCODERS)
def test_an_encoder_that_a_package_would_not_serve_as_it_is_is_refused(encoder, tmp_path, name):
    change, why, task = REFUSED_ENCODERS[name]
    source = heads.copied(encoder[0], tmp_path)
    change(source)
    assert why in refusal(source, **({"task": task} if task else {}))


REFUSED_CLASSIFIERS = {
    "a class left out": ({"config.json": {"id2label": {"0": "a", "2": "b"}}}, "the classes 0, 2; the model has 0, 1"),
    "a CrossEncoder with Tanh": (in_settings("Tanh"), "scores are Tanh of the logits"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_CLASSIFIERS)
def test_a_classifier_that_a_package_would_not_serve_as_it_is_is_refused(classifiers, tmp_path, name):
    files, why = REFUSED_CLASSIFIERS[name]
    source = heads.copied(classifiers[2][0], tmp_path)
    if SETTINGS in files:
        listed("Transformer")(source)
    for file, fields in files.items():
        edit(source / file, **fields)
    assert why in refusal(source)


def test_a_choice_that_the_model_does_not_have_is_refused(classifiers, encoder, tmp_path):
    source = heads.copied(encoder[0], tmp_path)
    modules(source)
    edit(source / SETTINGS, prompts=PROMPTS)
    assert "no prompt called 'query'" in refusal(source, prompt="query")
    other = heads.copied(classifiers[2][0], tmp_path / "other")
    assert "makes no sentence embedding" in refusal(other, truncate_dim=4)
