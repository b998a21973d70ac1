"""Auto: stands for a runtime that is chosen by the target. Recipes may name `auto`, but no runtime is chosen yet."""
