"""Ask a model on a running server: texts, pairs, images, files or tensors, over HTTP or gRPC."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from engine.commands import amounts
from engine.commands.options import add_json
from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

    from engine.client.client import Client
    from engine.client.entry import Entry
    from engine.client.figures import Latencies, QueryFigures
    from engine.client.requests import Asked
    from engine.client.rows import Row

_TIMEOUT = 60.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    add_server(parser)
    add_questions(parser)
    parser.add_argument("--repeat", metavar="N", type=amounts.positive, default=0,
                        help="ask N more times: mean, p50, p95 and p99, the first call apart")  # fmt: skip
    parser.add_argument("--statistics", action="store_true",
                        help="show where the time went, by the server's own counters: queue and compute of each model, "
                        "and what is left for the network")  # fmt: skip
    parser.add_argument("--stream", action=argparse.BooleanOptionalAction, default=None,
                        help="show generated text as it comes (default: on a terminal)")  # fmt: skip
    add_json(parser)
    parser.epilog = (
        "exit codes: 0 answered, 1 the server is not there, goes away or answers with an error, 2 the command line is "
        "wrong. Example: recipe query 127.0.0.1:8000 --text 'A fine day.' --repeat 100 --statistics"
    )


def add_server(parser: argparse.ArgumentParser) -> None:
    """Let a command take the server, the model and how long to wait."""
    parser.add_argument("url", metavar="URL", help="http://HOST:PORT or grpc://HOST:PORT (https, grpcs with TLS); "
                        "HOST:PORT finds out which it is")  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="which model, where the server has several to ask")
    parser.add_argument("--timeout", metavar="SECONDS", type=amounts.seconds, default=_TIMEOUT,
                        help="how long to wait for an answer (default: %(default)g)")  # fmt: skip


def add_questions(parser: argparse.ArgumentParser) -> None:
    """Let a command take what is asked."""
    group = parser.add_argument_group("what to ask", "Each may be given several times: rows go together in requests "
                                      "as large as the model takes.")  # fmt: skip
    group.add_argument("--text", metavar="TEXT", action="append", default=[], help="a text; - is all of stdin")
    group.add_argument("--pair", metavar="TEXT", action="append", default=[],
                       help="the second text of each --text, in order: the context of a question")  # fmt: skip
    group.add_argument("--image", metavar="FILE", action="append", default=[], help="an image file, sent as it is")
    group.add_argument("--file", metavar="FILE", action="append", default=[],
                       help='a .jsonl of samples as recipes have them ({"text"}, {"text", "pair"}, '
                       '{"question", "context"}, {"image"}), a .txt with a text a line, an .npz with an array per '
                       "input, an image; - is stdin: samples or lines")  # fmt: skip
    group.add_argument("--input", metavar="NAME=JSON", action="append", default=[],
                       help="a tensor, in the input's own shape: 'x=[[0.5, 1.5]]'")  # fmt: skip
    group.add_argument("--max-new-tokens", metavar="N", type=amounts.positive, help="generate no more than N tokens")
    group.add_argument("--stop", metavar="TEXT", action="append", default=[], help="stop generating at this text")


def questions(entry: Entry, arguments: argparse.Namespace, *, each: int | None = None) -> list[Asked]:
    """Return the requests that the command line says. Raises UsageError."""
    from engine.client import requests, rows

    said = rows.collect(
        texts=arguments.text, pairs=arguments.pair, files=arguments.file, images=arguments.image, inputs=arguments.input
    )
    return requests.build(entry, said, each=each, max_new_tokens=arguments.max_new_tokens, stop=arguments.stop)


def run(arguments: argparse.Namespace) -> Exit:
    """Ask, and print the answers; then ask again if wanted, and print what it took."""
    from engine.client.client import Client

    _sensible(arguments)
    with Client(arguments.url, timeout=arguments.timeout) as client:
        entry = client.choose(arguments.model, stream=_wants_stream(arguments))
        requests = questions(entry, arguments)
        if entry.decoupled:
            _stream(client, entry, requests, arguments)
        else:
            _ask(client, entry, requests, arguments)
    return Exit.OK


def _sensible(arguments: argparse.Namespace) -> None:
    if arguments.stream and (arguments.repeat or arguments.statistics):
        raise UsageError("--repeat and --statistics are about whole answers", hint="leave --stream out")


def _wants_stream(arguments: argparse.Namespace) -> bool:
    if arguments.stream is not None:
        return bool(arguments.stream)
    return sys.stdout.isatty() and not (arguments.json or arguments.repeat or arguments.statistics)


def _ask(client: Client, entry: Entry, requests: Sequence[Asked], arguments: argparse.Namespace) -> None:
    from engine.client import answers, repeating
    from engine.client.figures import QueryFigures

    before = repeating.settled(client, entry) if arguments.statistics and not arguments.repeat else {}
    found: list[Mapping[str, object]] = []
    taken: list[float] = []
    several = sum(len(asked.rows) for asked in requests) > 1
    for answered in repeating.first(client, entry, requests):
        taken.append(answered.seconds)
        rows = answers.rows(answered.outputs, len(answered.asked.rows))
        if arguments.json:
            found += [answers.as_json(row) for row in rows]
        else:
            _show(rows, answered.asked.rows, several=several)
    first, latency, statistics = round(1e3 * sum(taken), 4), None, None
    if arguments.repeat:
        if arguments.statistics:
            before = repeating.settled(client, entry)
        taken = repeating.again(client, entry, requests, arguments.repeat)
        latency = repeating.latencies(taken)
    if arguments.statistics:
        statistics = repeating.statistics(entry, before, repeating.settled(client, entry), taken)
    figures = QueryFigures(first, latency, statistics)
    if arguments.json:
        told = {"model": entry.name, "protocol": client.address.protocol, "rows": found}
        _print_json({**told, **figures.to_json()})
    else:
        _print_times(entry, figures, over=str(client.address.protocol))


def _show(rows: Sequence[Mapping[str, np.ndarray]], asked: Sequence[Row], *, several: bool) -> None:
    from engine.client import answers

    for number, row in enumerate(rows):
        if several and number < len(asked):
            print(f"> {_short(asked[number].label)}")
        print("\n".join(answers.shown(row)))


def _short(label: str, most: int = 100) -> str:
    one_line = " ".join(label.split())
    return one_line if len(one_line) <= most else f"{one_line[: most - 3]}..."


def _print_times(entry: Entry, figures: QueryFigures, *, over: str) -> None:
    from engine.client import repeating
    from engine.report import grid

    if figures.latency is not None:
        shown, first = (", ".join(_told(each)) for each in (figures.latency, figures))
        print(f"\n{figures.latency.requests} requests over {over}, in ms: {shown}; {first}")
    if figures.statistics is not None:
        print()
        rows = list(repeating.table(entry, figures.statistics))
        grid.show(rows, [grid.LEFT, *[grid.RIGHT] * len(rows[0])], gap=3)


def _told(figures: Latencies | QueryFigures) -> Iterator[str]:
    from engine.reporting import numbers

    return (f"{number.label} {number.text(getattr(figures, name))}" for name, number in numbers(type(figures)).items())


def _print_json(said: Mapping[str, object]) -> None:
    import json

    print(json.dumps(said, ensure_ascii=False))


def _stream(client: Client, entry: Entry, requests: Sequence[Asked], arguments: argparse.Namespace) -> None:
    """Print what is generated piece by piece; as JSON, a line a piece."""
    from engine.client import answers

    if arguments.repeat or arguments.statistics:
        raise UsageError(f"{entry.name} answers in pieces: --repeat and --statistics are about whole answers")
    for number, asked in enumerate(requests):
        if len(requests) > 1 and not arguments.json:
            print(f"> {_short(asked.rows[0].label)}")
        reason = ""
        for piece in client.stream(entry, asked.arrays):
            row = answers.rows(piece, len(asked.rows))[0]
            if arguments.json:
                _print_json({"model": entry.name, "row": number, "piece": answers.as_json(row)})
            elif "text" in row:
                print(answers.text_of(row), end="", flush=True)
                reason = answers.reason_of(row) or reason
            else:
                print("\n".join(answers.shown(row)), flush=True)
        if not arguments.json:
            print(f"\n(finish_reason: {reason})" if reason else "")
