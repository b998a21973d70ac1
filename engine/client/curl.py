"""Curl: a shell command that sends a request to a model with nothing but curl."""

from __future__ import annotations

import json
import shlex
from math import prod
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.client.model_metadata import ModelMetadata, TensorMetadata
from engine.runtimes.triton_tensors import BYTES, IMAGE, TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXAMPLE = ("A fine day.",)
"""The example text for a model whose task is not known."""
_PHOTO = "photo.png"
_INLINE = 16
"""The largest number of values that a curl command spells out; larger inputs are read as zeros from /dev/zero."""


def curl_line(http: str, entry: ModelMetadata, *, texts: Sequence[str] | None = None, image: str = _PHOTO) -> str:
    """Return a command for sh whose response is JSON.

    Texts are sent as JSON of the KServe v2 protocol; a model that generates text gets Triton's extension "generate".
    The bytes of an image file follow the JSON, as the extension "binary tensor data" defines. `texts` are sent instead
    of the example texts, and the file `image` is sent instead of photo.png. Inputs with more than `_INLINE` numbers are
    sent as zeros.
    """
    base = http.rstrip("/") if "://" in http else f"http://{http}"
    url = f"{base}/v2/models/{entry.name}"
    row = tuple(texts) if texts is not None else _example(entry)
    if entry.generates and entry.input(TEXT):
        way = "generate_stream" if entry.decoupled else "generate"
        return f"curl -s{'N' if entry.decoupled else ''} {url}/{way} -d {_quoted({TEXT: row[0]})}"
    if entry.input(IMAGE):
        return _of_image(f"{url}/infer", entry, image, row)
    needed = [tensor for tensor in entry.inputs if not tensor.optional]
    if sum(prod(_shape(tensor, row)) for tensor in needed) > _INLINE and all(t.datatype != "BYTES" for t in needed):
        return _of_zeros(f"{url}/infer", needed)
    inputs = [_header(tensor, row) | {"data": _data(tensor, row)} for tensor in needed]
    return f"curl -s {url}/infer -d {_quoted({'inputs': inputs})}"


def _example(entry: ModelMetadata) -> tuple[str, ...]:
    """Return as many example texts as a row of the model takes."""
    tensor = entry.input(TEXT)
    task = tasks.known(entry.task)
    example = _EXAMPLE if task is None else task.example
    count = tensor.shape[-1] if tensor and tensor.shape and tensor.shape[-1] > 0 else len(example)
    texts = tuple(text.replace("[MASK]", entry.mask or "[MASK]") for text in example)
    return (*texts, *["And another."] * count)[:count]


def _shape(tensor: TensorMetadata, texts: Sequence[str]) -> list[int]:
    shape = [max(size, 1) if size else 0 for size in tensor.shape]
    if tensor.name == TEXT and shape:
        shape[-1] = len(texts)
    return shape


def _header(tensor: TensorMetadata, texts: Sequence[str]) -> dict[str, object]:
    return {"name": tensor.name, "shape": _shape(tensor, texts), "datatype": tensor.datatype}


def _data(tensor: TensorMetadata, texts: Sequence[str]) -> list[Any]:
    if tensor.name == TEXT:
        return list(texts)
    empty: Any = {"BYTES": "", "BOOL": False}.get(tensor.datatype, 1)
    return [empty] * prod(_shape(tensor, texts))


def _of_zeros(url: str, needed: Sequence[TensorMetadata]) -> str:
    sizes = [prod(_shape(tensor, ())) * BYTES.get(tensor.datatype, 1) for tensor in needed]
    inputs = [
        _header(tensor, ()) | {"parameters": {"binary_data_size": size}}
        for tensor, size in zip(needed, sizes, strict=True)
    ]
    head = json.dumps({"inputs": inputs}, separators=(",", ":"), ensure_ascii=False)
    return (
        f"{{ printf %s {shlex.quote(head)}; head -c {sum(sizes)} /dev/zero; }} | curl -s {url} "
        f"-H 'Inference-Header-Content-Length: {len(head.encode())}' --data-binary @-"
    )


def _of_image(url: str, entry: ModelMetadata, image: str, texts: Sequence[str]) -> str:
    """Return a command that sends an image file behind its length: four little-endian bytes, which sh computes.

    The texts of a model that takes them, too, stand in the JSON before the file.
    """
    size = "%9d"  # JSON allows spaces in front, so the head has one length for all files
    parameters = {"parameters": {"binary_data_size": size}}
    inputs = [_header(each, texts) | parameters for each in entry.inputs if each.name == IMAGE]
    inputs += [_header(each, texts) | {"data": list(texts)} for each in entry.inputs if each.name == TEXT]
    written = json.dumps({"inputs": inputs}, separators=(",", ":"))
    length = len(written) - len(f'"{size}"') + len(size % 0)
    head = written.replace("%", "%%").replace("\\", "\\\\").replace(f'"%{size}"', size)  # as printf reads it
    return (
        f'f={shlex.quote(image)}; n=$(wc -c < "$f"); '
        f"{{ printf {shlex.quote(head)} $((n+4)); "
        f'printf "$(printf \'\\\\%03o\' $((n&255)) $((n>>8&255)) $((n>>16&255)) $((n>>24&255)))"; cat "$f"; }} | '
        f"curl -s {url} -H 'Inference-Header-Content-Length: {length}' --data-binary @-"
    )


def _quoted(body: dict[str, object]) -> str:
    return shlex.quote(json.dumps(body, separators=(",", ":"), ensure_ascii=False))
