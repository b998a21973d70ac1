"""Packages in one repository: a server cannot write into a package, and no two models have one name."""

import pytest
from small_servers import ONNX, model

from engine.errors import StepError, UsageError
from engine.server import joint_repository, needs_of
from engine.server.joint_repository import BuiltPackage


def test_packages_lie_in_one_repository_without_a_way_into_them(tmp_path):
    for name in ("one", "two"):
        model(tmp_path / name, f"m_{name}", ONNX, requirements_txt="tokenizers==0.22.1\n")
        (tmp_path / name / "NOTICE").write_text("each package has one")
    both = [BuiltPackage(f"{name}.yaml", tmp_path / name) for name in ("one", "two")]
    (tmp_path / ".serving-dead").mkdir()
    with joint_repository.together(both, tmp_path) as repository:
        assert sorted(path.name for path in repository.iterdir()) == ["m_one", "m_two"]
        (repository / "m_one" / "1" / "left-by-a-server").touch()
        assert joint_repository.targets(repository) == [tmp_path]
        assert needs_of(repository).models == ("m_one", "m_two")
        assert not (tmp_path / ".serving-dead").exists()
        with joint_repository.together(both[:1], tmp_path):
            assert repository.is_dir()
    assert not repository.exists()
    assert list((tmp_path / "one" / "m_one" / "1").iterdir()) == []


def test_two_models_of_one_name_name_both_recipes_and_the_fields(tmp_path):
    for name in ("one", "two"):
        model(tmp_path / name, "same", ONNX)
    both = [BuiltPackage(f"{name}.yaml", tmp_path / name) for name in ("one", "two")]
    with pytest.raises(UsageError) as error, joint_repository.together(both, tmp_path):
        pass
    assert error.value.facts == ("one.yaml", "two.yaml")
    assert "package.triton.name" in error.value.hint


def test_an_engine_of_tensorrt_rtx_is_no_model_of_tritons(tmp_path):
    (tmp_path / "rtx" / "fast").mkdir(parents=True)
    with pytest.raises(StepError, match="fast is no model of Triton"), joint_repository.together(
        [BuiltPackage("rtx.yaml", tmp_path / "rtx")], tmp_path
    ):  # fmt: skip
        pass
