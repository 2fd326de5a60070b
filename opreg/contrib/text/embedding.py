"""Vectors of words, read from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from opreg.errors import did_you_mean, warn
from opreg.gluon.structure import faced
from opreg.ndarray.creation import zeros
from opreg.ndarray.ndarray import NDArray, array

from .vocab import TextError, Vocabulary

__all__ = ["CompositeEmbedding", "CustomEmbedding"]

_FETCHED = ("GloVe", "FastText", "create", "register", "get_pretrained_file_names")


class _Embedding(Vocabulary):
    """A vocabulary with a vector for each word."""

    _vectors: NDArray

    @property
    def vec_len(self) -> int:
        """The length of a vector."""
        return self._vectors.shape[1]

    @property
    def idx_to_vec(self) -> NDArray:
        """The vectors, in the order of the numbers of their words."""
        vectors: NDArray = faced(self._vectors)
        return vectors

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """The vector of a word, or a row for each word of a list; those that are not known have the first one.

        Parameters
        ----------
        tokens : str or list of str
            One or several words.
        lower_case_backup : bool
            Whether a word that is not known is looked up in lower case.
        """
        words = tokens if isinstance(tokens, list) else [tokens]
        if lower_case_backup:
            words = [word if word in self._numbers else word.lower() for word in words]
        vectors: NDArray = self.idx_to_vec.take(array(self.to_indices(words)))
        return vectors if isinstance(tokens, list) else vectors[0]

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Give words other vectors.

        Raises
        ------
        TextError
            When a word is not known, or its number of vectors or their length is another.
        """
        words = tokens if isinstance(tokens, list) else [tokens]
        unknown = [word for word in words if word not in self._numbers]
        if unknown:
            raise TextError(f"update_token_vectors: {unknown[0]!r} is not in the vocabulary; {self.unknown_token!r} "
                            f"has the vector of unknown words")
        shapes = [(len(words), self.vec_len), *([(self.vec_len,)] if len(words) == 1 else [])]
        if getattr(new_vectors, "shape", None) not in shapes:
            raise TextError(f"update_token_vectors: expected an array of shape {shapes[0]}, got "
                            f"{getattr(new_vectors, 'shape', type(new_vectors).__name__)}")
        self._vectors[array(self.to_indices(words))] = new_vectors.reshape(shapes[0])

    def _take_over(self, words: Vocabulary, sources: Sequence[_Embedding]) -> None:
        """Be the embedding of other words, whose vectors are those of several embeddings, side by side."""
        rows = [source.get_vecs_by_tokens(words.idx_to_token).asnumpy() for source in sources]
        for row, source in zip(rows, sources):
            row[0] = source.idx_to_vec[0].asnumpy()
        self._vectors = array(np.concatenate(rows, axis=1))
        self._words, self._numbers = list(words.idx_to_token), dict(words.token_to_idx)
        self._reserved = None if words.reserved_tokens is None else list(words.reserved_tokens)


class CustomEmbedding(_Embedding):
    """Word vectors from a file, as of GloVe or FastText; each line has a word and its vector.

    A line with a word and a single number is a heading and is skipped. For a repeated word the first line counts.

    Parameters
    ----------
    pretrained_file_path : str or path
        The file.
    elem_delim : str
        Stands between a word and its numbers.
    encoding : str
        The encoding of the file.
    init_unknown_vec : callable
        Gives the vector of unknown words for a ``shape``, where the file has none.
    vocabulary : Vocabulary, optional
        The words that are wanted; by default all of the file.
    **kwargs
        Those of `Vocabulary`.

    Raises
    ------
    TextError
        When a line has no number, or other numbers than those before.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "vectors.txt")
    ...     _ = path.write_text("a 1 2\\nb 3 4\\n")
    ...     vectors = CustomEmbedding(path)
    >>> vectors.get_vecs_by_tokens(["b", "c"]).asnumpy().tolist()
    [[3.0, 4.0], [0.0, 0.0]]
    """

    def __init__(self, pretrained_file_path: str | Path, elem_delim: str = " ", encoding: str = "utf8",
                 init_unknown_vec: Callable[..., NDArray] = zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        path, vectors_by_word, first = Path(pretrained_file_path).expanduser(), dict[str, np.ndarray](), len(self)
        with path.open(encoding=encoding) as lines:
            for number, line in enumerate(lines, 1):
                word, *parts = line.rstrip().split(elem_delim)
                if not parts:
                    raise TextError(f"{path}, line {number}: expected a word and its vector, got {line!r}")
                if word in vectors_by_word:
                    warn(f"{path}, line {number}: {word!r} already has a vector")
                elif len(parts) > 1:
                    vectors_by_word[word] = np.array(parts, np.float32)
                    if len(parts) != len(next(iter(vectors_by_word.values()))):
                        raise TextError(f"{path}, line {number}: expected {len(next(iter(vectors_by_word.values())))} "
                                        f"numbers, got {len(parts)}")
        if not vectors_by_word:
            raise TextError(f"{path} has no vectors")
        length = len(next(iter(vectors_by_word.values())))
        unknown = vectors_by_word.pop(self.unknown_token, None)
        vectors = np.zeros((first + len(vectors_by_word), length), np.float32)
        vectors[0] = init_unknown_vec(shape=length).asnumpy() if unknown is None else unknown
        for word, row in vectors_by_word.items():
            if word not in self._numbers:
                self._add([word])
            vectors[self._numbers[word]] = row
        self._vectors = array(vectors[:len(self)])
        if vocabulary is not None:
            self._take_over(vocabulary, [self])


class CompositeEmbedding(_Embedding):
    """Vectors of several embeddings, side by side, for the words of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
        The words.
    token_embeddings : embedding, or list of them
        Their vectors, in this order.
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any):
        super().__init__()
        self._take_over(vocabulary, token_embeddings if isinstance(token_embeddings, list) else [token_embeddings])


def __getattr__(name: str) -> NoReturn:
    if name in _FETCHED:
        raise AttributeError(f"contrib.text.embedding.{name}: vectors are not downloaded; CustomEmbedding reads files "
                             f"of "
                             "GloVe and FastText")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {did_you_mean(name, __all__)}")
