"""Two paths change places at one moment: no reader finds neither of the files or folders."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_FROM_HERE = -100
"""AT_FDCWD of renameat2(2): a relative path starts at the working directory."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2), since Linux 3.15."""
_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""The errors with which renameat2(2) answers on a kernel or a file system that cannot exchange."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths of one file system.

    Returns False where the system cannot do it; nothing has changed then. Raises OSError, for example where one of the
    paths does not exist.
    """
    if sys.platform != "linux":
        return False
    try:
        failed = ctypes.CDLL(None, use_errno=True).renameat2(
            _FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE
        )
    except AttributeError:  # a C library without renameat2
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
