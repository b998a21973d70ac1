"""The row `code` of a key: a digest of every module that the code of a step can import."""
