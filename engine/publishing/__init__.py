"""Puts packages into a Triton model repository as numbered versions, in a folder or in an object store."""
