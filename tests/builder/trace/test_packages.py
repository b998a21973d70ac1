"""Packages: which installed distribution a file belongs to, and what its metadata requires in one exact version."""

import pytest

from engine.builder.trace import packages


def describe(site, name, *requirements):
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    lines = [f"Name: {name}", *(f"Requires-Dist: {each}" for each in requirements), "", "Requires-Dist: other==1"]
    (folder / "METADATA").write_text("\n".join(lines))
    (folder / "RECORD").write_text(f"{name}/__init__.py,,\n")
    (site / name).mkdir()
    (site / name / "__init__.py").write_text("")


@pytest.fixture
def site(tmp_path, monkeypatch):
    site = tmp_path / "site"
    describe(site, "outer", "first_libs==1.0", "second-bindings == 1.0", "third>=1", "fourth==1; extra == 'x'")
    describe(site, "first_libs", "inner==2.*", "deepest==3,!=3.1")
    describe(site, "second_bindings", "outer==1.0")
    monkeypatch.syspath_prepend(tmp_path / "other" / ".." / "site")
    return site


def test_every_exact_requirement_counts_one_after_the_other_and_through_others(site):
    assert packages.pinned_by("Outer") == {"first-libs", "second-bindings", "inner"}
    assert packages.pinned_by("nobody") == frozenset()


def test_a_file_belongs_to_the_distribution_of_its_name_or_to_the_one_that_lists_it(site):
    (site / "outer-1.0.dist-info" / "RECORD").write_text("elsewhere/__init__.py,,\nshared/part/x.py,,\nfile.py,,\n")
    (site / "elsewhere").mkdir()
    (site / "elsewhere" / "__init__.py").write_text("")
    for file in ("outer", "outer/a.py", "elsewhere/a/b.py", "shared/part/x.py", "file.py"):
        assert packages.package_of(str(site / file)) == "outer", file
    assert packages.package_of(str(site / "first_libs" / "a.py")) == "first-libs"
    assert packages.package_of(str(site / "shared" / "other" / "x.py")) is None
    assert packages.package_of(str(site.parent / "x.py")) is None


def test_what_is_no_package_of_a_distribution_has_a_name_too(site):
    assert packages.package_of(str(site)) == "import path"
    assert packages.package_of(str(site / "outer-1.0.dist-info" / "entry_points.txt")) == "import path"
    assert packages.package_of(str(site / "first_libs-1.0.dist-info" / "METADATA")) == "metadata of first-libs"
    assert packages.package_of(pytest.__file__) == "pytest"
    assert packages.package_of(__import__("os").__file__) == "python"
