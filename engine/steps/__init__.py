"""The built-in steps of a build, a file each."""
