"""Source code of a step -> Digest: a fix changes the digest; a comment, or moving a module, does not."""

from engine.builder.code.digests import Code, forget, of_module, of_modules, of_step

__all__ = ["Code", "forget", "of_module", "of_modules", "of_step"]
