"""What the nodes of a cluster run, by a name that no folder `engine` of a user can hide."""

from engine.cluster.ray_engine import ClaimTable, Journal, _run, _survey

__all__ = ["ClaimTable", "Journal", "_run", "_survey"]
