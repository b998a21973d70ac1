"""Hints name versions that pip can install."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.runtimes import releases, triton_images
from engine.runtimes.releases import RELEASES
from engine.text import versions

NUMBERS = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(lambda each: ".".join(map(str, each)))
OF_IMAGES = st.sampled_from([image.tensorrt for image in triton_images.IMAGES])
REQUESTED = st.one_of(NUMBERS, NUMBERS.map("{}.x".format), st.sampled_from(RELEASES["tensorrt"]), OF_IMAGES)


def installs(requirement, distribution):
    """Return the releases that pip may install for `"name==1.2.*"` or `"name==1.2"`."""
    version = re.fullmatch(f'"{distribution}==([0-9a-z.]+?)(\\.\\*)?"', requirement)
    if version[2]:
        return [each for each in RELEASES[distribution] if f"{each}.".startswith(f"{version[1]}.")]
    return [each for each in RELEASES[distribution] if each == version[1]]


@settings(max_examples=40)
@given(distribution=st.sampled_from(sorted(RELEASES)), requested=REQUESTED)
def test_a_hint_always_names_a_version_that_exists(distribution, requested):
    assert installs(releases.requirement(distribution, requested), distribution)
    assert releases.released(distribution, releases.nearest(distribution, requested))


@settings(max_examples=40)
@given(requested=REQUESTED)
def test_what_pip_installs_for_a_hint_agrees_with_the_request_where_any_release_does(requested):
    if releases.released("tensorrt", requested):
        installed = installs(releases.requirement("tensorrt", requested), "tensorrt")
        assert all(versions.agrees(requested, each) for each in installed)


@pytest.mark.parametrize(
    ("requested", "hint"),
    [
        ("10.0.1.6", '"tensorrt==10.0.1"'),  # of the image 24.05: pip's version has no build
        ("10.7.0.23", '"tensorrt==10.7.0"'),
        ("10.11", '"tensorrt==10.11.*"'),
        ("10.11.0.33", '"tensorrt==10.11.0.33"'),
        ("10.x", '"tensorrt==10.*"'),
        ("10.17", '"tensorrt==10.16.0.72"'),  # no such release: the nearest
        (None, "tensorrt"),
        ("x", "tensorrt"),
    ],
)
def test_what_pip_installs_is_a_release(requested, hint):
    assert releases.requirement("tensorrt", requested) == hint
    assert releases.requirement("some-package", "1.2") == '"some-package==1.2.*"'


def test_every_list_has_its_source_and_its_order():
    assert RELEASES.keys() == releases.SOURCES.keys()
    for each in RELEASES.values():
        assert [versions.numbers(one) for one in each] == sorted(versions.numbers(one) for one in each)
