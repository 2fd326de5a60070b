"""Vectors of words, read from files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from opreg.base import data_dir
from opreg.errors import WrongNameError, did_you_mean, warn
from opreg.gluon.structure import gluon_value
from opreg.ndarray.creation import zeros
from opreg.ndarray.ndarray import NDArray, array
from opreg.train.named import get_create_func, get_register_func, get_registry

from ...core.files import open_to_read
from ...core.named_errors import name_errors
from .vocab import TextError, Vocabulary

__all__ = ["CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names",
           "register"]


class _Embedding(Vocabulary):
    """A vocabulary with a vector for each word."""

    _vectors: NDArray

    @property
    def vec_len(self) -> int:
        """The length of a vector."""
        return self._vectors.shape[1]

    @property
    def idx_to_vec(self) -> NDArray:
        """The vectors, in the order of the indices of their words."""
        vectors: NDArray = gluon_value(self._vectors)
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
        """Become the embedding of other words, each of whose vectors joins those of several embeddings."""
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
        with open_to_read(path) as file, _text(file, encoding, path) as lines:
            for number, line in enumerate(lines, 1):
                word, *parts = line.rstrip().split(elem_delim)
                if not parts:
                    raise TextError(f"{path}, line {number}: expected a word and its vector, got {line!r}")
                if word in vectors_by_word:
                    warn(f"{path}, line {number}: {word!r} already has a vector")
                elif len(parts) > 1:
                    try:
                        vectors_by_word[word] = np.array(parts, np.float32)
                    except ValueError as error:
                        raise TextError(f"{path}, line {number}: {error}") from None
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


@contextmanager
def _text(file: BinaryIO, encoding: str, path: Path) -> Iterator[TextIO]:
    """The text of a file; errors in its encoding name the file."""
    try:
        lines = io.TextIOWrapper(file, encoding)
    except LookupError:
        raise TextError(f"{path}: there is no encoding {encoding!r}") from None
    with lines:
        try:
            yield lines
        except UnicodeError as error:
            raise TextError(f"{path}: no text in the encoding {encoding!r}: {error}") from None


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


class _PublishedVectors(CustomEmbedding):
    """Published vectors, whose files are in a local folder: nothing is downloaded."""

    def __init__(self, pretrained_file_name: str, embedding_root: str | Path | None = None,
                 init_unknown_vec: Callable[..., NDArray] = zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):
        folder = _folder(type(self).__name__, embedding_root)
        path = folder / pretrained_file_name
        if not path.is_file():
            raise TextError(f"{type(self).__name__}: vectors are not downloaded: put {pretrained_file_name!r} into "
                            f"{str(folder)!r}, or give the folder above by embedding_root=. "
                            f"{did_you_mean(pretrained_file_name, _files(folder))}")
        super().__init__(path, " ", "utf8", init_unknown_vec, vocabulary, **kwargs)


class GloVe(_PublishedVectors):
    """Vectors of GloVe, from a file in the folder ``glove`` of a local folder.

    Parameters
    ----------
    pretrained_file_name : str
        The name of the file.
    embedding_root : str or path
        The folder above ``glove``: ``embeddings`` in ``MXNET_HOME`` by default.
    init_unknown_vec, vocabulary, **kwargs
        Those of `CustomEmbedding`.

    Raises
    ------
    TextError
        The file is missing; the error says where to put it.
    """

    def __init__(self, pretrained_file_name: str = "glove.840B.300d.txt", *args: Any, **kwargs: Any):
        super().__init__(pretrained_file_name, *args, **kwargs)


class FastText(_PublishedVectors):
    """Vectors of FastText, from a file in the folder ``fasttext`` of a local folder, as those of `GloVe`."""

    def __init__(self, pretrained_file_name: str = "wiki.simple.vec", *args: Any, **kwargs: Any):
        super().__init__(pretrained_file_name, *args, **kwargs)


def _folder(name: str, root: str | Path | None = None) -> Path:
    """The folder with the vectors of a name."""
    return Path(data_dir(), "embeddings", name.lower()) if root is None else Path(root).expanduser() / name.lower()


def _files(folder: Path) -> list[str]:
    """The names of the files in a folder, which may be missing."""
    return sorted(path.name for path in folder.glob("*") if path.is_file())


def register(embedding_cls: type) -> type:
    """Register a class of embeddings for `create`; a decorator.

    Examples
    --------
    >>> @register
    ... class _ExampleVectors(CustomEmbedding):
    ...     pass
    """
    entered: type = get_register_func(_Embedding, "token embedding")(embedding_cls)
    return entered


def create(embedding_name: str, **kwargs: Any) -> Any:
    """Make an embedding by the name of its class, with the keywords of the class.

    Raises
    ------
    NotRegistered
        There is no such class; the error gives the nearest name.
    """
    return get_create_func(_Embedding, "token embedding")(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """The names of the files in the local folder of a class of embeddings; without a name a dict of all classes.

    Raises
    ------
    KeyError
        There is no class of this name.
    """
    classes = get_registry(_Embedding)
    if embedding_name is None:
        return {name: _files(_folder(name)) for name in classes}
    if embedding_name not in classes:
        raise WrongNameError(f"get_pretrained_file_names: no embedding {embedding_name!r}. "
                             f"{did_you_mean(embedding_name, classes)}")
    return _files(_folder(embedding_name))


register(GloVe)
register(FastText)


name_errors(__name__, globals(), __all__)
