"""Free memory of a GPU, from a fake CUDA driver."""

import pytest

from engine.machine import cuda

_NO_CONTEXT = 201


class FakeDriver:
    """Answers like libcuda: with an error where the thread has no context yet."""

    def __init__(self, status):
        self.status = status

    def cuMemGetInfo_v2(self, free, total):  # noqa: N802 - NVIDIA's names
        if not self.status:
            free._obj.value, total._obj.value = 14 << 30, 15 << 30
        return self.status


@pytest.mark.parametrize(("driver", "free"), [(None, None), (FakeDriver(0), 14 << 30), (FakeDriver(_NO_CONTEXT), None)])
def test_the_free_memory_is_the_driver_s_or_not_known(monkeypatch, driver, free):
    monkeypatch.setattr(cuda, "library", lambda _name: driver)
    assert cuda.free_memory() == free
