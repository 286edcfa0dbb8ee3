"""The reader of Lei's beer reviews: tokens and marks arrive exactly, broken lines say where and why."""

import gzip
import json

import pytest

from infocal.data.beer import first_tokens, read_annotations, read_reviews, review_file
from infocal.data.records import BadRows
from infocal.errors import DataError
from infocal.text.segmentation import whitespace
from infocal.types import Document

TOKENS = ["pours", "a\xa0b", "n't", ".", "smells", "of", "hops", "."]
GOOD = {"x": TOKENS, "y": [0.8, 0.4, 1.0], "0": [[0, 4]], "1": [[6, 7], [4, 6]], "2": [], "raw": "Pours ..."}


@pytest.fixture
def written(tmp_path):
    def write(content, name="reviews.aspect0.train.txt.gz"):
        path = tmp_path / name
        raw = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def annotations(written, *records):
    return written("".join(json.dumps(record) + "\n" for record in records), "annotations.json")


def test_file_names_are_those_of_the_release():
    assert review_file("appearance", "train") == "reviews.aspect0.train.txt.gz"
    assert review_file("palate", "heldout") == "reviews.aspect2.heldout.txt.gz"


@pytest.mark.parametrize(("aspect", "rating"), [("appearance", 0.6), ("smell", 0.8), ("palate", 1.0)])
def test_reviews_have_the_rating_of_the_aspect_and_every_token(written, aspect, rating):
    text = "  ".join(TOKENS)
    path = written(f"0.6 0.8 1 0.2 0.4\t{text}\n\n.5 .5 .5 .5 .5\t \n0 0 0 0 0\tflat\n")
    first, last = read_reviews(path, aspect, bad_rows=BadRows())
    assert first.label == rating
    assert [first.text[start:end] for start, end in whitespace(first.text)] == TOKENS
    assert (last.text, last.label, last.line) == ("flat", 0.0, 4)


def test_reviews_can_be_cut(written):
    (document,) = read_reviews(written("1 1 1\ta b c d\n"), "smell", bad_rows=BadRows(), most_tokens=2)
    assert document.text == "a b"


def test_marked_tokens_are_character_ranges_of_the_joined_text(written):
    path = annotations(written, GOOD)
    marked = {}
    for aspect in ("appearance", "smell", "palate"):
        (document,) = read_annotations(path, aspect, bad_rows=BadRows())
        assert document.text == " ".join(TOKENS)
        marked[aspect] = [document.text[start:end] for start, end in document.rationale]
    assert marked == {"appearance": ["pours a\xa0b n't ."], "smell": ["smells of hops"], "palate": []}
    assert document.label == 1.0


def test_intervals_are_half_open_and_empty_ones_mark_nothing(written):
    path = annotations(written, GOOD | {"0": [[7, 8], [2, 2], [0, 1]]})
    (document,) = read_annotations(path, "appearance", bad_rows=BadRows())
    assert [document.text[start:end] for start, end in document.rationale] == ["pours", "."]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("0.5 0.5 0.5 no tab here", "there is no tab"),
        ("0.5 1.5 0.5\tfine", "the rating is '1.5'"),
        ("0.5 good 0.5\tfine", "the rating is 'good'"),
        ("0.5 nan 0.5\tfine", "the rating is 'nan'"),
        ("0.5\tfine", "1 ratings, none for smell"),
        (b"0.5 0.5 0.5\tb\xe4d", "byte 0xe4"),
    ],
)
def test_broken_review_lines_name_file_line_and_what_is_allowed(written, line, found):
    raw = line if isinstance(line, bytes) else line.encode()
    path = written(b"1 1 1\tfine\n" + raw + b"\n")
    with pytest.raises(DataError, match=found) as caught:
        list(read_reviews(path, "smell", bad_rows=BadRows()))
    assert f"{path}, line 2: " in str(caught.value)
    assert "; allowed: " in str(caught.value)
    bad_rows = BadRows(skip=True)
    assert len(list(read_reviews(path, "smell", bad_rows=bad_rows))) == 1
    assert bad_rows.count == 1


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"x": "a text"}, "'x' holds 'a text'"),
        ({"x": ["two words"]}, "'x' holds 'two words'"),
        ({"x": ["", "a"]}, "'x' holds ''"),
        ({"x": []}, r"'x' holds \[\]"),
        ({"y": 0.5}, "'y' is 0.5"),
        ({"y": [0.5]}, "1 ratings, none for smell"),
        ({"y": [True, 0.5]}, "the rating is True"),
        ({"1": [[2, 9]]}, r"hold \[2, 9\]"),
        ({"1": [[3, 2]]}, r"hold \[3, 2\]"),
        ({"1": [3]}, "hold 3"),
        ({"1": None}, "is None"),
    ],
)
def test_broken_annotations_name_file_line_and_what_is_allowed(written, change, found):
    path = annotations(written, GOOD, GOOD | change)
    with pytest.raises(DataError, match=found) as caught:
        list(read_annotations(path, "smell", bad_rows=BadRows()))
    assert f"{path}, line 2: " in str(caught.value)
    assert "; allowed: " in str(caught.value)


@pytest.mark.parametrize("line", ["{", "[1]", '{"x": ["a"]}', '{"x": ["a"], "y": [1, 1, 1], "0": []}'])
def test_lines_that_are_no_annotation(written, line):
    path = written(line + "\n", "annotations.json")
    with pytest.raises(DataError, match="line 1"):
        list(read_annotations(path, "smell", bad_rows=BadRows()))


@pytest.mark.parametrize("read", [read_reviews, read_annotations])
def test_missing_and_empty_files(written, tmp_path, read):
    with pytest.raises(DataError, match="no such file"):
        list(read(tmp_path / "none.txt.gz", "smell", bad_rows=BadRows()))
    with pytest.raises(DataError, match="holds no review"):
        list(read(written("\n"), "smell", bad_rows=BadRows()))


def test_cutting_a_document_cuts_its_marks():
    document = Document("a bb ccc d", 0.5, ((0, 1), (2, 8), (9, 10)), 3)
    assert first_tokens(document, 4) == document
    assert first_tokens(document, 2) == Document("a bb", 0.5, ((0, 1), (2, 4)), 3)
    assert first_tokens(document, 1) == Document("a", 0.5, ((0, 1),), 3)
