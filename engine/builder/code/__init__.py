"""Digests of the source code of steps: a fix changes the digest; a comment or the move of a module does not."""

from engine.builder.code.digests import Code, forget, of_module, of_modules, of_step

__all__ = ["Code", "forget", "of_module", "of_modules", "of_step"]
