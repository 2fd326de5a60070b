"""Words of texts: counted, numbered, and looked up as vectors."""

from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
