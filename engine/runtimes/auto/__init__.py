"""Auto: the runtime that suits the target; recipes may name it, nothing chooses yet."""
