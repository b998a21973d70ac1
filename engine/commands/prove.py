"""Prove recipes on this machine: build, build again, serve, ask, compare, put a load on it; pack the results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.commands import package as packages_of
from engine.errors import Exit, HardwareError, StepError
from engine.system import folders, regular
from engine.text import lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from engine.api import Session
    from engine.builder.variant import PlannedVariant
    from engine.client.model_metadata import ModelMetadata
    from engine.events import Finished
    from engine.kit.triton.serving import Serving
    from engine.report.proof import PartOutcome, Proof
    from engine.server import Server
    from engine.server.installation import Kind
    from engine.server.served_accuracy import ReferenceRequest

BUILD, AGAIN, LOAD, ASK, COMPARE, MEASURE = "build", "build again", "load", "ask", "compare", "load test"
_CLIENTS = (1, 8, 64)
_SECONDS, _WARM_UP = 4.0, 1.0
"""How long each load is measured, and put on before, in seconds."""
_TIMEOUT = 300.0
"""Seconds to wait for a response."""
_PATIENCE = 1800.0
"""Seconds that a server may take to load a model: a provider may build an engine meanwhile."""
_KINDS: tuple[Kind, ...] = ("container", "path", "pip")
"""The kinds of servers: first the stock image, which is what most users deploy."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe prove`."""
    parser.epilog = (
        "exit codes: 0 all that can run here passed, 1 a part failed, 2 a recipe or the command line is wrong, "
        "3 nothing of the recipes can run here, 130 interrupted; with 0, 1 and 130 the bundle is written"
    )
    options.add_recipes(parser)
    parser.add_argument("--bundle", metavar="FILE", type=Path, default=Path("results.tar.gz"),
                        help="the archive to send back, without private words (default: %(default)s); the outcomes "
                        "stand beside it, in FILE with .json, after each part")  # fmt: skip
    parser.add_argument("--server", choices=_KINDS,
                        help="only this kind: Triton in a container, a tritonserver on the PATH, or the one that "
                        "`recipe serve --install` brings (default: the first of them that fits)")  # fmt: skip
    packages_of.add_building(parser, locked="prove only what the recipe's lock says, else exit 2")


def run(arguments: argparse.Namespace) -> Exit:
    """Run all parts and write the bundle, whatever happens. Raises HardwareError first where no variant can run."""
    from engine import api
    from engine.builder import facts
    from engine.report import bundle
    from engine.report.proof import Proof

    target: Path = arguments.bundle
    folders.refuse_unwritable(
        target.parent, f"the bundle {target} cannot be written", "name another file with --bundle"
    )
    session = api.session(arguments.recipes, **options.reading(arguments))
    machine = facts.describing()
    obstacles = _obstacles(session, machine)
    proof = Proof(target.with_name(f"{target.name.removesuffix('.tar.gz')}.json"), machine)
    logs: dict[str, Path] = {}
    try:
        for variant in session.variants:
            if reason := obstacles[variant.name]:
                proof.skip(variant.name, "all", reason)
            else:
                _Variant(arguments, proof, replace(session, variants=(variant,)), logs).prove()
    except KeyboardInterrupt:
        proof.is_interrupted = True
        what = "interrupted: what is done goes into the bundle; once more ends it at once"
        print(what, file=sys.stderr, flush=True)
        for name in obstacles.keys() - {each.recipe for each in proof.outcomes}:
            proof.skip(name, "all", "interrupted before")
    finally:
        texts = {
            f"{name}-server.log": regular.read_text(log, errors="replace")
            for name, log in logs.items()
            if log.is_file()
        }
        count = bundle.write(target, session.lookup.store.root, machine, {"results.json": proof.text(), **texts})
        session.lookup.store.leave()
    proof.show()
    print(f"{target}: {count} files; look into it before you send it")
    return proof.exit


def _obstacles(session: Session, machine: Mapping[str, str]) -> dict[str, str]:
    """Print what is here; return why each variant cannot run, else "". Raises HardwareError where none can."""
    from engine.commands import doctor
    from engine.report import grid
    from engine.runtimes import requirements

    not_built = {finding.job.recipe for finding in session.findings() if finding.state != "cached"}
    obstacles = {}
    for variant in session.variants:
        hardware = {each: None for job in variant.jobs if (each := job.step.hardware()) is not None}
        waits = [f"{each}: {lack.advice}" for each in hardware if (lack := requirements.lack(each)) is not None]
        missing = requirements.for_steps((job.name, job.step) for job in variant.jobs)
        must_install = not waits and (missing.drivers or (missing.absent and variant.name in not_built))
        obstacles[variant.name] = "; ".join(waits) or (f"it needs: {missing.command}" if must_install else "")
    grid.show([*machine.items()])
    print()
    doctor.show_gpu_ways()
    grid.show([(name, f"cannot run here: {why}" if why else "can run here") for name, why in obstacles.items()])
    print(flush=True)
    if all(obstacles.values()):
        lines = [f"{name}: {why}" for name, why in obstacles.items()]
        hint = "run it on a machine with that GPU; `recipe build RECIPE` builds here what needs none"
        raise HardwareError("nothing of the recipes can run here", lines, hint)
    return obstacles


@dataclass(frozen=True)
class _Variant:
    """One variant on its way through the parts; `session` has no other variant."""

    arguments: argparse.Namespace
    proof: Proof
    session: Session
    logs: dict[str, Path]

    @property
    def planned(self) -> PlannedVariant:
        """The variant with its jobs."""
        return self.session.variants[0]

    @property
    def device(self) -> str:
        """The GPU of this machine that runs the variant, else "CPU"."""
        from engine.machine import local_gpus

        needed = (job.step.hardware() for job in self.planned.jobs)
        return next((local_gpus.name_of(each) for each in needed if each is not None), "CPU")

    def prove(self) -> None:
        """Run the parts one after the other; what needs the result of a failed part does not run."""
        from engine.report import table

        package = server = None
        with self.part(BUILD) as outcome:
            package = self.build(self.session, outcome).packages[self.planned.name]
            print(table.tables(self.session.summaries()), flush=True)
        if package is None:
            return self.skip("it is not built", AGAIN, LOAD, ASK, COMPARE, MEASURE)
        with self.part(AGAIN) as outcome:
            self.build_again(outcome)
        with ExitStack() as stack:
            with self.part(LOAD) as outcome:
                server = stack.enter_context(self.served(package, outcome))
            if server is None:
                return self.skip("no server has loaded it", ASK, COMPARE, MEASURE)
            return self.ask(server, package)

    def part(self, name: str) -> AbstractContextManager[PartOutcome]:
        """Return the context of a part."""
        return self.proof.part(self.planned.name, name, self.device)

    def skip(self, reason: str, *names: str) -> None:
        """Note that parts do not run."""
        for name in names:
            self.proof.skip(self.planned.name, name, reason)

    def build(self, session: Session, outcome: PartOutcome) -> Finished:
        """Build the package. Raises UserError where it is not built, KeyboardInterrupt for an interrupted build."""
        finished = packages_of.build(self.arguments, session)
        if finished.state == "interrupted":
            raise KeyboardInterrupt
        finished.raise_failures()
        if not finished.packages:
            raise HardwareError("the build waits for other hardware")
        outcome.text = f"{finished.state} in {finished.seconds:.1f} s"
        return finished

    def build_again(self, outcome: PartOutcome) -> None:
        """Plan and build the package a second time. Raises StepError where a job runs again."""
        from engine import api

        fresh = api.session(self.arguments.recipes, **options.reading(self.arguments))
        variants = tuple(each for each in fresh.variants if each.name == self.planned.name)
        if self.build(replace(fresh, variants=variants), outcome).state != "up to date":
            raise StepError("jobs ran again though nothing has changed", hint="`recipe history RECIPE` names the rows")

    @contextmanager
    def served(self, package: Path, outcome: PartOutcome) -> Iterator[Server]:
        """Serve the package until the block ends. Raises HardwareError where no server fits, StepError for its end."""
        from engine.runtimes import registry
        from engine.server import find, joint_repository, needs_of, start
        from engine.server.installation import KIND_NAMES

        recipe, name = self.planned.loaded.recipe, self.planned.name
        if not (runtime := registry.of(recipe)).loads_in_triton:
            raise HardwareError(runtime.not_triton)
        with joint_repository.together(
            [joint_repository.BuiltPackage(name, package)], beside=package.parent
        ) as repository:
            image, only = recipe.package.triton.image, self.arguments.server
            try:
                installation = find(needs_of(repository), only=only, order=_KINDS, image=image)
            except StepError as error:
                raise HardwareError(error.what, error.facts, error.hint) from error
            log = self.logs[name] = package.parent / f"prove-{name}.log"
            with start(
                repository, installation=installation, log=log, patience=_PATIENCE, belongings=(repository,)
            ) as server:
                stands_in = "; stand-ins answer: the same answers, not the same speed" if server.stand_in else ""
                outcome.text = f"Triton {server.version} {KIND_NAMES[server.kind]}: {installation.why}{stands_in}"
                yield server

    def ask(self, server: Server, package: Path) -> None:
        """Ask the served package the cases of the validation, compare its answers, and put loads on it."""
        from engine.client.client import Client
        from engine.kit.triton.serving import Serving
        from engine.runtimes.triton_tensors import IMAGE

        serving = Serving.for_recipe(self.planned.loaded.recipe)
        requests: list[ReferenceRequest] = []
        responses: list[Mapping[str, np.ndarray]] = []
        with self.part(ASK) as outcome:
            for url in (f"http://{server.http}", f"grpc://{server.grpc}"):
                with Client(url, timeout=_TIMEOUT) as client:
                    called = client.choose()
                    model = client.choose(serving.model_name) if called.input(IMAGE) else called  # samples are tensors
                    requests = requests or self.requests(model, package, serving)
                    responses += [client.infer(model, each.arrays) for each in requests]
            outcome.text = f"{len(requests)} requests to {model.name}, over HTTP and over gRPC"
        self.compare(requests, responses)
        if not requests:
            return self.skip("no request was made", MEASURE)
        with self.part(MEASURE) as outcome:
            self.measure(f"grpc://{server.grpc}", model, requests, outcome)
        return None

    def requests(self, model: ModelMetadata, package: Path, serving: Serving) -> list[ReferenceRequest]:
        """Return the requests to a model of the package. Raises StepError where no case can be asked."""
        from engine.kit.accuracy.report import AccuracyReport
        from engine.server import served_accuracy
        from engine.step import Section
        from engine.steps.reference import Reference

        [summary] = self.session.summaries()
        records = {job.step.makes: summary.records.get(job.name) for job in self.planned.jobs}
        store = self.session.lookup.store
        folders = {name: store.artifact_path(record.artifact) for name, record in records.items() if record is not None}
        validation = summary.report(Section.VALIDATION, AccuracyReport)
        checkpoint = folders["checkpoint"]
        parts = served_accuracy.PackageParts(package, folders.get("exported", checkpoint), checkpoint, serving)
        outside = () if validation is None else validation.outside
        return served_accuracy.requests_of(model, folders[Reference.makes], parts, outside=outside)

    def compare(self, requests: Sequence[ReferenceRequest], responses: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Compare the answers over both protocols with those that the original's outputs give."""
        from engine.kit.accuracy.gate import Bounded
        from engine.server import served_accuracy

        every = [*requests, *requests]
        if not requests or len(responses) < len(every):
            return self.skip("not every request was answered", COMPARE)
        if not requests[0].case.outputs:
            return self.skip("the build has compared this model, and no text that it generates", COMPARE)
        with self.part(COMPARE) as outcome:
            distance = served_accuracy.distance(every, responses)
            outcome.text = str(distance)
            outcome.figures.append(asdict(distance))
            [bounds] = [job.step for job in self.planned.jobs if job.step.makes == "validated"]
            if isinstance(bounds, Bounded):
                served_accuracy.judge(distance, bounds)
        return None

    @staticmethod
    def measure(url: str, model: ModelMetadata, requests: Sequence[ReferenceRequest], outcome: PartOutcome) -> None:
        """Put short loads on the server. Raises StepError where requests failed."""
        from engine.client import load
        from engine.client.client import Client
        from engine.client.figures import NotMeasured
        from engine.client.generator import LoadSettings

        points = [load.Point(concurrency=clients) for clients in _CLIENTS]
        settings = LoadSettings(_SECONDS, _WARM_UP, _TIMEOUT)
        failed: dict[str, int] = {}
        with Client(url, timeout=_TIMEOUT) as client:
            for figures in load.sweep(client, model, [each.arrays for each in requests], points, settings):
                p99 = "-" if isinstance(figures.latency, NotMeasured) else f"{figures.latency.p99_ms:.3g} ms"
                clients = lists.counted(figures.concurrency or 0, "client")
                line = f"{clients}: {figures.throughput:.4g} requests/s, p99 {p99}"
                outcome.text = "; ".join(filter(None, [outcome.text, line]))
                outcome.figures.append(figures.to_json())
                failed |= figures.errors.messages
        if failed:
            raise StepError("requests failed under load", [f"{count} x {text}" for text, count in failed.items()])
