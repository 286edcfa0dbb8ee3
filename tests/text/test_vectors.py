import gzip
import time
from pathlib import Path

import numpy as np
import pytest

from infocal.errors import DataError
from infocal.text.vectors import read_vectors

GLOVE = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "glove-100d.txt.gz"


@pytest.fixture
def file(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


GLOVE_TEXT = "the 0.1 -2 3e-1\n. . . 1 2 3\nThe 9 9 9\nné 4 5 6\n"


def test_glove(file):
    vectors = read_vectors(file(GLOVE_TEXT))
    assert vectors.words == ["the", ". . .", "né"]
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_allclose(vectors.matrix, [[0.1, -2, 0.3], [1, 2, 3], [4, 5, 6]], rtol=1e-6)


def test_word2vec_with_header_trailing_spaces_tabs_and_crlf(file):
    vectors = read_vectors(file("3 2\na 1 2 \r\nb\t3\t4\r\n\r\nc  5 6\n"))
    assert vectors.words == ["a", "b", "c"]
    assert vectors.matrix.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_gzip_is_known_by_its_bytes(file):
    packed = gzip.compress(GLOVE_TEXT.encode())
    for name in ("a.txt", "a.gz", "a.txt.gz"):
        assert read_vectors(file(packed, name)).words == ["the", ". . .", "né"]
    assert read_vectors(file(GLOVE_TEXT, "plain.gz")).words[0] == "the"


def test_wanted_and_limit(file):
    path = file(GLOVE_TEXT)
    assert read_vectors(path, wanted=lambda word: word == "né").matrix.tolist() == [[4, 5, 6]]
    assert read_vectors(path, limit=1).words == ["the"]
    assert read_vectors(path, wanted=lambda word: False).matrix.shape == (0, 3)


def test_broken_utf8_in_a_word_does_no_harm(file):
    assert read_vectors(file(b"a 1 2\n\xff\xfe 3 4\nb 5 6\n")).words[::2] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a 1 2\nb 1\nc 3 4\n", "line 2: 1 numbers.*'b 1'.*allowed: a word and 2 numbers"),
        ("a 1 2\nb 1 2 3\nc 3 4\n", "line 2: 3 numbers"),
        ("2 3\na 1 2\n", "line 2: 2 numbers.*3 numbers"),
        ("a 1 2\nb 1 x\n", "line 2: 'x' for 'b'; allowed: 2 finite numbers"),
        ("a 1 2\nb 1 nan\n", "line 2: 'nan' for 'b'"),
        ("a 1 2\nb 1 inf\n", "line 2: 'inf' for 'b'"),
        ("a 1 2\nb 1 1e60\n", "line 2: '1e60' for 'b'"),
        ("a 1 2\nb 1 1_0\n", "line 2: '1_0' for 'b'"),
        ("a\nb\n", "line 1: no numbers"),
    ],
)
def test_bad_files(file, content, message):
    path = file(content)
    with pytest.raises(DataError, match=message) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)


def test_missing_and_truncated_files(file, tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_vectors(tmp_path / "none.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(file(gzip.compress(GLOVE_TEXT.encode() * 1000)[:-20]))
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(tmp_path)


@pytest.mark.skipif(not GLOVE.exists(), reason="the shared GloVe vectors are not here")
def test_real_glove_is_read_quickly():
    start = time.process_time()
    vectors = read_vectors(GLOVE)
    assert time.process_time() - start < 5
    assert vectors.matrix.shape[1] == 100
    assert len(vectors.words) == len(set(vectors.words)) == len(vectors.matrix) > 59_000
    assert "the" in vectors.words
