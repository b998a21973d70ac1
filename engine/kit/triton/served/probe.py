"""Probe: tell whether the models of a Triton server answer. Packages carry this file as probe.py."""

#     python3 probe.py [--url http://127.0.0.1:8000] [--timeout 5] [MODEL ...]
#
# Each model gets one small request, because a server reports a model as ready whose Python process is dead. The exit
# code is 0 where all models answer, and 1 otherwise; the output then names each model that does not answer, and why.
# Needs Python 3.10 and no other package.

from __future__ import annotations

import argparse
import json
import math
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

DEAD = "is not healthy"
"""What Triton's python backend answers for a model whose process ended: "Stub process 'NAME' is not healthy."."""
_TEXT = "ok"
_MOST_VALUES = 4096
"""A larger input is not sent, so that a probe stays cheap; of such a model only the state is read."""
_NO_TYPES = {"TYPE_FP16", "TYPE_BF16"}
"""The types of tensors that a request in JSON cannot have."""
_OWN_VALUES = {"MAX_NEW_TOKENS": 1}
"""Input -> its value where zero is none: a model that generates text makes one token."""
_SERVER_ERROR = 500


class Probe:
    """The models of one server, and the requests that show whether they answer."""

    def __init__(self, url: str, timeout: float) -> None:
        """`url` is the server's address over HTTP; `timeout` is how many seconds one request may take."""
        self._url = url.rstrip("/")
        self._timeout = timeout

    def dead(self, models: list[str] | None = None) -> dict[str, str]:
        """Return the models that do not answer, each with the reason; without `models` all models of the server.

        The name "" stands for the server itself. A model that is busy with other requests counts as one that answers:
        some model of the server then answers requests while the probe waits.
        """
        try:
            before = self._answered()
            names = models or sorted({each["name"] for each in self._call("/v2/repository/index", {})})
        except (OSError, ValueError, KeyError) as error:
            return {"": f"the server does not answer: {_reason(error)}"}
        with ThreadPoolExecutor(max(1, len(names))) as threads:
            reasons = dict(zip(names, threads.map(self._reason_of, names), strict=True))
        late = [name for name, reason in reasons.items() if reason is _LATE]
        try:
            is_busy = bool(late) and self._answered() != before
        except (OSError, ValueError, KeyError):
            is_busy = False
        reasons = {name: f"no answer within {self._timeout:g} s" if reason is _LATE else reason
                for name, reason in reasons.items() if not (reason is _LATE and is_busy)}  # fmt: skip
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _reason_of(self, model: str) -> str | None:
        """Return why a model does not answer; None for a model that answers, or refuses the request."""
        try:
            request = _request(self._call(f"/v2/models/{model}/config"))
            if request is None:
                self._call(f"/v2/models/{model}/ready", empty=True)
                return None
            path = "generate_stream" if "inputs" not in request else "infer"
            text = self._call(f"/v2/models/{model}/{path}", request, empty=path != "infer")
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            return _message(text) if error.code >= _SERVER_ERROR and DEAD in text else _not_ready(error.code, text)
        except TimeoutError:
            return _LATE
        except (OSError, ValueError) as error:
            is_late = isinstance(getattr(error, "reason", None), TimeoutError)
            return _LATE if is_late else _reason(error)
        return _message(text) if isinstance(text, str) and DEAD in text else None

    def _answered(self) -> list[Any]:
        """Return how many requests and executions each model has finished."""
        stats = self._call("/v2/models/stats")["model_stats"]
        return [[each.get("inference_count"), each.get("execution_count")] for each in stats]

    def _call(self, path: str, body: Any = None, *, empty: bool = False) -> Any:
        """Return the response to a request as JSON; with `empty` as text, which may be empty. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data)  # noqa: S310 - the caller chose the address
        with urllib.request.urlopen(request, timeout=self._timeout) as answer:  # noqa: S310 - as above
            text = answer.read().decode("utf-8", "replace")
        return text if empty else json.loads(text)


_LATE = "late"


def _request(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return a small request to a model: texts "ok", numbers zero; None where no small request is possible."""
    inputs = [each for each in config.get("input", []) if not each.get("optional") or each["name"] in _OWN_VALUES]
    batch = [1] if int(config.get("max_batch_size") or 0) > 0 else []
    tensors = []
    for each in inputs:
        shape = [*batch, *(max(1, int(size)) for size in each["dims"])]
        count = math.prod(shape)
        if count > _MOST_VALUES or each["data_type"] in _NO_TYPES:
            return None
        kind = each["data_type"].replace("TYPE_STRING", "BYTES").replace("TYPE_", "")
        value: Any = {"BYTES": _TEXT, "BOOL": False}.get(kind, _OWN_VALUES.get(each["name"], 0))
        tensors.append({"name": each["name"], "shape": shape, "datatype": kind, "data": [value] * count})
    if config.get("model_transaction_policy", {}).get("decoupled"):
        return {each["name"]: each["data"][0] for each in tensors}
    return {"inputs": tensors}


def _not_ready(code: int, text: str) -> str | None:
    """Return the reason where a model is not loaded; None for a request that the model refused."""
    missing = "is not ready" in text or "unknown model" in text or "no available versions" in text
    return f"{code}: {_message(text)}" if missing else None


def _message(text: str) -> str:
    """Return the message of an error of Triton."""
    try:
        return str(json.loads(text.removeprefix("data:"))["error"])
    except (ValueError, KeyError, TypeError):
        return text.strip()[:200]


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error or type(error).__name__)


def main() -> int:
    """Probe a server, print what does not answer, and return the exit code."""
    parser = argparse.ArgumentParser(description="Tell whether the models of a Triton server answer.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (default: http://127.0.0.1:8000)")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds for one request (default: 5)")
    parser.add_argument("models", metavar="MODEL", nargs="*", help="default: all models of the server")
    arguments = parser.parse_args()
    dead = Probe(arguments.url, arguments.timeout).dead(arguments.models)
    for model, reason in dead.items():
        print(f"{model or arguments.url}: {reason}")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
