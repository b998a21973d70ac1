"""Nothing here starts without a GPU: the reason is looked for once, before anything else."""

import gpu_ways
import pytest

_REASON = gpu_ways.no_gpu()


def pytest_collection_modifyitems(items):
    """Skip what cannot run before any of its fixtures is made."""
    for item in items:
        if item.get_closest_marker("gpu") and _REASON is not None:
            item.add_marker(pytest.mark.skip(reason=_REASON))
