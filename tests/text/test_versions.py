"""Versions, compared as far as both are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtimes import triton_images
from engine.runtimes.releases import RELEASES
from engine.text import versions
from engine.text.versions import VersionMatch

RELEASED = st.sampled_from(RELEASES["tensorrt"])
OF_IMAGES = st.sampled_from([image.tensorrt for image in triton_images.IMAGES])
NUMBERS = st.lists(st.integers(0, 2), min_size=1, max_size=4).map(lambda each: ".".join(map(str, (10, *each[1:]))))
VERSIONS = st.one_of(RELEASED, OF_IMAGES, NUMBERS)
REQUESTED = st.one_of(VERSIONS, NUMBERS.map("{}.x".format))


@pytest.mark.parametrize(
    ("version", "than", "later"),
    [
        ("10.13", "10.9.0.34", True),
        ("10.9", "10.9.0.34", False),
        ("10.9.0.34", "10.9", False),
        ("11.x", "10.7", True),
        ("10.x", "10.7", False),
        ("", "10.7", False),
    ],
)
def test_a_version_is_later_by_the_numbers_that_both_have(version, than, later):
    assert versions.is_later(version, than=than) is later


@pytest.mark.parametrize(
    ("tensorrt", "exactly", "compatibly"),
    [
        ("10.9.0.34", True, True),
        ("10.9", True, True),
        ("10.13.0.35", False, True),
        ("10.8.0.43", False, False),
        ("11.0.0.1", False, False),
    ],
)
def test_an_engine_is_loaded_by_its_own_version_and_a_compatible_one_by_later_minors(tensorrt, exactly, compatibly):
    assert versions.loads_engine(tensorrt, built_by="10.9.0.34", version_compatible=False) is exactly
    assert versions.loads_engine(tensorrt, built_by="10.9.0.34", version_compatible=True) is compatibly


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ("10.0.1.6", "10.0.1", VersionMatch.NOT_VERIFIED),
        ("10.11.0.33", "10.11", VersionMatch.NOT_VERIFIED),
        ("10.7.0.23", "10.7.0.post1", VersionMatch.NOT_VERIFIED),  # a post release has no build
        ("10.14.1.48", "10.14.1.48.post1", VersionMatch.SAME),
        ("10.11.0.33", "10.11.0.34", VersionMatch.DIFFERENT),
        ("10.x", "10.11.0.33", VersionMatch.NOT_VERIFIED),
        ("10.x", "not installed", VersionMatch.DIFFERENT),
        ("not installed", "10.x", VersionMatch.DIFFERENT),
    ],
)
def test_two_versions_are_of_one_build_only_where_four_numbers_agree(one, other, verdict):
    assert versions.compare(one, other) is verdict


@given(version=VERSIONS, other=VERSIONS, parts=st.integers(1, 3))
def test_a_version_agrees_with_itself_and_with_its_beginnings_and_the_order_of_two_changes_no_verdict(
    version, other, parts
):
    expected = VersionMatch.SAME if versions.is_whole(version) else VersionMatch.NOT_VERIFIED
    assert versions.compare(version, version) is expected
    assert versions.agrees(version, version)
    assert versions.compare(version, other) is versions.compare(other, version)
    short = ".".join(version.split(".")[:parts])
    assert versions.compare(short, version) is VersionMatch.NOT_VERIFIED


@given(built=VERSIONS, tensorrt=VERSIONS)
def test_version_compatibility_only_adds_versions_that_load_an_engine(built, tensorrt):
    exact = versions.loading(tensorrt, built_by=built, version_compatible=False)
    compatible = versions.loading(tensorrt, built_by=built, version_compatible=True)
    assert exact in (compatible, VersionMatch.DIFFERENT)


@given(requested=REQUESTED, image=OF_IMAGES, installed=RELEASED)
def test_what_check_and_the_wait_accept_the_package_accepts(requested, image, installed):
    """One rule: `check` has requested x image, the wait has pin x installed, the package has built x image."""
    if versions.loads_engine(image, built_by=requested, version_compatible=False):
        pin = triton_images.more_exact(requested, image)
        if versions.agrees(pin, installed):
            assert versions.loads_engine(image, built_by=installed, version_compatible=False)
    else:
        both = versions.agrees(requested, installed) and versions.loads_engine(
            image, built_by=installed, version_compatible=False
        )
        assert not (both and versions.is_whole(installed))


@given(requested=REQUESTED, image=OF_IMAGES)
def test_the_more_exact_of_two_versions_that_agree_agrees_with_both(requested, image):
    pin = triton_images.more_exact(requested, image)
    if versions.agrees(requested, image):
        assert versions.agrees(requested, pin)
        assert versions.agrees(image, pin)
