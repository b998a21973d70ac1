"""Typed versions: the versions of ONNX Runtime whose TensorRT provider takes each precision from the graph."""

# Pure: checks of recipes read this module, too. Sources: the wheels (see typed_networks.py), and for Triton's images
# `ort_version` and TRITON_VERSION_MAP in build.py of triton-inference-server/server, branches r24.02 to r26.08.

from __future__ import annotations

from engine.runtimes import versions

WEAKLY_TYPED = "its TensorRT provider builds weakly typed networks, which take no precision from the graph"
HINT = "install onnxruntime-gpu 1.26 (CUDA 12), or use runtime: tensorrt"

_FIRST, _LAST = "1.18", "1.26"
"""The first and the last version whose provider builds strongly typed networks.

Up to 1.17, it is built on TensorRT 8.6. From 1.18 to 1.26, networks are strongly typed as long as no option allows a
precision. From 1.27 to 1.31.1, `createNetworkV2` gets no flag, and with TensorRT 10 the network is weakly typed. Later
versions are not known; options that allow the precisions of the graph suit both kinds.
"""
_TYPED_IMAGES = "24.05"
"""The first release of Triton with TensorRT 10 and ONNX Runtime 1.18.

All later images have ONNX Runtime 1.18 to 1.24 with TensorRT 10, or (from 26.06 on) TensorRT 11, whose networks are
always strongly typed.
"""


def takes_types(version: str) -> bool:
    """Tell whether the TensorRT provider of a version of onnxruntime-gpu takes each precision from the graph."""
    return not versions.is_later(_FIRST, than=version) and not versions.is_later(version, than=_LAST)


def image_takes_types(release: str) -> bool:
    """Tell whether the TensorRT accelerator in an image of Triton takes each precision from the graph."""
    return not versions.is_later(_TYPED_IMAGES, than=release)
