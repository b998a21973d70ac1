"""Installed distributions: what their metadata requires in one exact version."""

import pytest

from engine.builder.trace import distributions


def describe(site, name, *requirements):
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    lines = [f"Name: {name}", *(f"Requires-Dist: {each}" for each in requirements), "", "Requires-Dist: other==1"]
    (folder / "METADATA").write_text("\n".join(lines))
    (folder / "RECORD").write_text(f"{name}/__init__.py,,\n")
    (site / name).mkdir()


@pytest.fixture
def site(tmp_path):
    describe(tmp_path, "outer", "first_libs==1.0", "second-bindings == 1.0", "third>=1", "fourth==1; extra == 'x'")
    describe(tmp_path, "first_libs", "inner==2.*", "deepest==3,!=3.1")
    describe(tmp_path, "second_bindings")
    return str(tmp_path)


def test_every_exact_requirement_counts_one_after_the_other_and_through_others(site):
    assert distributions.pinned_by("outer", site) >= {"first-libs", "second-bindings", "inner"}
    assert distributions.pinned_by("outer", site).isdisjoint({"third", "fourth", "deepest", "other"})
    assert distributions.pinned_by("nobody", site) == frozenset()


def test_a_package_belongs_to_the_distribution_of_its_name_or_to_the_one_that_lists_it(site, tmp_path):
    assert distributions.owner(f"{site}/outer") == distributions.Distribution("outer", "1.0")
    (tmp_path / "outer-1.0.dist-info" / "RECORD").write_text("elsewhere/__init__.py,,\n")
    assert distributions.owner(f"{site}/elsewhere") == distributions.Distribution("outer", "1.0")
    assert distributions.owner(f"{site}/unknown") is None
