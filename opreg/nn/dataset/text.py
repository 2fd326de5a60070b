"""Operations on text for ``map``: tokens of texts, and their numbers in a vocabulary.

A text is a ``str`` or an array of texts; tokens are a vector of texts, which is ``[""]`` if there are none. Offsets are
places of bytes in UTF-8.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...aliases import inner
from ...cells import dtype as dtypes
from ...cells.typing import TensorDType
from ...core import settings
from ...core.named_errors import name_errors
from ...core.settings import Checked, CheckedMethods
from ...core.spec import is_numpy_float
from ...errors import ArgumentError
from .pipeline import Dataset

__all__ = ["AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "Lookup", "Ngram", "NormalizeForm",
           "NormalizeUTF8", "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SlidingWindow", "ToNumber",
           "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer", "Vocab", "WhitespaceTokenizer",
           "WordpieceTokenizer", "to_bytes", "to_str"]

if not TYPE_CHECKING:  # its submodules
    __getattr__ = inner(__name__)

#: A token, and the places of its first byte and of the one behind it.
_Token: TypeAlias = tuple[str, int, int]


def _texts_of(owner: str, column: Any) -> np.ndarray:
    """A column as an array of texts."""
    texts = np.asarray(column)
    if texts.dtype.kind == "S":
        texts = np.char.decode(texts, "utf-8")
    if texts.dtype.kind != "U":
        raise ArgumentError(f"{owner}: expected text, got {texts.dtype}")
    return texts


def _text_of(owner: str, column: Any) -> str:
    """A column that is one text."""
    texts = _texts_of(owner, column)
    if texts.ndim:
        raise ArgumentError(f"{owner}: expected one text, got an array of shape {texts.shape}")
    return str(texts[()])


def _tokens_of(owner: str, column: Any) -> list[str]:
    """A column that is a vector of texts, as a list."""
    texts = _texts_of(owner, column)
    if texts.ndim != 1:
        raise ArgumentError(f"{owner}: expected a vector of tokens, got an array of shape {texts.shape}")
    return [str(text) for text in texts]


def _each_text(owner: str, column: Any, change: Callable[[str], str]) -> np.ndarray:
    """The texts of a column, each changed by a function."""
    texts = _texts_of(owner, column)
    return np.array([change(str(text)) for text in texts.reshape(-1)], str).reshape(texts.shape)


def _check_texts(owner: str, texts: Iterable[Any]) -> list[str]:
    """Texts that all differ, as a list."""
    given = list(texts)
    for text in given:
        if not isinstance(text, str):
            raise ArgumentError(f"{owner}: expected text, got {text!r}")
    twice = [text for text, count in Counter(given).items() if count > 1]
    if twice:
        raise ArgumentError(f"{owner}: {twice[0]!r} is there more than once")
    return given


def _fold_case(text: str) -> str:
    """A text in small letters, with characters of one meaning alike, without invisible ones: NFKC_Casefold."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join([character for character in folded if unicodedata.category(character) != "Cf"])


# --------------------------------------------------------------------------------------------- vocabularies


class Vocab(CheckedMethods):
    """Tokens and their numbers; made by ``from_list``, ``from_dict``, ``from_file`` or ``from_dataset``.

    Examples
    --------
    >>> vocab = Vocab.from_list(["w1", "w2"], special_tokens=["<unk>"])
    >>> vocab.tokens_to_ids(["w1", "w3"]), vocab.ids_to_tokens(2), len(vocab.vocab())
    ([1, -1], 'w2', 3)
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._tokens: dict[int, str] = {}

    @classmethod
    def _of(cls, numbers: Mapping[str, int]) -> Vocab:
        vocab = cls()
        vocab._numbers = dict(numbers)
        vocab._tokens = {number: token for token, number in numbers.items()}
        return vocab

    @classmethod
    def from_list(cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None,
                  special_first: bool = True) -> Vocab:
        """Number the tokens of a list, with special tokens before or after them.

        Raises
        ------
        ArgumentError
            When a token occurs twice, or is no text.
        """
        words, special = list(word_list), list(special_tokens or ())
        tokens = _check_texts("Vocab", special + words if special_first else words + special)
        return cls._of({token: number for number, token in enumerate(tokens)})

    @classmethod
    def from_dict(cls, word_dict: Mapping[Any, Any]) -> Vocab:
        """Take the numbers of a dict, which must not be negative."""
        for token, number in word_dict.items():
            if not isinstance(token, str) or not isinstance(number, int) or number < 0:
                raise ArgumentError(f"Vocab: expected a number that is not negative for each text, "
                                    f"got {number!r} for {token!r}")
        return cls._of(word_dict)

    @classmethod
    def from_file(cls, file_path: str, delimiter: str = "", vocab_size: int | None = None,
                  special_tokens: Sequence[str] | None = None, special_first: bool = True) -> Vocab:
        """Number the lines of a file, or the parts of the lines before ``delimiter``; at most ``vocab_size`` of them.

        Raises
        ------
        ArgumentError
            When the file is missing, or a token occurs twice.
        """
        if vocab_size is not None and vocab_size <= 0:
            raise ArgumentError(f"Vocab: vocab_size must be positive, got {vocab_size}")
        try:
            lines = Path(file_path).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ArgumentError(f"Vocab: {error}") from None
        words = [line.split(delimiter, 1)[0] if delimiter else line for line in lines[:vocab_size]]
        return cls.from_list(words, special_tokens, special_first)

    @classmethod
    def from_dataset(cls, dataset: Dataset, columns: str | Sequence[str] | None = None,
                     freq_range: tuple[int | None, int | None] | None = None, top_k: int | None = None,
                     special_tokens: Sequence[str] | None = None, special_first: bool = True) -> Vocab:
        """Number the tokens in columns of a dataset, by default in all, the most frequent first.

        Parameters
        ----------
        freq_range : tuple of int or None, optional
            The least and the largest frequency of a token; None for no limit.
        top_k : int, optional
            Largest number of tokens, without the special ones.
        """
        least, most = freq_range or (None, None)
        if least is not None and most is not None and not 0 <= least <= most:
            raise ArgumentError(f"Vocab: expected freq_range to be two rising numbers, got {freq_range}")
        counts: Counter[str] = Counter()
        for row in (dataset if columns is None else dataset.project(columns)).create_tuple_iterator(
                num_epochs=1, output_numpy=True):
            for column in row:
                counts.update(_texts_of("Vocab", column).reshape(-1).tolist())
        words = [word for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
                 if (least is None or count >= least) and (most is None or count <= most)]
        return cls.from_list(words[:top_k], special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """The number of each token."""
        return dict(self._numbers)

    def tokens_to_ids(self, tokens: str | Sequence[str] | np.ndarray) -> int | list[int]:
        """The numbers of tokens; -1 for an unknown one."""
        texts = _texts_of("Vocab.tokens_to_ids", np.asarray(tokens, None if np.size(tokens) else str))
        if not texts.ndim:
            return self._numbers.get(str(texts[()]), -1)
        return [self._numbers.get(str(token), -1) for token in texts]

    def ids_to_tokens(self, ids: int | Sequence[int] | np.ndarray) -> str | list[str]:
        """The tokens of numbers; empty texts for unknown ones."""
        numbers = np.asarray(ids, None if np.size(ids) else np.int64)
        if numbers.dtype.kind not in "iu" or (numbers < 0).any():
            raise ArgumentError(f"Vocab.ids_to_tokens: expected numbers that are not negative, got {ids!r}")
        if not numbers.ndim:
            return self._tokens.get(int(numbers), "")
        return [self._tokens.get(int(number), "") for number in numbers]


class Lookup(Checked):
    """The numbers of tokens in a vocabulary, in the shape of the column.

    Parameters
    ----------
    unknown_token : str, optional
        The token whose number unknown ones get; without it they raise an error.
    data_type : dtype
        The dtype of the numbers.

    Examples
    --------
    >>> Lookup(Vocab.from_list(["a", "b", "?"]), "?")(["b", "q"])
    array([1, 2], dtype=int32)
    """

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: TensorDType = dtypes.int32):
        if not isinstance(vocab, Vocab):
            raise ArgumentError(f"Lookup: expected a Vocab, got {type(vocab).__name__}")
        if unknown_token is not None and unknown_token not in vocab._numbers:
            raise ArgumentError(f"Lookup: the unknown_token {unknown_token!r} is not in the vocabulary")
        self._numbers, self._unknown = vocab._numbers, unknown_token
        self._dtype = np.dtype(dtypes.dtype_to_nptype(data_type))

    def __call__(self, column: Any) -> np.ndarray:
        texts = _texts_of("Lookup", column)
        return np.array([self._number(str(text)) for text in texts.reshape(-1)], self._dtype).reshape(texts.shape)

    def _number(self, token: str) -> int:
        number = self._numbers.get(token)
        if number is None and self._unknown is None:
            raise ArgumentError(f"Lookup: the token {token!r} is not in the vocabulary; give unknown_token")
        return self._numbers[self._unknown] if number is None else number  # type: ignore[index]


# ---------------------------------------------------------------------------------------------- tokenizers


class _Tokenizer(Checked):
    """A base of tokenizers: a subclass yields the tokens of a text."""

    def __init__(self, with_offsets: bool = False):
        self._with_offsets = with_offsets

    def _split(self, text: str) -> Iterator[tuple[str, int]]:
        """The tokens of a text, and the place of the first character of each."""
        raise NotImplementedError

    def _tokens(self, text: str) -> list[_Token]:
        tokens, at, byte = [], 0, 0
        for token, place in self._split(text):
            byte += len(text[at:place].encode())
            at = place
            tokens.append((token, byte, byte + len(token.encode())))
        return tokens

    def _result(self, tokens: Sequence[_Token]) -> Any:
        """The columns: tokens, and, ``with_offsets``, the places of their first bytes and behind their last ones."""
        texts, begins, ends = zip(*tokens or [("", 0, 0)], strict=True)
        return (np.array(texts, str), np.array(begins, np.uint32), np.array(ends, np.uint32)) if self._with_offsets \
            else np.array(texts, str)

    def __call__(self, column: Any) -> Any:
        return self._result(self._tokens(_text_of(type(self).__name__, column)))


class WhitespaceTokenizer(_Tokenizer):
    """The parts of a text between spaces.

    Examples
    --------
    >>> WhitespaceTokenizer()("to  be ").tolist()
    ['to', 'be']
    """

    def _split(self, text: str) -> Iterator[tuple[str, int]]:
        return ((found[0], found.start()) for found in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_Tokenizer):
    """The characters of a text.

    Examples
    --------
    >>> UnicodeCharTokenizer()("a b").tolist()
    ['a', ' ', 'b']
    """

    def _split(self, text: str) -> Iterator[tuple[str, int]]:
        return ((character, place) for place, character in enumerate(text))


class RegexTokenizer(_Tokenizer):
    """The parts of a text between matches of a pattern, in the syntax of Python's ``re``.

    Parameters
    ----------
    keep_delim_pattern : str
        Matches that are wholly of this pattern are tokens, too.

    Examples
    --------
    >>> RegexTokenizer(r"\\s+|,", ",")("a, b").tolist()
    ['a', ',', 'b']
    """

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False):
        super().__init__(with_offsets)
        self._delimiter = settings.pattern("RegexTokenizer: delim_pattern", delim_pattern)
        self._kept = None
        if keep_delim_pattern:
            self._kept = settings.pattern("RegexTokenizer: keep_delim_pattern", keep_delim_pattern)

    def _split(self, text: str) -> Iterator[tuple[str, int]]:
        at = 0
        for found in self._delimiter.finditer(text):
            if found.start() > at:
                yield text[at:found.start()], at
            if self._kept is not None and found[0] and self._kept.fullmatch(found[0]):
                yield found[0], found.start()
            at = found.end()
        if at < len(text):
            yield text[at:], at


class NormalizeForm(enum.Enum):
    """Forms of Unicode; ``NONE`` changes nothing."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4

    def _apply(self, text: str) -> str:
        return text if self is NormalizeForm.NONE else unicodedata.normalize(self.name, text)  # type: ignore[arg-type]


#: Words of BERT that stay whole.
_UNUSED = re.compile(r"\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\]")
#: Characters of Chinese, each of which is a token.
_IDEOGRAPHS = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
                         "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]")


class BasicTokenizer(_Tokenizer):
    """The words of a text; punctuation and characters of Chinese are tokens of their own.

    Parameters
    ----------
    lower_case : bool
        Whether letters become small, and lose their accents.
    keep_whitespace : bool
        Whether spaces are tokens.
    normalization_form : NormalizeForm
        The form of the text before, without ``lower_case``.
    preserve_unused_token : bool
        Whether words such as ``[CLS]`` stay whole.
    with_offsets : bool
        Whether there are columns with the begin and end of each token in the changed text.

    Examples
    --------
    >>> BasicTokenizer(lower_case=True)("Caf\u00e9, now!").tolist()
    ['cafe', ',', 'now', '!']
    """

    def __init__(self, lower_case: bool = False, keep_whitespace: bool = False,
                 normalization_form: NormalizeForm = NormalizeForm.NONE, preserve_unused_token: bool = True,
                 with_offsets: bool = False):
        super().__init__(with_offsets)
        self._lower, self._spaces = lower_case, keep_whitespace
        self._form, self._unused = normalization_form, preserve_unused_token

    def _tokens(self, text: str) -> list[_Token]:
        if self._lower:
            parts, at = [], 0
            for found in _UNUSED.finditer(text) if self._unused else ():
                parts += [_fold_case(text[at:found.start()]), found[0]]
                at = found.end()
            decomposed = unicodedata.normalize("NFD", "".join([*parts, _fold_case(text[at:])]))
            text = "".join([character for character in decomposed if unicodedata.category(character) != "Mn"])
        else:
            text = self._form._apply(text)
        return super()._tokens("".join([" " if unicodedata.category(character) in ("Cc", "Cf") else character
                                        for character in text]))

    def _split(self, text: str) -> Iterator[tuple[str, int]]:
        at = 0
        while at < len(text):
            unused = _UNUSED.match(text, at) if self._unused else None
            end = unused.end() if unused else at + 1
            if not unused and not _stands_alone(text[at]):
                space = text[at].isspace()
                while end < len(text) and text[end].isspace() is space and not _stands_alone(text[end]) and not (
                        self._unused and _UNUSED.match(text, end)):
                    end += 1
                if space and not self._spaces:
                    at = end
                    continue
            yield text[at:end], at
            at = end


def _stands_alone(character: str) -> bool:
    """Whether a character is punctuation or Chinese."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character)[0] == "P" or _IDEOGRAPHS.match(character) is not None


class WordpieceTokenizer(_Tokenizer):
    """Words as pieces of a vocabulary: from the left the longest piece that it has, again and again.

    Parameters
    ----------
    suffix_indicator : str
        The begin of pieces that are not the first of a word.
    max_bytes_per_token : int
        Longer words are unknown.
    unknown_token : str
        The token in place of a word without pieces; the word itself if it is empty.

    Examples
    --------
    >>> WordpieceTokenizer(Vocab.from_list(["un", "##able", "[UNK]"]))(["unable", "able"]).tolist()
    ['un', '##able', '[UNK]']
    """

    def __init__(self, vocab: Vocab, suffix_indicator: str = "##", max_bytes_per_token: int = 100,
                 unknown_token: str = "[UNK]", with_offsets: bool = False):
        super().__init__(with_offsets)
        if not isinstance(vocab, Vocab):
            raise ArgumentError(f"{type(self).__name__}: expected a Vocab, got {type(vocab).__name__}")
        self._known, self._suffix = vocab._numbers, suffix_indicator
        self._longest, self._unknown = max_bytes_per_token, unknown_token

    def _pieces(self, word: str, begin: int) -> list[_Token]:
        """The pieces of a word that begins at a byte."""
        size = len(word.encode())
        unknown = [(self._unknown or word, begin, begin + size)]
        if size > self._longest:
            return unknown
        pieces, at, byte = [], 0, begin
        while at < len(word):
            head = self._suffix if at else ""
            end = next((end for end in range(len(word), at, -1) if head + word[at:end] in self._known), None)
            if end is None:
                return unknown
            size = len(word[at:end].encode())
            pieces.append((head + word[at:end], byte, byte + size))
            at, byte = end, byte + size
        return pieces

    def __call__(self, column: Any) -> Any:
        words = _texts_of(type(self).__name__, column).reshape(-1)
        return self._result([piece for word in words for piece in self._pieces(str(word), 0)])


class BertTokenizer(WordpieceTokenizer):
    """The pieces of the words of a text: ``BasicTokenizer``, then ``WordpieceTokenizer``; see both.

    Examples
    --------
    >>> BertTokenizer(Vocab.from_list(["un", "##able", "!", "[UNK]"]), lower_case=True)("Unable!").tolist()
    ['un', '##able', '!']
    """

    def __init__(self, vocab: Vocab, suffix_indicator: str = "##", max_bytes_per_token: int = 100,
                 unknown_token: str = "[UNK]", lower_case: bool = False, keep_whitespace: bool = False,
                 normalization_form: NormalizeForm = NormalizeForm.NONE, preserve_unused_token: bool = True,
                 with_offsets: bool = False):
        super().__init__(vocab, suffix_indicator, max_bytes_per_token, unknown_token, with_offsets)
        self._basic = BasicTokenizer(lower_case, keep_whitespace, normalization_form, preserve_unused_token)

    def __call__(self, column: Any) -> Any:
        words = self._basic._tokens(_text_of("BertTokenizer", column))
        return self._result([piece for word, begin, _ in words for piece in self._pieces(word, begin)])


class PythonTokenizer(Checked):
    """The tokens that a function of a text returns.

    Examples
    --------
    >>> PythonTokenizer(str.split)("a b").tolist()
    ['a', 'b']
    """

    def __init__(self, tokenizer: Callable[[str], Sequence[str]]):
        if not callable(tokenizer):
            raise ArgumentError(f"PythonTokenizer: expected a function, got {type(tokenizer).__name__}")
        self.tokenizer = tokenizer

    def __call__(self, column: Any) -> np.ndarray:
        return _texts_of("PythonTokenizer", self.tokenizer(_text_of("PythonTokenizer", column)))


# --------------------------------------------------------------------------------------- changes of texts


class CaseFold(Checked):
    """Texts in small letters, with characters of one meaning alike, such as wide ones.

    Examples
    --------
    >>> str(CaseFold()("ABC"))
    'abc'
    """

    def __call__(self, column: Any) -> np.ndarray:
        return _each_text("CaseFold", column, _fold_case)


class NormalizeUTF8(Checked):
    """Texts in a form of Unicode.

    Examples
    --------
    >>> str(NormalizeUTF8()("\u2163"))
    'IV'
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC):
        self._form = normalize_form

    def __call__(self, column: Any) -> np.ndarray:
        return _each_text("NormalizeUTF8", column, self._form._apply)


class RegexReplace(Checked):
    """Texts with matches of a pattern, in the syntax of Python's ``re``, replaced; ``$1`` stands for a group.

    Examples
    --------
    >>> str(RegexReplace("(a)(b)", "$2$1")("abab"))
    'baba'
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True):
        self._pattern = settings.pattern("RegexReplace: pattern", pattern)
        self._text, self._count = re.sub(r"\$(\d+)", r"\\g<\1>", replace.replace("\\", r"\\")), 0 if replace_all else 1

    def __call__(self, column: Any) -> np.ndarray:
        return _each_text("RegexReplace", column, lambda text: self._pattern.sub(self._text, text, self._count))


# --------------------------------------------------------------------------------------- changes of tokens


class Ngram(Checked):
    """Sequences of neighbouring tokens, each joined to one text.

    Parameters
    ----------
    n : int or list of int
        Numbers of tokens in a sequence.
    left_pad, right_pad : (str, int)
        A token and how many times it stands before or after the others; at most ``n - 1`` times.
    separator : str
        Text between the tokens of a sequence.

    Examples
    --------
    >>> Ngram(2, ("_", 1))(["a", "b"]).tolist()
    ['_ a', 'a b']
    """

    def __init__(self, n: int | Sequence[int], left_pad: tuple[str, int] = ("", 0),
                 right_pad: tuple[str, int] = ("", 0), separator: str = " "):
        self._sizes = [n] if isinstance(n, int) else list(n)
        self._pads, self._separator = (left_pad, right_pad), separator
        if not self._sizes or min(self._sizes) < 1 or min(count for _, count in self._pads) < 0:
            raise ArgumentError(f"Ngram: expected positive numbers n and pads that are not negative, got {n}, "
                                f"{left_pad} and {right_pad}")

    def __call__(self, column: Any) -> np.ndarray:
        tokens, sequences = _tokens_of("Ngram", column), []
        for size in self._sizes:
            left, right = ([text] * min(count, size - 1) for text, count in self._pads)
            row = left + tokens + right
            sequences += [self._separator.join(row[at:at + size]) for at in range(len(row) - size + 1)] or [""]
        return np.array(sequences, str)


class SlidingWindow(Checked):
    """The windows of a vector, each a row.

    Examples
    --------
    >>> SlidingWindow(2)([1, 2, 3]).tolist()
    [[1, 2], [2, 3]]
    """

    def __init__(self, width: int, axis: int = 0):
        if width < 1 or axis not in (0, -1):
            raise ArgumentError(f"SlidingWindow: expected a positive width, and the axis 0, got {width} and {axis}")
        self._width = width

    def __call__(self, column: Any) -> np.ndarray:
        values = np.asarray(column)
        if values.ndim != 1:
            raise ArgumentError(f"SlidingWindow: expected a vector, got an array of shape {values.shape}")
        if len(values) < self._width:
            return values[:0]
        return np.lib.stride_tricks.sliding_window_view(values, self._width).copy()


class ToNumber(Checked):
    """Texts as numbers of a dtype.

    Raises
    ------
    ArgumentError
        When called, if a text is no number, or the dtype does not hold it.

    Examples
    --------
    >>> import numpy as np
    >>> ToNumber(np.int8)(["1", "-2"])
    array([ 1, -2], dtype=int8)
    """

    def __init__(self, data_type: TensorDType):
        self._dtype = np.dtype(dtypes.dtype_to_nptype(data_type))
        if self._dtype.kind not in "iu" and not is_numpy_float(self._dtype):
            raise ArgumentError(f"ToNumber: expected a dtype of numbers, got {data_type}")

    def __call__(self, column: Any) -> np.ndarray:
        texts = _texts_of("ToNumber", column)
        convert = float if is_numpy_float(self._dtype) else int
        try:
            with np.errstate(over="raise"):
                numbers = [self._dtype.type(convert(text)) for text in texts.reshape(-1).tolist()]
        except (ValueError, OverflowError, FloatingPointError) as error:
            raise ArgumentError(f"ToNumber: {self._dtype}: {error}") from None
        return np.array(numbers, self._dtype).reshape(texts.shape)


class Truncate(Checked):
    """The first values along the last axis.

    Examples
    --------
    >>> Truncate(2)(["a", "b", "c"]).tolist()
    ['a', 'b']
    """

    def __init__(self, max_seq_len: int):
        if max_seq_len < 1:
            raise ArgumentError(f"Truncate: max_seq_len must be positive, got {max_seq_len}")
        self._length = max_seq_len

    def __call__(self, column: Any) -> np.ndarray:
        values = np.asarray(column)
        return values[..., :self._length]


class TruncateSequencePair(Checked):
    """Two vectors, of which the longer one, or the second, loses its last value until both have at most as many values.

    Examples
    --------
    >>> [each.tolist() for each in TruncateSequencePair(3)([1, 2, 3], [4, 5])]
    [[1, 2], [4]]
    """

    def __init__(self, max_length: int):
        if max_length < 1:
            raise ArgumentError(f"TruncateSequencePair: max_length must be positive, got {max_length}")
        self._length = max_length

    def __call__(self, first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
        first, second = np.asarray(first), np.asarray(second)
        while len(first) + len(second) > self._length:
            if len(first) > len(second):
                first = first[:-1]
            else:
                second = second[:-1]
        return first, second


class AddToken(Checked):
    """Tokens with another one before, or after, those of each row.

    Examples
    --------
    >>> AddToken("[CLS]")(["a"]).tolist()
    ['[CLS]', 'a']
    """

    def __init__(self, token: str, begin: bool = True):
        if not isinstance(token, str):
            raise ArgumentError(f"AddToken: expected text, got {token!r}")
        self._token, self._begin = token, begin

    def __call__(self, column: Any) -> np.ndarray:
        texts = _texts_of("AddToken", column)
        if texts.ndim not in (1, 2):
            raise ArgumentError(f"AddToken: expected a vector or rows of tokens, got shape {texts.shape}")
        token = np.full((*texts.shape[:-1], 1), self._token)
        return np.concatenate([token, texts] if self._begin else [texts, token], -1)


def to_bytes(array: np.ndarray, encoding: str = "utf8") -> np.ndarray:
    """An array of bytes of an array of texts.

    Examples
    --------
    >>> import numpy as np
    >>> to_bytes(np.array(["a"])).tolist()
    [b'a']
    """
    return np.char.encode(_array_of(array), encoding)


def to_str(array: np.ndarray, encoding: str = "utf8") -> np.ndarray:
    """An array of texts of an array of bytes.

    Examples
    --------
    >>> import numpy as np
    >>> to_str(np.array([b"a"])).tolist()
    ['a']
    """
    return np.char.decode(_array_of(array), encoding)


def _array_of(array: object) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"expected an array of NumPy, got {type(array).__name__}")
    return array


name_errors(__name__, globals(), __all__)
