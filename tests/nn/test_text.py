"""``opreg.dataset.text``: results equal those of MindSpore 2.10, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opreg.dataset import text

import opreg as ms
from opreg import dataset as ds
from opreg.errors import ArgumentError
from tests.questions import of_each

A = np.array
NF = text.NormalizeForm


def _letters() -> text.Vocab:
    return text.Vocab.from_list(["a", "b", "c", "[UNK]"], special_tokens=["<pad>"], special_first=True)


PIECES = text.Vocab.from_list(["un", "##aff", "##able", "[UNK]", "i", "am", "mak", "##ing", "small", "我", "最", "喜",
                               "hello", "##s"])


def _rows(*texts: Any, **columns: Any) -> ds.Dataset:
    return ds.NumpySlicesDataset(columns or {"text": list(texts)}, shuffle=False)


def _counted(dataset: ds.Dataset, *given: Any, **settings: Any) -> dict[str, int]:
    return text.Vocab.from_dataset(dataset, *given, **settings).vocab()


#: An operation's result, and that of MindSpore.
RESULTS: dict[str, tuple[Any, Any]] = {
    "list": (_letters().vocab(), {"<pad>": 0, "a": 1, "b": 2, "c": 3, "[UNK]": 4}),
    "special last": (text.Vocab.from_list(["a", "b"], ["<p>", "<u>"], False).vocab(),
                     {"a": 0, "b": 1, "<p>": 2, "<u>": 3}),
    "dict": (text.Vocab.from_dict({"a": 3, "b": 3}).vocab(), {"a": 3, "b": 3}),
    "number": (_letters().tokens_to_ids("a"), 1),
    "numbers": (_letters().tokens_to_ids(["a", "q"]), [1, -1]),
    "numbers of an array": (_letters().tokens_to_ids(A(["a", "q"])), [1, -1]),
    "no numbers": (_letters().tokens_to_ids([]), []),
    "token": (_letters().ids_to_tokens(1), "a"),
    "tokens": (_letters().ids_to_tokens([1, 77]), ["a", ""]),
    "no tokens": (_letters().ids_to_tokens([]), []),
    "lookup": (text.Lookup(_letters())("a"), ("<i4", 1)),
    "lookup of rows": (text.Lookup(_letters(), "[UNK]", ms.int64)(A([["a", "q"], ["b", "c"]])),
                       ("<i8", [[1, 4], [2, 3]])),
    "lookup in floats": (text.Lookup(_letters(), "[UNK]", ms.float32)(["a", "q"]), ("<f4", [1, 4])),
    "words": (text.WhitespaceTokenizer()("Welcome  to Beijing!"), ("<U8", ["Welcome", "to", "Beijing!"])),
    "no words": (text.WhitespaceTokenizer()("   "), ("<U1", [""])),
    "offsets": (text.WhitespaceTokenizer(True)(" 北京  a\tb\n"),
                (("<U2", ["北京", "a", "b"]), ("<u4", [1, 9, 11]), ("<u4", [7, 10, 12]))),
    "no offsets": (text.WhitespaceTokenizer(with_offsets=True)(""), (("<U1", [""]), ("<u4", [0]), ("<u4", [0]))),
    "characters": (text.UnicodeCharTokenizer(True)("北京 a"),
                   (("<U1", ["北", "京", " ", "a"]), ("<u4", [0, 3, 6, 7]), ("<u4", [3, 6, 7, 8]))),
    "basic": (text.BasicTokenizer()(" Hello, 世界 World! a_b café  $x "),
              ("<U5", ["Hello", ",", "世", "界", "World", "!", "a", "_", "b", "café", "$", "x"])),
    "basic, spaces": (text.BasicTokenizer(True, True)("Hello,  世界 A"),
                      ("<U5", ["hello", ",", "  ", "世", "界", " ", "a"])),
    "basic, form": (text.BasicTokenizer(False, False, NF.NFKC)("Ⅳ ﬁ a"), ("<U2", ["IV", "fi", "a"])),
    "basic, unused": (text.BasicTokenizer(False, False, NF.NONE, False)("[UNK] a"), ("<U3", ["[", "UNK", "]", "a"])),
    "basic, offsets": (text.BasicTokenizer(True, False, NF.NONE, True, True)("Hé, 世b"),
                       (("<U2", ["he", ",", "世", "b"]), ("<u4", [0, 2, 4, 7]), ("<u4", [2, 3, 7, 8]))),
    "basic, control": (text.BasicTokenizer()("\x00a\ufffdb\u200bc\td"), ("<U3", ["a\ufffdb", "c", "d"])),
    "pieces": (text.WordpieceTokenizer(PIECES)(["unaffable", "xyz", "i", "making", "hellos", ""]),
               ("<U6", ["un", "##aff", "##able", "[UNK]", "i", "mak", "##ing", "hello", "##s"])),
    "unknown pieces": (text.WordpieceTokenizer(PIECES, unknown_token="")(["xyz", "unxyz"]), ("<U5", ["xyz", "unxyz"])),
    "long pieces": (text.WordpieceTokenizer(PIECES, max_bytes_per_token=4)(["unaffable", "我我"]),
                    ("<U5", ["[UNK]", "[UNK]"])),
    "pieces with offsets": (text.WordpieceTokenizer(PIECES, with_offsets=True)("unaffable"),
                            (("<U6", ["un", "##aff", "##able"]), ("<u4", [0, 2, 5]), ("<u4", [2, 5, 9]))),
    "bert": (text.BertTokenizer(PIECES, lower_case=True)("I am making 我最喜 unaffable, hellos"),
             ("<U6", ["i", "am", "mak", "##ing", "我", "最", "喜", "un", "##aff", "##able", "[UNK]", "hello", "##s"])),
    "bert, offsets": (text.BertTokenizer(PIECES, lower_case=True, with_offsets=True)("I am mak我最"),
                      (("<U3", ["i", "am", "mak", "我", "最"]), ("<u4", [0, 2, 5, 8, 11]), ("<u4", [1, 4, 8, 11, 14]))),
    "bert, spaces": (text.BertTokenizer(PIECES, lower_case=True, keep_whitespace=True)("I  am"),
                     ("<U5", ["i", "[UNK]", "am"])),
    "case": (text.CaseFold()("Welcome ßÀ"), ("<U11", "welcome ssà")),
    "case of wide letters": (text.CaseFold()(["您！", "ＡＢ", "Ⅳ", "a\u00adb"]), ("<U2", ["您!", "ab", "iv", "ab"])),
    "basic, wide": (text.BasicTokenizer(True)("您！ Ｂé"), ("<U2", ["您", "!", "be"])),
    "cases": (text.CaseFold()(["A", "B"]), ("<U1", ["a", "b"])),
    "NFKC": (text.NormalizeUTF8()("ﬁⅣ"), ("<U4", "fiIV")),
    "NFD": (text.NormalizeUTF8(NF.NFD)("é"), ("<U2", "e\u0301")),
    "replace": (text.RegexReplace("\\s+", "_")("a  b c"), ("<U5", "a_b_c")),
    "replace once": (text.RegexReplace("\\s+", "_", False)("a  b c"), ("<U5", "a_b c")),
    "replace by groups": (text.RegexReplace("(a)(b)", "$2$1")("abab"), ("<U4", "baba")),
    "parts": (text.RegexTokenizer("\\s+", "\\s+")("a  b c"), ("<U2", ["a", "  ", "b", " ", "c"])),
    "parts with offsets": (text.RegexTokenizer("\\s+", "", True)(" 北 b"),
                           (("<U1", ["北", "b"]), ("<u4", [1, 5]), ("<u4", [4, 6]))),
    "ngrams": (text.Ngram([1, 2], ("_", 1), ("_", 1))(["a", "b"]), ("<U3", ["a", "b", "_ a", "a b", "b _"])),
    "ngrams of pads": (text.Ngram(3, ("<", 5), (">", 2))(["a"]), ("<U5", ["< < a", "< a >", "a > >"])),
    "no ngrams": (text.Ngram([3, 1, 4])(["a", "b"]), ("<U1", ["", "a", "b", ""])),
    "windows": (text.SlidingWindow(2, -1)(A([1, 2, 3])), ("<i8", [[1, 2], [2, 3]])),
    "no windows": (text.SlidingWindow(5)(A([1, 2, 3])), ("<i8", [])),
    "integers": (text.ToNumber(ms.int8)(["1", "-2"]), ("|i1", [1, -2])),
    "float": (text.ToNumber(ms.float32)("1.5"), ("<f4", 1.5)),
    "truncated": (text.Truncate(2)(A([[1, 2, 3]])), ("<i8", [[1, 2]])),
    "pair": (text.TruncateSequencePair(2)(A(["a", "b", "c"]), A(["d", "e"])), (("<U1", ["a"]), ("<U1", ["d"]))),
    "pair of one": (text.TruncateSequencePair(3)(A([1, 2]), A([3, 4])), (("<i8", [1, 2]), ("<i8", [3]))),
    "token before": (text.AddToken("T")([["a", "b"], ["c", "d"]]), ("<U1", [["T", "a", "b"], ["T", "c", "d"]])),
    "token behind": (text.AddToken("T", False)(["a", "b"]), ("<U1", ["a", "b", "T"])),
    "bytes": (text.to_bytes(A(["a", "b"])), ("|S1", [b"a", b"b"])),
    "text": (text.to_str(A([b"a", b"bc"])), ("<U2", ["a", "bc"])),
    "counted": (_counted(_rows(*"baccbc"), "text"), {"c": 0, "b": 1, "a": 2}),
    "counted, chosen": (_counted(_rows(*"baccbc"), ["text"], (2, None), 1, ["<p>"], False), {"c": 0, "<p>": 1}),
    "counted in a range": (_counted(_rows(*"badccbc"), "text", freq_range=(1, 2), top_k=10, special_tokens=["<p>"]),
                           {"<p>": 0, "b": 1, "a": 2, "d": 3}),
    "counted in all columns": (_counted(_rows(a=["b", "a"], b=["c", "a"])), {"a": 0, "b": 1, "c": 2}),
}


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else \
        (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else value


@of_each(RESULTS)
def test_results_are_those_of_mindspore(case):
    found, expected = RESULTS[case]
    assert _plain(found) == expected


def test_words_of_bert_stay_whole_in_small_letters():
    """MindSpore 2.10 repeats the text before each such word."""
    assert text.BasicTokenizer(True)("Hi, CAFÉ [UNK] [unk] [CLS]x").tolist() == [
        "hi", ",", "cafe", "[UNK]", "[", "unk", "]", "[CLS]", "x"]


def test_operations_are_steps_of_a_pipeline():
    split = _rows("a b", "c").map(text.WhitespaceTokenizer(True), "text", ["token", "begin", "end"])
    numbers = split.map(text.Lookup(_letters(), "[UNK]"), "token")
    assert [{name: value.tolist() for name, value in row.items()} for row in numbers.create_dict_iterator(1, True)] == [
        {"token": [1, 2], "begin": [0, 2], "end": [1, 3]}, {"token": [3], "begin": [0], "end": [1]}]
    words = _rows("a b").map([text.PythonTokenizer(str.split), text.AddToken("T")], "text")
    assert [row[0].tolist() for row in words.create_tuple_iterator(output_numpy=True)] == [["T", "a", "b"]]


def test_a_vocabulary_is_read_from_a_file(tmp_path: Path):
    file = tmp_path / "v.txt"
    file.write_text("apple,x\nbanana, 3\n cat \n", encoding="utf-8")
    assert text.Vocab.from_file(str(file)).vocab() == {"apple,x": 0, "banana, 3": 1, " cat ": 2}
    assert text.Vocab.from_file(str(file), ",", 2, ["<u>"], False).vocab() == {"apple": 0, "banana": 1, "<u>": 2}
    for given, message in (({"vocab_size": -2}, "must be positive"), ({"file_path": str(tmp_path / "none")}, "none")):
        with pytest.raises(ArgumentError, match=message):
            text.Vocab.from_file(**{"file_path": str(file), **given})


def test_lines_of_files_are_rows(tmp_path: Path):
    """As in MindSpore, empty lines are none, and files come in the order of their names."""
    (tmp_path / "l1.txt").write_bytes(b"one two\n\n  three \r\nfour")
    (tmp_path / "l2.txt").write_bytes("五 六\n\n".encode())
    for given, lines in (([tmp_path / "l2.txt", tmp_path / "l1.txt"], ["one two", "  three \r", "four", "五 六"]),
                         (str(tmp_path / "l2*"), ["五 六"])):
        dataset = ds.TextFileDataset(given, shuffle=False)
        assert [str(row[0]) for row in dataset.create_tuple_iterator(output_numpy=True)] == lines
        assert dataset.get_col_names() == ["text"] and len(dataset) == len(lines)
    assert len(ds.TextFileDataset(str(tmp_path / "l*"), 2, shuffle=ds.Shuffle.GLOBAL)) == 2
    with pytest.raises(ArgumentError, match="TextFileDataset: The following patterns did not match any files"):
        ds.TextFileDataset(tmp_path / "none")


@pytest.mark.parametrize("call, message", [
    (lambda: text.Vocab.from_list(["a", "a"]), "'a' is there more than once"),
    (lambda: text.Vocab.from_list(["a"], ["a"]), "more than once"),
    (lambda: text.Vocab.from_list([1]), "^Vocab.from_list: .*expected a list of names"),
    (lambda: text.Vocab.from_dict({"b": -1}), "got -1 for 'b'"), (lambda: _letters().tokens_to_ids(3), "expected text"),
    (lambda: _letters().ids_to_tokens(-1), "not negative"), (lambda: _letters().ids_to_tokens("a"), "got 'a'"),
    (lambda: _counted(_rows(a=[1, 2])), "expected text"), (lambda: _counted(_rows("x"), "q"), "no column 'q'"),
    (lambda: _counted(_rows("x"), freq_range=(3, 1)), "two rising numbers"),
    (lambda: text.Lookup(_letters())("q"), "'q' is not in the vocabulary"), (lambda: text.Lookup(3), "a Vocab"),
    (lambda: text.Lookup(_letters(), "no"), "unknown_token 'no'"), (lambda: text.BertTokenizer({}), "a Vocab"),
    (lambda: text.WhitespaceTokenizer()(3), "expected text"), (lambda: text.CaseFold()([1]), "expected text"),
    (lambda: text.WhitespaceTokenizer()(["a"]), "expected one text"), (lambda: text.PythonTokenizer(3), "a function"),
    (lambda: text.RegexReplace("[^a", "_"), "expected a regular expression"), (lambda: text.Ngram(0), "positive"),
    (lambda: text.RegexTokenizer(r"\p{P}"), "expected a regular expression"), (lambda: text.Ngram([]), "positive"),
    (lambda: text.Ngram(2, ("a", -1)), "not negative"), (lambda: text.Ngram(2)("a"), "a vector of tokens"),
    (lambda: text.SlidingWindow(0), "positive width"), (lambda: text.SlidingWindow(2)([[1]]), "a vector"),
    (lambda: text.ToNumber(ms.int8)(["300"]), "int8"), (lambda: text.ToNumber(ms.int32)(["1.7"]), "1.7"),
    (lambda: text.ToNumber(ms.uint8)(["-1"]), "uint8"), (lambda: text.ToNumber(ms.float16)(["1e10"]), "overflow"),
    (lambda: text.ToNumber(ms.string), "dtype of numbers"), (lambda: text.ToNumber(ms.int8)([1]), "expected text"),
    (lambda: text.Truncate(0), "must be positive"), (lambda: text.TruncateSequencePair(0), "must be positive"),
    (lambda: text.AddToken(3), "expected text"), (lambda: text.AddToken("T")("a"), "a vector or rows"),
    (lambda: text.to_bytes(["a"]), "array of NumPy"), (lambda: text.to_str(["a"]), "array of NumPy")])
def test_mistakes_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
