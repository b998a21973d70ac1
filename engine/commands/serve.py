"""Serve the packages of recipes on a real Triton server; build them first where needed."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts, options
from engine.commands import package as packages_of
from engine.errors import Exit, HardwareError, StepError, UsageError, UserError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant
    from engine.events import Finished
    from engine.server import Server
    from engine.server.joint_repository import BuiltPackage

_POLL_SECONDS = 0.2
_STAND_IN = (
    "Models are answered by stand-ins for Triton's own backends: the same answers, not the same speed (docs/serving.md)"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe serve`."""
    parser.epilog = "What stands behind `--` goes to tritonserver: recipe serve RECIPE -- --log-verbose=1"
    options.add_recipes(parser, needed=False)
    parser.add_argument("--install", action="store_true", help="install Triton for CPUs by pip, and serve nothing")
    parser.add_argument(
        "--server",
        choices=("path", "container", "pip"),
        help="only this kind: a tritonserver on the PATH, in a container, or the one that --install brings"
        " (default: the first of them that fits)",
    )
    parser.add_argument(
        "--address", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)"
    )
    for name, usual in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        parser.add_argument(
            f"--{name}-port", metavar="PORT", type=amounts.port, help=f"default: {usual} when it is free"
        )
    parser.add_argument("--log", metavar="FILE", type=Path, help="the server's log (default: build/serve-HTTPPORT.log)")
    parser.add_argument("-j", "--jobs", metavar="N", type=amounts.count, help="build with at most N jobs at a time")
    parser.add_argument("--locked", action="store_true", help="serve only what the recipe's lock says, else exit 2")
    options.add_frozen(parser)
    parser.add_argument(
        "--allow-waiting", action="store_true", help="serve what is built, though other packages wait for hardware"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="where packages go (default: build/)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build, and serve until Ctrl-C or SIGTERM; the server leaves nothing behind."""
    if arguments.install:
        return _install()
    if not arguments.recipes:
        raise UsageError("no recipe is named", hint="recipe serve recipes/minilm_cpu.yaml")
    try:
        return _serve(arguments)
    except UserError as error:
        if arguments.json:
            print(json.dumps({"event": "serve", "state": "failed", "exit": int(error.exit), "error": error.fields()}))
        raise


def _install() -> Exit:
    from engine.server import pip_server

    installed = pip_server.install(pip_server.place_of_environment(), _talk)
    size = sizes.decimal(installed.size)
    print(f"{pip_server.SERVER} is in {installed.environment}: {size}, {installed.seconds:.0f} s")
    return Exit.OK


def _serve(arguments: argparse.Namespace) -> Exit:
    from engine import api
    from engine.server import find, joint_repository, needs_of, ports, start
    from engine.server.installation import user_options

    triton_options = user_options(arguments.further)
    session = api.session(arguments.recipes, **options.reading(arguments))
    packages_of.refuse_twin_models(session.variants, apart="serve them by separate commands")
    image = _image(session.variants)
    named_ports = (arguments.http_port, arguments.grpc_port, arguments.metrics_port)
    ports.choose(arguments.address, *named_ports)  # a port that is taken is an error before anything is built
    finished = packages_of.build(arguments, session, allow_waiting=arguments.allow_waiting)
    if finished.exit != Exit.OK:
        return _unbuilt(arguments, finished)
    packages = _packages(session.variants, finished.packages, allow_waiting=arguments.allow_waiting)
    beside = packages[0].folder.parent
    with joint_repository.together(packages, beside=beside) as repository:
        installation = find(needs_of(repository), only=arguments.server, image=image)
        chosen = ports.choose(arguments.address, *named_ports)
        log = arguments.log or beside / f"serve-{chosen.http}.log"
        _talk(f"starting Triton ({installation.why}); its log is {log}")
        with start(
            repository, installation=installation, ports=chosen, log=log, patience=math.inf, belongings=(repository,),
            further=triton_options,
        ) as server:  # fmt: skip
            _say(arguments, server, installation.why)
            return _watch(server)


def _image(variants: Sequence[PlannedVariant]) -> str | None:
    """Return the image of Triton that the recipes name, or None. Raises UsageError where they name different ones."""
    images = {variant.loaded.recipe.package.triton.image: variant.name for variant in variants}
    images.pop(None, None)
    if len(images) > 1:
        facts = [f"{name}: {image}" for image, name in images.items()]
        raise UsageError("the recipes name different images of Triton", facts, "serve them by separate commands")
    return next(iter(images), None)


def _unbuilt(arguments: argparse.Namespace, finished: Finished) -> Exit:
    hint = "; --allow-waiting serves what is built" if finished.exit == Exit.WAITING and finished.packages else ""
    _talk(f"nothing is served{hint}")
    if arguments.json:
        print(json.dumps({"event": "serve", "state": finished.state, "exit": int(finished.exit)}))
    return finished.exit


def _packages(
    variants: Sequence[PlannedVariant], built: Mapping[str, Path], *, allow_waiting: bool
) -> list[BuiltPackage]:
    """Return the packages that can be served here. Raises HardwareError for one that waits or, if allowed, for all."""
    from engine.machine import cuda
    from engine.server import needs_of
    from engine.server.joint_repository import BuiltPackage

    packages: list[BuiltPackage] = []
    waiting: list[str] = []
    for variant in variants:
        place = built.get(variant.name)
        device = variant.loaded.recipe.target.device
        if place is None:
            waiting.append(f"{variant.name} is not built, and waits for hardware")
        elif needs_of(place).gpu and not cuda.devices():
            waiting.append(f"{variant.name} runs on a GPU ({device}), and there is none here")
        else:
            packages.append(BuiltPackage(f"{variant.name}, {variant.loaded.path}", place))
    if waiting and (not packages or not allow_waiting):
        hint = "--allow-waiting serves the others" if packages else "serve it on a machine with that GPU"
        raise HardwareError("not every package can be served here", waiting, hint)
    for each in waiting:
        _talk(f"note: {each}: it is not served")
    return packages


def _say(arguments: argparse.Namespace, server: Server, why: str) -> None:
    """Print the server's addresses, its models and a curl command for each, once all models are ready."""
    from engine.client.client import Client
    from engine.client.curl import curl_line
    from engine.report import grid
    from engine.report.results import shown
    from engine.server.installation import KIND_NAMES

    addresses = {
        "HTTP": f"http://{server.http}", "gRPC": f"grpc://{server.grpc}", "metrics": f"http://{server.metrics}/metrics",
    }  # fmt: skip
    models = {name: state.state for name, state in sorted(server.models.items())}
    with Client(addresses["HTTP"]) as client:  # gRPC may need a certificate
        curl = {entry.name: curl_line(addresses["HTTP"], entry) for entry in client.entries()}
    if arguments.json:
        about = {"kind": server.kind, "version": server.version, "why": why, "stand_in": server.stand_in}
        fields = {
            "event": "serve", "state": "ready", "server": about,
            **{name.lower(): address for name, address in addresses.items()},
            "models": models, "curl": curl, "pid": server.pid, "log": str(Path(server.log).absolute()),
        }  # fmt: skip
        print(json.dumps(fields, ensure_ascii=False), flush=True)
        return
    print(f"Triton {server.version}, {KIND_NAMES[server.kind]}: {why}")
    if server.stand_in:
        print(_STAND_IN)
    grid.show([*models.items()], indent=2)
    grid.show([*addresses.items(), ("log", shown(server.log))])
    print("\n".join(curl.values()), flush=True)
    _talk("ready; Ctrl-C stops it")


def _watch(server: Server) -> Exit:
    """Wait for Ctrl-C or SIGTERM. Raises StepError where the server ends by itself, or a model stops answering."""
    from engine.server import diagnosis
    from engine.server.health import ServerWatch

    watch = ServerWatch(f"http://{server.http}", server.pid)
    try:
        while (code := server.ended()) is None:
            if watch.dead:
                raise _dead(watch.dead)
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        _talk("stopping; once more ends it at once")
        return Exit.OK
    lines = server.last_words()
    what = f"the Triton server ended by itself ({diagnosis.ending(code)})"
    raise StepError(what, lines, diagnosis.hint_after_end(code, lines))


def _dead(models: Mapping[str, str]) -> StepError:
    """Return the error about models that stopped answering, each with the reason."""
    what = f"{' and '.join(models)} stopped answering, though Triton reports every model as ready"
    facts = [f"{name}: {reason}" for name, reason in models.items()]
    return StepError(what, facts, "start the server again; in production, an orchestrator does that with probe.py")


def _talk(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
