"""One publisher at a time changes what is served."""

import asyncio

import pytest
from published import SERVICE

from engine.publishing.publisher import PublishState
from engine.publishing.repository import ModelRepository


@pytest.mark.parametrize("url", ["folder"], indirect=True)
def test_a_turn_that_was_never_given_back_is_taken(publish, built, look, url):
    asyncio.run(ModelRepository(url, writes=True).create(f".recipe.{SERVICE}.turn.1", b"killed"))
    assert publish(built(1), lease=0.3).state is PublishState.PUBLISHED
    assert not [name for name in look.names() if ".turn." in name]
