import passports
import pytest

from engine.errors import StepError
from engine.runtimes.tensorrt import loading
from engine.runtimes.tensorrt.loading import LoadingMachine

T4 = LoadingMachine(kind="tensorrt", gpu="Tesla T4", sm=75, tensorrt="10.13.0.35", os="Linux", arch="x86_64")
L4 = LoadingMachine(kind="tensorrt-rtx", gpu="NVIDIA L4", sm=89, tensorrt="1.7.1.116", os="Linux", arch="x86_64")
RTX = {"kind": "tensorrt-rtx", "gpu": ("T4", "L4"), "sms": (75, 89), "tensorrt": "1.7.1.116"}


def here(machine=T4, **other):
    return LoadingMachine.model_validate({**dict(machine), **other})


def refusal(engine_passport, machine):
    with pytest.raises(StepError, match="not for this machine") as caught:
        loading.refuse_elsewhere(engine_passport, machine)
    return caught.value


def test_the_machine_that_built_an_engine_may_load_it_by_either_name_of_its_gpu():
    loading.refuse_elsewhere(passports.make(), T4)
    loading.refuse_elsewhere(passports.make(gpu=("T4",)), T4)


@pytest.mark.parametrize(
    ("field", "other", "fact"),
    [
        ("sm", {"sm": 86, "gpu": "NVIDIA A10"}, "sm: the engine is for 75, this machine has 86"),
        ("gpu", {"gpu": "Quadro RTX 6000"}, "gpu: the engine is for Tesla T4, this machine has Quadro RTX 6000"),
        ("tensorrt", {"tensorrt": "10.13.2.6"}, "tensorrt: the engine is for 10.13.0.35, this machine has 10.13.2.6"),
        ("os", {"os": "Windows"}, "os: the engine is for Linux, this machine has Windows"),
        ("arch", {"arch": "aarch64"}, "arch: the engine is for x86_64, this machine has aarch64"),
    ],
)
def test_the_field_that_differs_is_named(field, other, fact):
    assert refusal(passports.make(), here(**other)).facts == (fact,)


def test_every_field_that_differs_is_named():
    error = refusal(passports.make(), here(sm=86, tensorrt="10.4.0.26", os="Windows"))
    assert [fact.partition(":")[0] for fact in error.facts] == ["sm", "tensorrt", "os"]


def test_neither_tensorrt_loads_the_others_engine():
    assert refusal(passports.make(), L4).facts[0].startswith("kind: the engine is for tensorrt, this machine has")
    assert refusal(passports.make(**RTX), T4).facts[0].startswith("kind: the engine is for tensorrt-rtx")


def test_the_same_capability_is_enough_where_the_engine_was_built_for_that():
    engine_passport = passports.make(options={"compatibility": "same-compute-capability"})
    loading.refuse_elsewhere(engine_passport, here(gpu="Quadro RTX 6000"))
    assert "sm:" in refusal(engine_passport, here(sm=80)).facts[0]


AMPERE_PLUS = {"sms": (80,), "gpu": ("NVIDIA A100",), "options": {"compatibility": "ampere-plus"}}
COMPATIBLE = {"options": {"version_compatible": True}}


@pytest.mark.parametrize(
    ("built", "machine"),
    [
        *((AMPERE_PLUS, {"sm": sm, "gpu": "any"}) for sm in (80, 86, 120)),
        *((COMPATIBLE, {"tensorrt": version}) for version in ("10.13.0.35", "10.14.1.48")),
    ],
)
def test_an_engine_for_later_gpus_or_versions_loads_there(built, machine):
    loading.refuse_elsewhere(passports.make(**built), here(**machine))


@pytest.mark.parametrize(
    ("built", "machine", "fact"),
    [
        (AMPERE_PLUS, {"sm": 75, "gpu": "NVIDIA A100"}, "sm: the engine is for 80, this machine has 75"),
        *((COMPATIBLE, {"tensorrt": version}, f"tensorrt: the engine is for 10.13.0.35, this machine has {version}")
          for version in ("10.12.0.36", "11.0.0.114", "9.3.0")),
    ],
)  # fmt: skip
def test_an_engine_for_later_gpus_or_versions_is_refused_below_them(built, machine, fact):
    assert refusal(passports.make(**built), here(**machine)).facts[0] == fact


def test_an_rtx_engine_loads_on_every_gpu_of_the_capabilities_that_it_is_for():
    loading.refuse_elsewhere(passports.make(**RTX), L4)
    loading.refuse_elsewhere(passports.make(**RTX), here(L4, gpu="NVIDIA L40S"))
    error = refusal(passports.make(**RTX), here(L4, gpu="NVIDIA A10", sm=86))
    assert error.facts == ("sm: the engine is for 75 or 89, this machine has 86",)
    assert "NVIDIA A10" in error.hint
    assert refusal(passports.make(**RTX), here(L4, tensorrt="1.6.0.1")).facts[0].startswith("tensorrt:")
