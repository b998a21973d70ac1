"""How far a built model is from the original, and whether that is close enough."""
