"""Auto: a name in recipes for the fastest of several runtimes, which a build measures on the target."""
