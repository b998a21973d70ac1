"""Auto: stands for a runtime that is chosen by the target. Recipes may name it, but nothing chooses yet."""
