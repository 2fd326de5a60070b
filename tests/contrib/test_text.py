"""Vocabularies: words are counted, numbered, and looked up as vectors."""

from __future__ import annotations

from collections import Counter

import pytest

from opreg import nd, np, util
from opreg.contrib import text
from opreg.contrib.text.embedding import CompositeEmbedding, CustomEmbedding
from opreg.contrib.text.vocab import Vocabulary

LINES = "3 2\na 1 2\n<unk> 9 9\nb 3 4\na 7 7\n"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(LINES)
    with pytest.warns(UserWarning, match="line 5: 'a' already has a vector"):
        return CustomEmbedding(path)


def test_words_are_counted():
    counter = Counter(a=5)
    found = text.utils.count_tokens_from_str("*A*b*\\n*a*", r"\*", r"\\n", to_lower=True, counter_to_update=counter)
    assert found is counter == Counter(a=7, b=1)


@pytest.mark.parametrize("options, expected", [
    ({}, ["<unk>", "d", "b", "c", "a"]), ({"min_freq": 2}, ["<unk>", "d", "b", "c"]),
    ({"most_freq_count": 2}, ["<unk>", "d", "b"]), ({"most_freq_count": 0}, ["<unk>"]),
    ({"reserved_tokens": ["x", "b"], "most_freq_count": 2}, ["<unk>", "x", "b", "d", "c"]),
    ({"unknown_token": "d"}, ["d", "b", "c", "a"]),
])
def test_frequent_words_have_small_numbers(options, expected):
    words = Vocabulary(Counter(c=2, b=2, a=1, d=3), **options)
    assert words.idx_to_token == expected and len(words) == len(expected)
    assert words.to_indices([*expected, "?"]) == [*range(len(expected)), 0]
    assert words.to_tokens(words.to_indices(expected[-1])) == expected[-1]
    assert words.reserved_tokens == options.get("reserved_tokens")


def test_vectors_are_looked_up_and_changed(vectors):
    assert vectors.idx_to_token == ["<unk>", "a", "b"] and vectors.vec_len == 2
    assert vectors.get_vecs_by_tokens("b").asnumpy().tolist() == [3, 4]
    assert vectors.get_vecs_by_tokens(["A", "b"], lower_case_backup=True).asnumpy().tolist() == [[1, 2], [3, 4]]
    vectors.update_token_vectors("a", nd.array([5, 6]))
    vectors.update_token_vectors(["b", "<unk>"], nd.array([[7, 8], [0, 1]]))
    assert vectors.idx_to_vec.asnumpy().tolist() == [[0, 1], [5, 6], [7, 8]]


def test_embeddings_are_concatenated(vectors):
    both = CompositeEmbedding(Vocabulary(Counter("bc"), reserved_tokens=["a"]), [vectors, vectors])
    assert both.idx_to_token == ["<unk>", "a", "b", "c"] and both.reserved_tokens == ["a"]
    assert both.idx_to_vec.asnumpy().tolist() == [[9, 9, 9, 9], [1, 2, 1, 2], [3, 4, 3, 4], [9, 9, 9, 9]]
    known = CompositeEmbedding(Vocabulary(Counter("b"), unknown_token="a"), vectors)
    assert known.idx_to_vec.asnumpy().tolist() == [[9, 9], [3, 4]]  # unknown words have the vector of unknown words


def test_a_vocabulary_chooses_the_vectors(tmp_path):
    (tmp_path / "vectors.txt").write_text("a,1,2\n")
    found = CustomEmbedding(tmp_path / "vectors.txt", ",", init_unknown_vec=nd.ones,
                            vocabulary=Vocabulary(Counter("b")))
    assert found.idx_to_token == ["<unk>", "b"] and found.idx_to_vec.asnumpy().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("lines, words", [
    (b"a\n", "line 1: expected a word"), (b"a 1 2\nb 1 2 3\n", "line 2: expected 2"), (b"3 2\n", "no vectors"),
    (b"a 1 2\nb 1 c\n", "vectors.txt, line 2: could not convert string to float: 'c'"),
    (b"a 1 2\n\xff 1 2\n", "vectors.txt: no text in the encoding 'utf8': ")])
def test_files_that_are_wrong_are_refused(tmp_path, lines, words):
    (tmp_path / "vectors.txt").write_bytes(lines)
    with pytest.raises(text.vocab.TextError, match=words):
        CustomEmbedding(tmp_path / "vectors.txt")


def test_a_missing_file_and_an_unknown_encoding_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.txt"):
        CustomEmbedding(tmp_path / "no.txt")
    (tmp_path / "vectors.txt").write_text("a 1\n")
    with pytest.raises(text.vocab.TextError, match=r"vectors\.txt: there is no encoding 'klingon'"):
        CustomEmbedding(tmp_path / "vectors.txt", encoding="klingon")


@pytest.mark.parametrize("wrong, words", [
    (lambda vectors: Vocabulary(min_freq=0), "at least 1, got 0"), (lambda vectors: Vocabulary("ab"), "got str"),
    (lambda vectors: Vocabulary(reserved_tokens=["<unk>"]), "must be distinct"),
    (lambda vectors: vectors.to_tokens(3), "from 0 to 2, got 3"),
    (lambda vectors: vectors.update_token_vectors("c", nd.ones(2)), "'c' is not in the vocabulary"),
    (lambda vectors: vectors.update_token_vectors("a", nd.ones(3)), r"\(1, 2\), got \(3,\)"),
])
def test_mistakes_with_words_are_refused(vectors, wrong, words):
    with pytest.raises(text.vocab.TextError, match=words):
        wrong(vectors)


def test_vectors_are_arrays_of_np_in_its_scope(vectors):
    with util.np_array(True):
        assert type(vectors.idx_to_vec) is type(vectors.get_vecs_by_tokens(["a"])) is np.ndarray


@pytest.mark.parametrize("name, file", [("glove", "glove.6B.50d.txt"), ("fasttext", "wiki.simple.vec")])
def test_published_vectors_are_read_from_a_local_folder(tmp_path, monkeypatch, name, file):
    """Nothing is downloaded: the error says where to put a file, and the nearest one there."""
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    folder = tmp_path / "embeddings" / name
    assert text.embedding.get_pretrained_file_names(name) == []
    with pytest.raises(text.vocab.TextError, match=f"put {file!r} into .*{name}"):
        text.embedding.create(name, pretrained_file_name=file)
    folder.mkdir(parents=True)
    (folder / file).write_text("a 1 2\nb 3 4\n")
    assert text.embedding.get_pretrained_file_names()[name] == [file]
    with pytest.raises(text.vocab.TextError, match=f"Did you mean '{file}'"):
        text.embedding.create(name, pretrained_file_name=file + "x")
    for root in (None, folder.parent):
        more = {} if root is None else {"embedding_root": root}
        found = text.embedding.create(name.upper(), pretrained_file_name=file, **more,
                                      vocabulary=Vocabulary(Counter("bb")))
        assert found.get_vecs_by_tokens("b").asnumpy().tolist() == [3, 4] and len(found) == 2


def test_embeddings_of_users_are_made_by_their_names(tmp_path):
    @text.embedding.register
    class _ExampleEmbedding(CustomEmbedding):
        pass

    (tmp_path / "vectors.txt").write_text("a 1 2\n")
    made = text.embedding.create("_exampleembedding", pretrained_file_path=tmp_path / "vectors.txt")
    assert isinstance(made, _ExampleEmbedding)
    with pytest.raises(KeyError, match=r"no embedding 'glov'\. Did you mean 'glove'"):
        text.embedding.get_pretrained_file_names("glov")
