"""A step's source code -> Digest, so that a fix rebuilds what it touches, and a comment or a move rebuilds nothing."""

from engine.builder.code.digests import Code, forget, of_module, of_modules, of_step

__all__ = ["Code", "forget", "of_module", "of_modules", "of_step"]
