"""One config.pbtxt for all versions: what may differ from the version before."""

import pytest

from engine.errors import UsageError

pytestmark = pytest.mark.parametrize("url", ["folder"], indirect=True)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [({"dims": 5}, "films_first: input"), ({"platform": "backend: 'onnxruntime'"}, "films_second: backend")],
)
def test_a_package_whose_configuration_old_versions_cannot_share_is_refused(publish, built, look, changes, fact):
    publish(built(1))
    before = look.names()
    with pytest.raises(UsageError, match="all versions share one") as refused:
        publish(built(2, **changes))
    assert fact in refused.value.facts
    assert look.names() == before


def test_other_instances_are_taken_over(publish, built, look):
    publish(built(1))
    publish(built(2, count=3))
    assert look.config("films_first").instance_group[0].count == 3


def test_a_model_of_somebody_else_is_never_touched(publish, built, tmp_path):
    theirs = tmp_path / "models" / "films_second" / "config.pbtxt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("name: 'films_second' backend: 'python'")
    with pytest.raises(UsageError, match="did not write it"):
        publish(built(1))
    assert [path for path in (tmp_path / "models").rglob("*") if path.is_file()] == [theirs]
