"""The environment variables that a worker sees, and the removal of secrets from logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

_NAMES = {
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "VIRTUAL_ENV", "SYSTEMROOT", "CUDA_HOME", "CUDA_PATH", "CUDA_CACHE_PATH",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "RECIPE_TRITON_VENV", "DOCKER_HOST",
}  # fmt: skip
_PREFIXES = ("HF_", "HUGGING_FACE_", "XDG_")
"""Variables that say where files are and who may read the files; every worker sees these variables.

If an environment variable changes the result of a step, the step names the variable in `Step.variables`.
"""

_LOCALE = "LC_ALL"
FIXED = {
    "TZ": "UTC",
    _LOCALE: "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""Environment variables with fixed values in every worker, unless a step names the variable in `Step.variables`.

All workers have one time zone, one locale and one order of sets; they write no bytecode files, and tools are quiet.
"""

_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_KEY$", re.IGNORECASE)
_SHORTEST_SECRET = 8
"""The least length in characters of a secret that is removed from logs: a shorter value could be an ordinary word."""
_HUB_TOKEN = re.compile(rb"hf_[A-Za-z0-9]{20,}")
_URL_LOGIN = re.compile(rb"(://)[^/\s:@]+:[^/\s@]+@")


def varies(name: str) -> bool:
    """Say whether every worker gets an environment variable from the user's environment, with the user's value."""
    return name in _NAMES or name.startswith(_PREFIXES)


def for_worker(variables: Iterable[str] = (), environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a worker, including the `variables` that its steps name."""
    declared = frozenset(variables)
    names = _NAMES | declared
    kept = {k: v for k, v in environment.items() if k in names or k.startswith(_PREFIXES)}
    free = declared | ({_LOCALE} if any(map(_is_of_locale, declared)) else set())
    return {**kept, **{k: v for k, v in FIXED.items() if k not in free}}


def _is_of_locale(variable: str) -> bool:
    return variable.startswith(("LANG", "LC_"))


def redacted(text: bytes, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return a log without secrets: values of secret variables, tokens of a hub, and logins in URLs."""
    if not text:
        return text
    secrets = {
        value.encode() for name, value in environment.items() if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, b"[redacted]")
    text = _HUB_TOKEN.sub(b"[redacted]", text)
    return _URL_LOGIN.sub(rb"\1[redacted]@", text)
