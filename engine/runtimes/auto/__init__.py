"""Auto: a name in recipes for the runtime that fits the target. No code chooses a runtime for `auto` yet."""
