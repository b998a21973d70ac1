"""Ask a model on a running server: texts, pairs, images, files or tensors, over HTTP or gRPC."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts
from engine.commands.options import add_json
from engine.errors import Exit, UsageError
from engine.text import display

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.client.client import Client
    from engine.client.figures import Latencies, QueryFigures
    from engine.client.model_metadata import ModelMetadata
    from engine.client.requests import InferRequest

_TIMEOUT = 60.0
"""Seconds to wait for a response by default: `client.TIMEOUT`, which the parser of the command line must not import."""
_LABEL = 100
"""Upper limit of the characters that are printed of a row's label; a longer label is cut."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe query`."""
    add_server(parser)
    add_input(parser)
    parser.add_argument("--repeat", metavar="N", type=amounts.positive, default=0,
                        help="ask N more times: mean, p50, p95 and p99, the first call apart")  # fmt: skip
    parser.add_argument("--statistics", action="store_true",
                        help="show where the time went, by the server's own counters: queue and compute of each model, "
                        "and what is left for the network")  # fmt: skip
    parser.add_argument("--stream", action=argparse.BooleanOptionalAction, default=None,
                        help="show generated text as it comes (default: on a terminal)")  # fmt: skip
    parser.add_argument("--save", metavar="FOLDER", type=Path,
                        help="write each mask of an image as a PNG into this folder: 1.png, 2.png, ...")  # fmt: skip
    add_json(parser)
    parser.epilog = (
        "exit codes: 0 answered, 1 the server is not there, goes away or answers with an error, 2 the command line is "
        "wrong. Example: recipe query 127.0.0.1:8000 --text 'A fine day.' --repeat 100 --statistics"
    )


def add_server(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for the server, the model and the timeout."""
    parser.add_argument("url", metavar="URL", help="http://HOST:PORT or grpc://HOST:PORT (https, grpcs with TLS); "
                        "HOST:PORT finds out which it is")  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="which model, where the server has several to ask")
    parser.add_argument("--timeout", metavar="SECONDS", type=amounts.seconds, default=_TIMEOUT,
                        help="how long to wait for an answer (default: %(default)g)")  # fmt: skip


def add_input(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the input of the model."""
    group = parser.add_argument_group("what to ask", "Each may be given several times: rows go together in requests "
                                      "as large as the model takes.")  # fmt: skip
    group.add_argument("--text", metavar="TEXT", action="append", default=[], help="a text; - is all of stdin")
    group.add_argument("--pair", metavar="TEXT", action="append", default=[],
                       help="the second text of each --text, in order: the context of a question")  # fmt: skip
    group.add_argument("--image", metavar="FILE", action="append", default=[],
                       help="an image file, sent as it is; all texts of --text go with each image")  # fmt: skip
    group.add_argument("--file", metavar="FILE", action="append", default=[],
                       help='a .jsonl of samples as recipes have them ({"text"}, {"text", "pair"}, '
                       '{"question", "context"}, {"image"}, {"image", "texts"}), a .txt with a text a line, an .npz '
                       "with an array per input, an image; - is stdin: samples or lines")  # fmt: skip
    group.add_argument("--input", metavar="NAME=JSON", action="append", default=[],
                       help="a tensor, in the input's own shape: 'x=[[0.5, 1.5]]'")  # fmt: skip
    group.add_argument("--max-new-tokens", metavar="N", type=amounts.positive, help="generate no more than N tokens")
    group.add_argument("--stop", metavar="TEXT", action="append", default=[], help="stop generating at this text")


def requests_of(
    arguments: argparse.Namespace, model: ModelMetadata, *, rows_each: int | None = None
) -> list[InferRequest]:
    """Return the requests that a command line describes, with `rows_each` rows in each request. Raises UsageError."""
    from engine.client import requests, rows

    query = rows.collect(
        texts=arguments.text, pairs=arguments.pair, files=arguments.file, images=arguments.image, inputs=arguments.input
    )
    return requests.build(
        model, query, rows_each=rows_each, max_new_tokens=arguments.max_new_tokens, stop=arguments.stop
    )


def run(arguments: argparse.Namespace) -> Exit:
    """Send the requests and print the answers; with --repeat send them again and print the latencies."""
    from engine.client.client import Client

    if arguments.stream and (arguments.repeat or arguments.statistics):
        raise UsageError("--repeat and --statistics are about whole answers", hint="leave --stream out")
    with Client(arguments.url, timeout=arguments.timeout) as client:
        stream = arguments.stream
        if stream is None:  # as it comes, to people
            stream = sys.stdout.isatty() and not (arguments.json or arguments.repeat or arguments.statistics)
        model = client.choose(arguments.model, stream=stream)
        requests = requests_of(arguments, model)
        if model.decoupled:
            _stream(client, model, requests, arguments)
        else:
            _ask(client, model, requests, arguments)
    return Exit.OK


def _ask(client: Client, model: ModelMetadata, requests: Sequence[InferRequest], arguments: argparse.Namespace) -> None:
    from engine.client import timed_requests
    from engine.client.figures import Latencies, QueryFigures, milliseconds

    before = timed_requests.settled(client) if arguments.statistics and not arguments.repeat else {}
    rows, seconds = _answers(client, model, requests, as_json=arguments.json, save=arguments.save)
    first_ms, latency, statistics = milliseconds(sum(seconds)), None, None
    if arguments.repeat:
        if arguments.statistics:
            before = timed_requests.settled(client)
        seconds = timed_requests.again(client, model, requests, arguments.repeat)
        latency = Latencies.of_seconds(seconds)
    if arguments.statistics:
        statistics = timed_requests.statistics(model, before, timed_requests.settled(client), seconds)
    figures = QueryFigures(first_ms, latency, statistics)
    if arguments.json:
        head = {"model": model.name, "protocol": client.address.protocol, "rows": rows}
        print(json.dumps({**head, **figures.to_json()}, ensure_ascii=False))
    else:
        _print_times(model, figures, protocol=str(client.address.protocol))


def _answers(
    client: Client, model: ModelMetadata, requests: Sequence[InferRequest], *, as_json: bool, save: Path | None
) -> tuple[list[Mapping[str, object]], list[float]]:
    """Send each request once; return the answers, as JSON or [] if they are printed as they come, and the seconds.

    Masks are written into the folder `save`.
    """
    from engine.client import answers

    if save is not None and all(output.name != answers.MASK for output in model.outputs):
        raise UsageError(f"{model.name} gives no masks", hint="leave --save out")
    json_rows: list[Mapping[str, object]] = []
    seconds: list[float] = []
    masks = count(1)
    several = sum(len(request.rows) for request in requests) > 1
    for request in requests:
        response = client.prepare(model, request.arrays)()
        seconds.append(response.seconds)
        rows = answers.rows(response.outputs(), len(request.rows))
        if save is not None:
            _save(save, {f"{next(masks)}.png": each for row in rows for each in row[answers.MASK].ravel()})
        if as_json:
            json_rows += map(answers.as_json, rows)
            continue
        for number, row in enumerate(rows):
            if several and number < len(request.rows):
                print(f"> {display.one_line(request.rows[number].label, _LABEL)}")
            print("\n".join(answers.shown(row)))
    return json_rows, seconds


def _save(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UsageError(f"nothing can be written into {folder}", [error.strerror or str(error)]) from error


def _print_times(model: ModelMetadata, figures: QueryFigures, *, protocol: str) -> None:
    from engine.client import timed_requests
    from engine.report import grid

    if figures.latency is not None:
        repeated, first = (", ".join(_numbers(each)) for each in (figures.latency, figures))
        print(f"\n{figures.latency.requests} requests over {protocol}, in ms: {repeated}; {first}")
    if figures.statistics is not None:
        print()
        rows = list(timed_requests.table(model, figures.statistics))
        grid.show(rows, [grid.LEFT, *[grid.RIGHT] * len(rows[0])], gap=3)


def _numbers(figures: Latencies | QueryFigures) -> Iterator[str]:
    from engine.reporting import numbers

    return (f"{number.label} {number.text(getattr(figures, name))}" for name, number in numbers(type(figures)).items())


def _stream(
    client: Client, model: ModelMetadata, requests: Sequence[InferRequest], arguments: argparse.Namespace
) -> None:
    """Print generated text piece by piece; with --json, a line for each piece."""
    from engine.client import answers

    if arguments.repeat or arguments.statistics:
        raise UsageError(f"{model.name} answers in pieces: --repeat and --statistics are about whole answers")
    for number, request in enumerate(requests):
        if len(requests) > 1 and not arguments.json:
            print(f"> {display.one_line(request.rows[0].label, _LABEL)}")
        reason = ""
        for piece in client.stream(model, request.arrays):
            row = answers.rows(piece, len(request.rows))[0]
            if arguments.json:
                piece_fields = {"model": model.name, "row": number, "piece": answers.as_json(row)}
                print(json.dumps(piece_fields, ensure_ascii=False))
            elif "text" in row:
                print(answers.text_of(row), end="", flush=True)
                reason = answers.reason_of(row) or reason
            else:
                print("\n".join(answers.shown(row)), flush=True)
        if not arguments.json:
            print(f"\n(finish_reason: {reason})" if reason else "")
