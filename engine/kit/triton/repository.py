"""Repository: a Triton model repository of a built model, with its tokenizer where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.errors import StepError
from engine.kit import checkpoint as checkpoints
from engine.kit import onnx_files, token_rows, tokenise
from engine.kit.triton import config as configs
from engine.kit.triton import model as models
from engine.kit.triton import served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.serving import Serving
from engine.kit.trt import engine_folder, passport
from engine.kit.trt.passport import Passport
from engine.step import Report

_CONFIG = "config.pbtxt"
_VERSION = "1"
_TEXTS: Mapping[str, int] = {
    "question-answering": 2,
    "feature-extraction": 1,
    "token-classification": 1,
    "fill-mask": 1,
}
"""How many texts make one row of TEXT; any other model may be about one or about two (-1)."""
_SIDES = ("left", "right")
_EMPTY = "An ensemble has no files of its own, but Triton looks for the folder of its version.\n"


def write(out: Path, serving: Serving, *, validated: Path, checkpoint: Path) -> Report:
    """Write the folders that Triton serves. Return {"name", "models", "bytes"}.

    A TensorRT-RTX engine, which no Triton backend loads, becomes one plain folder (`kit/trt/engine_folder.py`).
    Raises StepError where names collide, Triton has no such field, or cannot serve the model as it must be.
    """
    out.mkdir(parents=True, exist_ok=True)
    engine = passport.load(validated) if (validated / passport.PLAN).is_file() else None
    if engine is not None and engine.largest and not serving.largest:  # the profile is one that suits the model
        serving = serving.model_copy(update={"largest": engine.largest})
    if engine is not None and serving.execution.runtime == "tensorrt-rtx":
        return _plain(out, serving, engine, validated, checkpoint)
    if engine is not None:
        model, signature = models.engine_config(serving, engine)
    else:
        model, signature = models.onnx_config(serving, validated, out.parent)
    folder = _folder(out, model)
    for name in models.files(validated):
        onnx_files.link_file(validated / name, folder / name)
    listed = [model.name]
    if serving.tokenizer:
        listed += _add_text(out, serving, model, signature, checkpoint)
    print(f"a Triton repository of {', '.join(listed)}")
    return {"name": listed[-1], "models": listed, "bytes": _size(out)}


def _plain(out: Path, serving: Serving, engine: Passport, validated: Path, checkpoint: Path) -> Report:
    """Write an engine's folder. Returns what `write` does, without models for Triton."""
    signature = Signature(engine.input_list, engine.output_list)
    longest, fixed = _lengths(serving, signature) if token_rows.are_tokens(signature.inputs) else (None, None)
    wanted = serving.tokenizer and token_rows.are_tokens(signature.inputs)
    tokeniser = tokenise.load(checkpoint, longest=longest) if wanted else None
    text = None if tokeniser is None else _padding(tokeniser, checkpoint, fixed)
    engine_folder.write(out / serving.model_name, validated, version=engine.tensorrt, tokenizer=text)
    print(engine_folder.NOT_TRITON)
    return {"name": serving.model_name, "models": [], "bytes": _size(out)}


def _add_text(out: Path, serving: Serving, model: Config, signature: Signature, checkpoint: Path) -> list[str]:
    """Add the tokenizer and the ensemble of a text model that has one; return their names."""
    if not token_rows.are_tokens(signature.inputs):
        return []
    longest, fixed = _lengths(serving, signature)
    tokeniser = tokenise.load(checkpoint, longest=longest)
    if tokeniser is None:
        print("the model has no tokenizer: the package takes tokens")
        return []
    texts = _TEXTS.get(checkpoints.task(checkpoint, serving.task), -1)
    tokenizer = configs.tokenizer_config(f"{model.name}_tokenizer", model, texts=texts)
    ensemble = configs.ensemble_config(serving.ensemble, tokenizer, model, texts=texts)
    names = [model.name, tokenizer.name, ensemble.name]
    if len(set(names)) < len(names):
        raise StepError(
            "two models of the package have the same name", [f"model, tokenizer, ensemble: {', '.join(names)}"],
            "choose others with package.triton.name and package.triton.ensemble",
        )  # fmt: skip
    folder = _folder(out, tokenizer)
    (folder / "model.py").write_bytes(served.code(served.TOKENIZER))
    (folder / "tokenizer.json").write_text(_padding(tokeniser, checkpoint, fixed), "utf-8")
    (folder.parent / "requirements.txt").write_text(_requirements(), "utf-8")
    (_folder(out, ensemble) / "ensemble.txt").write_text(_EMPTY, "utf-8")
    return names[1:]


def _lengths(serving: Serving, signature: Signature) -> tuple[int | None, int | None]:
    """Return the most tokens that a row may have, and the number that it must have; None for no such limit."""
    axis = signature.inputs["input_ids"].shape[1]
    return (axis, axis) if isinstance(axis, int) else (serving.largest.get(axis), None)


def _folder(out: Path, config: Config) -> Path:
    """Make a model's folder with its configuration, and return the folder of its version."""
    folder: Path = out / config.name / _VERSION
    folder.mkdir(parents=True)
    (folder.parent / _CONFIG).write_text(configs.as_text(config), "utf-8")
    return folder


def _size(out: Path) -> int:
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def _padding(tokeniser: tokenise.Tokeniser, checkpoint: Path, fixed: int | None) -> str:
    """Return tokenizer.json: cut as in validation, padded to the longest text of a request or to a fixed length."""
    backend = tokeniser.backend
    side = _side(checkpoint)
    token = backend.id_to_token(tokeniser.pad) or ""
    backend.enable_padding(direction=side, pad_id=tokeniser.pad, pad_token=token, length=fixed)
    return str(backend.to_str(pretty=False))


def _requirements() -> str:
    import tokenizers

    return f"# What model.py needs, beside numpy, in Triton's Python.\ntokenizers=={tokenizers.__version__}\n"


def _side(checkpoint: Path) -> str:
    """Return on which side texts are padded: as the tokenizer's settings say, else as its file does, else right."""
    said = str(tokenise.settings(checkpoint / "tokenizer_config.json").get("padding_side")).lower()
    own = (tokenise.settings(checkpoint / "tokenizer.json").get("padding") or {}).get("direction", "right")
    return said if said in _SIDES else str(own).lower()
