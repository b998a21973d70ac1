"""Locks: files beside recipes that record the sources, tools and code of a build, for git and for later builds."""
