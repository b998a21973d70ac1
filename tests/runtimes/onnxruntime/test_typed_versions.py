"""Which versions of ONNX Runtime, and which images of Triton, take the precision from the graph."""

import pytest

from engine.runtimes.onnxruntime import typed_versions


@pytest.mark.parametrize("version", ["1.18.0", "1.18.1", "1.22.0", "1.24.4", "1.26.0", "1.26"])
def test_these_versions_build_strongly_typed_networks(version):
    assert typed_versions.takes_types(version)


@pytest.mark.parametrize("version", ["1.16.3", "1.17.1", "1.27.0", "1.28.0", "1.31.1", "1.32.0", "2.0"])
def test_all_others_need_options_for_precisions(version):
    assert not typed_versions.takes_types(version)


@pytest.mark.parametrize(("release", "takes"), [("23.05", False), ("24.02", False), ("24.05", True), ("26.08", True)])
def test_images_of_triton_with_tensorrt_10_or_later_take_the_precision_from_the_graph(release, takes):
    assert typed_versions.image_takes_types(release) is takes
