"""Probe: tell whether the models of a Triton server answer. Packages carry this file as probe.py."""

#     python3 probe.py [--url http://127.0.0.1:8000] [--timeout 5] [MODEL ...]
#
# A server reports a model as ready whose Python process is dead. So each model gets a small request. With several
# Python processes a request may reach a living one, so the probe also looks at the processes themselves, where it runs
# beside the server. The exit code is 0 where all models answer, and 1 otherwise; the output then names each model that
# does not answer, and why. Needs Python 3.10 and no other package.

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
_NOT_LOADED = ("is not ready", "unknown model", "no available versions")
"""What Triton answers for a model that is not loaded. Any other refusal shows that the model answers."""
_NO_ANSWER = (OSError, ValueError, KeyError)
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_USUAL_PORT = 8000
_HTTP_PORT = re.compile(r"\0--http-port[=\0](\d+)")
_ENDED = "Z"
"""The state of a process that has ended, and whose end its parent has not taken notice of."""
_INSTANCE = re.compile(r"(?P<group>[^/]+)_\d+")
"""The name of an instance: that of its group and a number. Triton gives it to the instance's process as an argument."""


class Probe:
    """The models of one server, and the requests that show whether they answer."""

    def __init__(self, url: str, timeout: float, server: int | None = None) -> None:
        """`url` is the server's address over HTTP; `timeout` is how many seconds one request may take.

        `server` is the id of the server's process; without it, the process is looked for by the address.
        """
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._server = server
        self._late = f"no answer within {timeout:g} s"
        self._most: Counter[str] = Counter()

    def dead(self, models: list[str] | None = None) -> dict[str, str]:
        """Return the models that do not answer, each with the reason; without `models` all models of the server.

        The name "" stands for the server itself. A model that is busy with other requests counts as one that answers:
        some model of the server then answers requests while the probe waits. A model gets no request if one of its
        Python processes has ended, because such a process holds a request for a second or longer.
        """
        try:
            before = self._answered()
            names = models or sorted({each["name"] for each in self._call("/v2/repository/index", {})})
        except _NO_ANSWER as error:
            return {"": f"the server does not answer: {_reason(error)}"}
        reasons: dict[str, str | None] = {**self.dead_processes()}
        others = [name for name in names if name not in reasons]
        with ThreadPoolExecutor(max(1, len(others))) as threads:
            reasons.update(zip(others, threads.map(self._reason_of, others), strict=True))
        silent = {name: reason for name in names if (reason := reasons.get(name)) is not None}
        if self._late in silent.values():
            with contextlib.suppress(*_NO_ANSWER):
                if self._answered() != before:
                    return {name: reason for name, reason in silent.items() if reason != self._late}
        return silent

    def dead_processes(self) -> dict[str, str]:
        """Return the models with a Python process that has ended, and the ensembles that use one, each with the reason.

        The result is empty where this system does not show the server's processes.
        """
        server = self._server or _server_at(self._url)
        instances = {} if server is None else processes(server)
        running = Counter(name["group"] for each in instances.values() if (name := _INSTANCE.fullmatch(each or "")))
        self._most |= running  # for a backend that is not "python" and runs in Python processes nevertheless
        if None not in instances.values():
            return {}
        try:
            ready = [each["name"] for each in self._call("/v2/repository/index", {"ready": True})]
            configs = {name: self._call(f"/v2/models/{name}/config") for name in ready}
        except _NO_ANSWER:
            return {}  # the requests to the models tell then
        dead = {}
        for name, config in configs.items():
            groups = _groups(config)
            run, expected = sum(running[each] for each in groups), sum((self._most | groups)[each] for each in groups)
            if run < expected:
                dead[name] = f"Python processes that run: {run} of {expected}"
        steps = {name: [step["model_name"] for step in config.get("ensemble_scheduling", {}).get("step", [])]
                 for name, config in configs.items()}  # fmt: skip
        through = {name: f"in ensemble '{name}', {step}: {dead[step]}"
                   for name, used in steps.items() for step in used if step in dead}  # fmt: skip
        return dead | through

    def _reason_of(self, model: str) -> str | None:
        """Return why a model does not answer; None for a model that answers, or refuses the request."""
        try:
            config = self._call(f"/v2/models/{model}/config")
            request = _request(config)
            if request is None:
                self._call(f"/v2/models/{model}/ready", empty=True)
                return None
            path = "generate_stream" if "inputs" not in request else "infer"
            for _ in range(max(1, _groups(config).total())):  # idle instances take turns, as a rule
                text = self._call(f"/v2/models/{model}/{path}", request, empty=path != "infer")
                if isinstance(text, str) and DEAD in text:
                    return _message(text)
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            if error.code >= _SERVER_ERROR and DEAD in text:
                return _message(text)
            return f"{error.code}: {_message(text)}" if any(mark in text for mark in _NOT_LOADED) else None
        except (OSError, ValueError) as error:
            return self._late if isinstance(getattr(error, "reason", error), TimeoutError) else _reason(error)
        return None

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


def _groups(config: dict[str, Any]) -> Counter[str]:
    """Return the groups of a model's instances, each with its number of Python processes; 0 for another backend."""
    is_python = config.get("backend") == "python"
    return Counter({group["name"]: is_python * int(group.get("count", 1)) * max(1, len(group.get("gpus", [])))
                    for group in config.get("instance_group", [])})  # fmt: skip


def processes(server: int) -> dict[int, str | None]:
    """Return the child processes of a server's process, each with the name of the instance of a model that it runs.

    The name is "" for a child that runs no model, and None for a child that has ended. Triton takes notice of the end
    of a process that it ends itself, and of no other.
    """
    names: dict[int, str | None] = {}
    for children in Path(f"/proc/{server}/task").glob("*/children"):  # each thread may have started some
        for number in _read(children).split():
            words = _read(children.parents[3] / number / "cmdline").split("\0")
            state = _read(children.parents[3] / number / "stat").rpartition(")")[2].split()[:1]
            name = next((word for word in words if _INSTANCE.fullmatch(word)), "")
            names[int(number)] = None if state == [_ENDED] else name
    return names


def _server_at(url: str) -> int | None:
    """Return the process of the server at an address of this machine; None where the system shows none, or several.

    It is the program tritonserver that was started with the port of the address, in this network and by this user.
    """
    address = urllib.parse.urlsplit(url)
    servers = []
    for name in Path("/proc").glob("[0-9]*/comm") if address.hostname in _LOOPBACK else ():
        port = _HTTP_PORT.search(_read(name.with_name("cmdline")))
        if _read(name).strip() == "tritonserver" and int(port[1] if port else _USUAL_PORT) == (address.port or 80):
            with contextlib.suppress(OSError):  # it has ended, or another user started it
                if name.with_name("ns").joinpath("net").samefile("/proc/self/ns/net"):
                    servers.append(int(name.parent.name))
    return servers[0] if len(servers) == 1 else None


def _read(file: Path) -> str:
    """Return the text of a file that describes a process; nothing where the process has gone."""
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


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
