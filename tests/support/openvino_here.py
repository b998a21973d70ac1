"""OpenVINO and NNCF, where the extra `openvino` is installed; tests that import this module are skipped elsewhere."""

import pytest

REASON = "the extra `openvino` is not installed: pip install 'recipe-build[openvino]'"

openvino = pytest.importorskip("openvino", reason=REASON)
pytest.importorskip("nncf", reason=REASON)
