"""How steps join into a plan."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator

from engine.builder import jobs, plan_graph
from engine.errors import StepError
from engine.recipe.schema import ModelSection, Recipe
from engine.step import Source, Step

RECIPE = Recipe(name="r", model=ModelSection(source="x"))


def kind(name, makes, inputs=(), *, used=True, **attributes) -> type[Step]:
    """A step class with the given inputs."""
    parameters = "".join(f", {parameter}" for parameter in inputs)
    scope: dict[str, Any] = {}
    exec(f"def run(self, out{', *' if inputs else ''}{parameters}): ...", scope)  # a signature made on the fly
    body = {
        "__module__": __name__,
        "__annotations__": {"makes": ClassVar[str]} | dict.fromkeys(attributes, ClassVar[Any]),
        "makes": makes,
        "name": name,
        "run": scope["run"],
        "for_recipe": classmethod(lambda cls, _: cls() if used else None),
        **attributes,
    }
    return type(Step)(name, (Step,), body)


def planned(*kinds):
    return jobs.plan(RECIPE, {each.name: each for each in kinds})


def needs(plan):
    return {job.name: dict(job.needs) for job in plan}


A, B = kind("a", "one"), kind("b", "two", ["one"])
C_OF_ONE = kind("c", "three", ["one"])
UNWANTED = kind("b", "two", ["one"], used=False)
WIRED = {
    "inputs are filled by the step that makes them": ([B, A], {"a": {}, "b": {"one": "a"}}),
    "unwanted steps hand on their own first inputs": (
        [A, UNWANTED, kind("c", "three", ["two"], used=False), kind("d", "four", ["three"])],
        {"a": {}, "d": {"three": "a"}},
    ),
    "an input that this very job does not take is left out": (
        [A, kind("b", "two"), kind("d", "four", ["one", "two"], inputs_used=lambda self: ("two",))],
        {"a": {}, "b": {}, "d": {"two": "b"}},
    ),
    "an input may be named after a step": (
        [kind("shape-infer", "shaped"), kind("x", "y", ["shape_infer"])],
        {"shape-infer": {}, "x": {"shape_infer": "shape-infer"}},
    ),
    "a step that slots in takes over the output for everyone downstream": (
        [A, B, C_OF_ONE, kind("s", "model", ["any"], after="a")],
        {"a": {}, "s": {"any": "a"}, "b": {"one": "s"}, "c": {"one": "s"}},
    ),
    "a step slots in behind a step that is not wanted": (
        [A, UNWANTED, kind("c", "three", ["two"]), kind("s", "model", ["any"], after="b")],
        {"a": {}, "s": {"any": "a"}, "c": {"two": "s"}},
    ),
}


@pytest.mark.parametrize(("kinds", "expected"), WIRED.values(), ids=WIRED)
def test_each_input_gets_the_output_of_a_job_that_comes_before(kinds, expected):
    plan = planned(*kinds)
    assert needs(plan) == expected
    names = [job.name for job in plan]
    assert all(names.index(maker) < names.index(name) for name in expected for maker in expected[name].values())


def at_a(name):
    return kind(name, "m", ["x"], after="a")


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (
            [kind("a", "one", delivers=True), kind("b", "two", delivers=True)],
            "two steps make what the user gets: 'a' and 'b'",
        ),
        ([A, at_a("s"), at_a("t")], "'s' and 't'"),
        ([A, kind("b", "two", ["nothing"])], "'b' needs 'nothing'"),
        ([A, kind("s", "m", ["x"], after="nowhere")], "after 'nowhere'"),
        ([kind("a", "one", ["two"]), B], r"need each other: (a -> b -> a|b -> a -> b)"),
    ],
    ids=["two deliver", "two at one place", "no maker", "no such place", "cycle"],
)
def test_steps_that_make_no_plan_are_an_error_that_names_them(kinds, words):
    with pytest.raises(StepError, match=words):
        planned(*kinds)


def test_a_gate_orders_jobs_without_being_an_input():
    plan = planned(A, B, kind("c", "three", ["one"], gates=("b",)))
    assert [job.name for job in plan] == ["a", "b", "c"]
    assert plan[2].gates == ("b",)
    assert plan[2].needs == {"one": "a"}


@given(st.lists(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from("abcdefghij")), max_size=30))
def test_jobs_come_in_the_order_that_networkx_gives_a_graph(pairs):
    edges = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    backwards = dict(zip("abcdefghij", "jihgfedcba", strict=True))  # so that edges run against the alphabet
    graph = nx.DiGraph([(backwards[before], backwards[after]) for before, after in edges])
    graph.add_nodes_from(backwards)
    needs = tuple((name, tuple(graph.predecessors(name))) for name in sorted(graph))
    assert jobs._order(needs) == tuple(nx.lexicographical_topological_sort(graph))


AUTO = RECIPE.as_run_by("auto")
"""A recipe whose runtime stands for onnxruntime and openvino."""


def for_runtime(name, makes, inputs, *runtimes, **attributes):
    """A step that takes part for some runtimes only."""
    chosen = classmethod(lambda cls, recipe: cls() if recipe.target.runtime in runtimes else None)
    return kind(name, makes, inputs, for_recipe=chosen, **attributes)


def of_auto(*others):
    """The plan of a recipe for several runtimes: one of them quantizes, the other one compiles."""
    models = {"model_a": "onnxruntime", "model_b": "openvino"}
    steps = [
        kind("shape", "shaped"),
        for_runtime("quantize", "checked", ["shaped"], "onnxruntime"),
        for_runtime("compile", "compiled", ["checked"], "openvino"),
        for_runtime("measure", "measured", ["shaped"], "auto", models_of=lambda self: models),
        for_runtime("pick", "compiled", ["checked", "measured"], "auto", models_of=lambda self: models,
                    inputs_used=lambda self: ("measured",)),
        kind("use", "used", ["compiled"]),
        *others,
    ]  # fmt: skip
    return {each.name: each for each in steps}


def test_a_runtime_that_stands_for_several_has_the_jobs_of_each_and_one_job_for_each_step():
    plan = jobs.plan(AUTO, of_auto())
    assert needs(plan) == {
        "shape": {},
        "quantize": {"shaped": "shape"},
        "compile": {"checked": "shape"},
        "measure": {"shaped": "shape", "model_a": "quantize", "model_b": "compile"},
        "pick": {"measured": "measure", "model_a": "quantize", "model_b": "compile"},
        "use": {"compiled": "pick"},
    }
    assert [job.name for job in plan][-3:] == ["measure", "pick", "use"]


@pytest.mark.parametrize(("runtime", "last"), [("onnxruntime", "quantize"), ("openvino", "compile")])
def test_a_recipe_that_names_a_runtime_has_the_jobs_of_that_one_alone(runtime, last):
    plan = jobs.plan(RECIPE.as_run_by(runtime), of_auto())
    assert needs(plan) == {"shape": {}, last: {needs(plan)[last].popitem()[0]: "shape"}, "use": {"compiled": last}}


class Tune(Step):
    makes: ClassVar[str] = "tuned"
    after: ClassVar[str] = "shape"
    by: str

    @classmethod
    def for_recipe(cls, recipe):
        return cls(by=recipe.target.runtime)

    def run(self, out, *, shaped): ...


def test_a_step_that_differs_between_the_runtimes_has_a_job_for_each_and_so_have_the_steps_behind_it():
    Tune.name = "tune"
    plan = jobs.plan(AUTO, of_auto(Tune))
    tuned = {job.name: (job.step_name, job.step.by) for job in plan if isinstance(job.step, Tune)}
    assert tuned == {
        "tune": ("tune", "auto"), "tune@onnxruntime": ("tune", "onnxruntime"), "tune@openvino": ("tune", "openvino")
    }  # fmt: skip
    assert needs(plan) == {
        "shape": {},
        **{name: {"shaped": "shape"} for name in tuned},
        "quantize": {"shaped": "tune@onnxruntime"},
        "compile": {"checked": "tune@openvino"},
        "measure": {"shaped": "tune", "model_a": "quantize", "model_b": "compile"},
        "pick": {"measured": "measure", "model_a": "quantize", "model_b": "compile"},
        "use": {"compiled": "pick"},
    }


def test_two_runtimes_share_the_jobs_that_are_the_same_for_both():
    models = {"model_a": "onnxruntime", "model_b": "openvino"}
    steps = [
        kind("shape", "shaped"),
        for_runtime("fuse", "fused", ["shaped"], "onnxruntime"),
        for_runtime("lower", "lowered", ["fused"], "onnxruntime", "openvino"),
        for_runtime("pick", "compiled", [], "auto", models_of=lambda self: models),
        for_runtime("finish", "compiled", ["lowered"], "onnxruntime", "openvino"),
    ]  # fmt: skip
    assert needs(jobs.plan(AUTO, {each.name: each for each in steps})) == {
        "shape": {},
        "fuse": {"shaped": "shape"},
        "lower": {"fused": "fuse"},
        "lower@openvino": {"fused": "shape"},
        "finish": {"lowered": "lower"},
        "finish@openvino": {"lowered": "lower@openvino"},
        "pick": {"model_a": "finish", "model_b": "finish@openvino"},
    }


def test_a_step_that_users_name_stands_for_all_its_jobs():
    Tune.name = "tune"
    plan = plan_graph.up_to(jobs.plan(AUTO, of_auto(Tune)), ["tune"])
    assert [job.name for job in plan] == ["shape", "tune", "tune@onnxruntime", "tune@openvino"]


class Choosy(Step):
    """A step of another package, with options of many types."""

    makes: ClassVar[str] = "chosen"
    value: Any = None
    names: Mapping[str, Any] = {}
    place: Path | str = ""
    day: date | str = ""
    number: int = 0

    def run(self, out): ...


@pytest.mark.parametrize(
    "options",
    [
        {"place": Path("a")}, {"day": date(2024, 1, 1)}, {"value": (1, 2)}, {"value": {1, 2}}, {"value": b"a"},
        {"value": {1: 2}}, {"names": {"a": {1: 2, "1": 3}}}, {"value": object()}, {"value": "\ud800"},
        {"names": {"\ud800": 1}}, {"number": 10**5000}, {"value": b"\xff"},
    ],
    ids="-".join,
)  # fmt: skip
def test_an_option_that_would_reach_a_worker_as_another_value_is_an_error(options):
    chosen = kind("choosy", "chosen", for_recipe=classmethod(lambda cls, _: Choosy(**options)))
    with pytest.raises(StepError) as refusal:
        planned(chosen)
    assert refusal.value.what == (
        f"a worker cannot get the option {next(iter(options))!r} of the step 'choosy' as it is planned"
    )
    assert refusal.value.facts
    assert refusal.value.hint
    if options == {"place": Path("a")}:
        assert [*refusal.value.facts] == [f"planned: {Path('a')!r}", "in a worker: 'a'"]


def test_an_option_that_a_worker_cannot_read_is_an_error():
    class Shouting(Choosy):
        """A step whose option is another one each time it is read."""

        @field_validator("names")
        @classmethod
        def once(cls, names: Mapping[str, Any]) -> Mapping[str, Any]:
            if "read" in names:
                raise ValueError("these names were read before")
            return {**names, "read": True}

    with pytest.raises(StepError, match="an option of the step 'shouting'") as refusal:
        jobs.refuse_lossy("shouting", Shouting(names={"a": 1}))
    assert "these names were read before" in str(refusal.value)


def test_options_that_json_gives_back_are_planned():
    chosen = {
        "value": [1, 1.0, True, None, float("nan"), float("-inf")],
        "names": {"a.b": {"": []}},
        "day": "2024-01-01",
    }
    jobs.refuse_lossy("choosy", Choosy(**chosen))


class Sources(Step):
    """A step with sources that no row would have, and with some that are inputs."""

    makes: ClassVar[str] = "read"
    one: Source | None = None
    several: tuple[Source, ...] = ()
    either: Source | str | None = None
    listed: list[Source] | None = None
    by_name: dict[str, Source] | None = None
    maybe: tuple[Source, ...] | None = None
    deep: tuple[dict[str, Source], ...] = ()

    def run(self, out):
        """Do nothing."""


@pytest.mark.parametrize("option", ["either", "listed", "by_name", "maybe", "deep"])
def test_a_source_whose_content_no_row_would_have_is_refused(option):
    source = Source(uri="hf:a/b")
    jobs.refuse_unhashed("read", Sources(one=source, several=(source, Source(uri="hf:a/c"))))
    other = Source(uri="hf:a/d")
    lost = {"either": "text", "listed": [other], "by_name": {"x": other}, "maybe": (other,), "deep": ({"x": other},)}
    with pytest.raises(StepError, match=f"cannot have the option '{option}'"):
        jobs.refuse_unhashed("read", Sources.model_validate({option: lost[option]}))
