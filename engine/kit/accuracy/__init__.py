"""How far a built model is from the original, and whether that distance keeps the recipe's bounds."""
