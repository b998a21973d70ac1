"""The ways of export: families that the table names exist, and each way that builds is tried."""

import image_models
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from engine.kit.reference import export_ways


def test_the_families_of_the_table_are_families_of_transformers_and_none_is_named_twice():
    families = [family for row, _ in export_ways._ROWS for family in row.split()]
    assert len(families) == len(set(families))
    assert [family for family in families if family not in CONFIG_MAPPING_NAMES] == []


def test_the_zoo_has_a_pair_for_each_way_that_builds():
    types = {name.partition("/")[0] for name in image_models.NAMES}
    built = [families.split() for families, way in export_ways._ROWS if not way.refused]
    assert [families for families in built if not types.intersection(families)] == []
