import gzip
import json
import sys

import numpy as np
import pytest

from infocal.data.readers import BadRows, documents_from, read_documents
from infocal.errors import DataError, MissingExtraError
from infocal.types import Document

ROWS = [
    {"text": "good beer, really", "label": "good", "rationale": [[5, 9], [0, 4]]},
    {"text": 'a "quoted"\nnew line\r\nand more', "label": "bad", "rationale": []},
    {"text": "名酒 😀 é", "label": "good"},
]
EXPECTED = [
    ("good beer, really", "good", ((0, 4), (5, 9))),
    ('a "quoted"\nnew line\r\nand more', "bad", ()),
    ("名酒 😀 é", "good", None),
]


def as_csv(rows, delimiter=","):
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["text", "label", "rationale"])
    for row in rows:
        gold = row.get("rationale")
        writer.writerow([row["text"], row["label"], "" if gold is None else json.dumps(gold)])
    return stream.getvalue().encode()


def as_json(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def file(tmp_path):
    def write(content, name="data.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, skip=False, **settings):
    return list(read_documents(path, bad_rows=BadRows(skip=skip), **settings))


def parts(documents):
    return [(document.text, document.label, document.rationale) for document in documents]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("suffix", "content", "lines"),
    [
        (".csv", as_csv(ROWS), [2, 3, 6]),
        (".tsv", as_csv(ROWS, "\t"), [2, 3, 6]),
        (".jsonl", as_json(ROWS), [1, 2, 3]),
        (".ndjson", as_json(ROWS), [1, 2, 3]),
        (".json", as_json(ROWS), [1, 2, 3]),
    ],
)
def test_formats(file, suffix, content, lines, packed):
    path = file(gzip.compress(content) if packed else content, f"Data{suffix}{'.gz' if packed else ''}")
    documents = read(path)
    assert parts(documents) == EXPECTED
    assert [document.line for document in documents] == lines


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    path = tmp_path / "data.parquet"
    table = pyarrow.table(
        {
            "text": [row["text"] for row in ROWS],
            "label": [row["label"] for row in ROWS],
            "rationale": [row.get("rationale") for row in ROWS],
            "meta": [{"score": 0.5}] * 3,
            "a.b": [1, 2, 3],
        }
    )
    parquet.write_table(table, path)
    documents = read(path)
    assert parts(documents) == EXPECTED
    assert [document.line for document in documents] == [1, 2, 3]
    assert [document.label for document in read(path, label="meta.score")] == [0.5] * 3
    assert [document.label for document in read(path, label="a.b")] == [1, 2, 3]
    with pytest.raises(DataError, match=r"no column 'stars'.*'text', 'label', 'rationale', 'meta', 'a.b'"):
        read(path, label="stars")


def test_parquet_that_is_not(file):
    with pytest.raises(DataError, match="not readable Parquet"):
        read(file("text,label\n", "data.parquet"))


def test_parquet_without_pyarrow(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"infocal\[parquet\]"):
        read(file("", "data.parquet"))


def test_reading_is_a_stream(file):
    content = as_json(ROWS[:1]) + b"{broken\n"
    documents = read_documents(file(content), bad_rows=BadRows(skip=False))
    assert next(documents).label == "good"
    with pytest.raises(DataError, match="line 2"):
        next(documents)


def test_dotted_names(file):
    rows = [
        {"text": "x", "meta": {"accusation": ["theft"], "deep": {"n": 3}}},
        {"text": "x", "meta": {"accusation": ["fraud"], "deep": {"n": 4}}, "meta.accusation": "literal"},
    ]
    path = file(as_json(rows))
    assert [document.label for document in read(path, label="meta.accusation")] == ["theft", "literal"]
    assert [document.label for document in read(path, label="meta.accusation.0")] == ["theft", "fraud"]
    assert [document.label for document in read(path, label="meta.deep.n")] == [3, 4]
    with pytest.raises(DataError, match=r"no column 'meta.none'.*'text', 'meta'"):
        read(path, label="meta.none")


def test_label_types_are_kept(file):
    rows = [{"text": "x", "label": value} for value in (3, 0.5, True, " name ")]
    labels = [document.label for document in read(file(as_json(rows)))]
    assert labels == [3, 0.5, True, "name"] and type(labels[2]) is bool


def test_byte_order_mark_blank_lines_and_old_line_ends(file):
    assert parts(read(file(b"\xef\xbb\xbftext,label\r\nx,a\r\n\r\ny,b\r\n", "a.csv"))) == [
        ("x", "a", None),
        ("y", "b", None),
    ]
    documents = read(file(b"text,label\rx,a\ry,b\r", "b.csv"))
    assert [(document.text, document.line) for document in documents] == [("x", 2), ("y", 3)]
    assert read(file(b'\xef\xbb\xbf{"text": "x", "label": 1}\r\n\r\n'))[0].text == "x"


def test_semicolons_where_there_is_no_comma(file):
    assert parts(read(file("text;label\nwell, yes;a\n", "a.csv"))) == [("well, yes", "a", None)]


def test_a_very_long_field(file):
    text = "word " * 60_000
    assert read(file(f"text,label\n{text},a\n", "a.csv"))[0].text == text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "\n\n", "the file is empty"),
        ("a.csv", "text,label\n", "holds no document"),
        ("a.jsonl", "", "holds no document"),
        ("a.csv", "text,label,text\nx,a,y\n", "line 1: the header names a column twice: 'text'"),
        ("a.csv", "body,label\nx,a\n", "no column 'text'; the columns are 'body', 'label'; .*--text NAME"),
        ("a.csv", "text,stars\nx,a\n", "no column 'label'; the columns are 'text', 'stars'; .*--label NAME"),
        ("a.csv", b"te\xffxt,label\nx,a\n", "line 1: byte 0xff at position 2"),
        ("a.xlsx", "x", r"ends in '\.xlsx'; allowed: \.csv, \.tsv, \.jsonl, \.ndjson, \.json, \.parquet"),
        ("a.json", '[\n{"text": "x"}]', "one JSON array; allowed: one JSON object a line"),
        ("a.json", '[{"text": "x", "label": 1}]', "one JSON array"),
        ("a.csv", "text,label\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_files_that_cannot_be_used(file, name, content, message):
    path = file(content, name)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(DataError):
        read(path, skip=True)


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: there is no such file"):
        read(tmp_path / "none.csv")


def test_truncated_gzip(file):
    with pytest.raises(DataError, match="cannot be read"):
        read(file(gzip.compress(as_json(ROWS * 200))[:-12], "a.jsonl.gz"))


BAD_CSV = [
    (b"x\n", "1 fields, the first 'x'; allowed: 2 fields"),
    (b"x,a,b\n", "3 fields"),
    (b'"  ",a\n', "the text is empty: '  '"),
    (b"x,\n", "the label is empty; allowed: one class"),
    (b"x,NaN\n", "the label is 'NaN'"),
    (b"x,-inf\n", "the label is '-inf'"),
    (b"caf\xe9,a\n", "byte 0xe9 at position 3 of the line is not UTF-8"),
    (b"x\0y,a\n", "a NUL byte at position 1"),
]


@pytest.mark.parametrize(("row", "message"), BAD_CSV)
def test_bad_csv_rows(file, row, message):
    path = file(b'text,label\n"one\ntwo",a\n' + row + b"three,b\n", "a.csv")
    with pytest.raises(DataError, match=f"line 4: {message}") as caught:
        read(path)
    assert str(path) in str(caught.value)
    bad_rows = BadRows(skip=True)
    documents = list(read_documents(path, bad_rows=bad_rows))
    assert [(document.text, document.line) for document in documents] == [("one\ntwo", 2), ("three", 5)]
    assert bad_rows.count == 1


def test_bad_utf8_within_a_quoted_field_costs_that_row_alone(file):
    path = file(b'text,label\nx,a\n"one\n\xff\ntwo",b\ny,c\n', "a.csv")
    bad_rows = BadRows(skip=True)
    documents = list(read_documents(path, bad_rows=bad_rows))
    assert [(document.text, document.line) for document in documents] == [("x", 2), ("y", 6)]
    assert bad_rows.count == 1 and bad_rows.examples[0].line == 4


BAD_JSON = [
    (b'{"text": "x", "label": NaN}', "the label is nan"),
    (b'{"text": "x", "label": Infinity}', "the label is inf"),
    (b'{"text": "x", "label": null}', "the label is empty"),
    (b'{"text": "x", "label": ""}', "the label is empty"),
    (b'{"text": "x", "label": ["a", "b"]}', r"the label is \['a', 'b'\]"),
    (b'{"text": "x"}', "no column 'label'; the columns are 'text'"),
    (b'{"label": "a"}', "no column 'text'"),
    (b'{"text": 3, "label": "a"}', "the text is 3; allowed: a string"),
    (b'{"text": null, "label": "a"}', "the text is None"),
    (b'{"text": " \\n\\t\\u3000", "label": "a"}', "the text is empty"),
    (b'{"text": "a\\ud800", "label": "a"}', r"lone surrogate U\+D800 at 1"),
    (b'{"text": "a\\u0000", "label": "a"}', "NUL character at 1"),
    (b'{"text": "x", ', r"the line is no usable JSON \(.*at column 14\)"),
    (b'{"text": "x", "label": "a", "text": "y"}', r"\(a name stands twice in it: 'text'\)"),
    (b"[1, 2]", r"not a JSON object but \[1, 2\]"),
    (b'"text"', "not a JSON object but 'text'"),
    (b'{"text": "\xff", "label": "a"}', "byte 0xff at position 10"),
    (b'{"text": "abc", "label": "a", "rationale": [[0, 4]]}', r"the rationale holds \[0, 4\].*end <= 3"),
    (b'{"text": "abc", "label": "a", "rationale": [[-1, 2]]}', "the rationale holds"),
    (b'{"text": "abc", "label": "a", "rationale": [[2, 2]]}', "the rationale holds"),
    (b'{"text": "abc", "label": "a", "rationale": [[0, 1.0]]}', "the rationale holds"),
    (b'{"text": "abc", "label": "a", "rationale": [[0, true]]}', "the rationale holds"),
    (b'{"text": "abc", "label": "a", "rationale": [0, 1]}', "the rationale holds 0"),
    (b'{"text": "abc", "label": "a", "rationale": "because"}', "the rationale is 'because'"),
    (b'{"text": "abc", "label": "a", "rationale": {"start": 0}}', "the rationale is {"),
]


@pytest.mark.parametrize(("row", "message"), BAD_JSON)
def test_bad_json_rows(file, row, message):
    path = file(b'{"text": "one", "label": "a"}\n' + row + b'\n{"text": "three", "label": "b"}\n')
    with pytest.raises(DataError, match=f"line 2: .*{message}"):
        read(path)
    bad_rows = BadRows(skip=True)
    documents = list(read_documents(path, bad_rows=bad_rows))
    assert [document.text for document in documents] == ["one", "three"]
    assert bad_rows.count == 1


@pytest.mark.parametrize("row", ['"never closed,a', 'three,"a'])
def test_a_quotation_mark_that_is_never_closed_swallows_nothing_in_silence(file, row):
    path = file(f"text,label\none,a\n{row}\nfour,b\nfive,b\n", "a.csv")
    with pytest.raises(DataError, match="line 3: a quotation mark is opened and never closed"):
        read(path)
    bad_rows = BadRows(skip=True)
    assert [document.text for document in read_documents(path, bad_rows=bad_rows)] == ["one"]
    assert bad_rows.count == 1


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_closed_quotation_mark_at_the_end_is_none_of_that(file, end):
    documents = read(file(f'text,label\none,a\n"two\nlines","b"{end}', "a.csv"))
    assert [document.text for document in documents] == ["one", "two\nlines"]


def test_parquet_with_bad_text_or_a_name_twice(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    raw = pa.array([b"one", b"caf\xe9", b"three"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"text": text, "label": ["a", "b", "a"]}), path)
    with pytest.raises(DataError, match=r"bad\.parquet, line 2: a text is not UTF-8: byte 0xe9 at 3"):
        read(path)
    bad_rows = BadRows(skip=True)
    assert [document.text for document in read_documents(path, bad_rows=bad_rows)] == ["one", "three"]
    assert bad_rows.count == 1
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"]), pa.array(["a"])], ["text", "text", "label"])
    pq.write_table(twice, path)
    with pytest.raises(DataError, match="names a column twice: 'text'"):
        read(path)


def test_spans_of_documents_are_put_in_order_and_checked():
    document = Document("one two three", "a", ((8, 13), (0, 3), (2, 5)))
    assert document.rationale == ((0, 5), (8, 13))
    with pytest.raises(DataError, match=r"the rationale holds \(8, 14\)"):
        Document("one two three", "a", ((8, 14),))


def test_messages_are_short(file):
    with pytest.raises(DataError) as caught:
        read(file(b'{"text": ' + b"x" * 100_000 + b"}\n"))
    assert len(str(caught.value)) < 500


def test_bad_rows_keep_the_first_five(file):
    content = as_json(ROWS[:1]) + b"x\n" * 7
    bad_rows = BadRows(skip=True)
    assert bad_rows.summary() is None
    list(read_documents(file(content), bad_rows=bad_rows))
    assert (bad_rows.count, len(bad_rows.examples)) == (7, 5)
    assert "7 bad rows left out" in bad_rows.summary() and "and 2 more" in bad_rows.summary()
    assert "line 2" in bad_rows.summary()


def test_only_bad_rows_is_an_error_even_when_skipped(file):
    with pytest.raises(DataError, match=r"none of its rows can be used, e.g. .*line 1: .*no column 'stars'"):
        read(file(as_json(ROWS)), skip=True, label="stars")


def test_labels_can_be_left_out(file):
    content = as_json([{"text": "x"}, {"text": "y", "label": None}, {"text": "z", "label": 2}])
    path = file(content)
    assert [document.label for document in read(path, require_label=False)] == [None, None, 2]
    assert [document.label for document in read(path, label=None)] == [None] * 3
    assert read(file("text\nx\n", "a.csv"), require_label=False)[0].label is None


def test_rationale_column(file):
    path = file(
        as_json([{"text": "abcdef", "label": 1, "gold": [[0, 3], [2, 4], [4, 5]]}, {"text": "x", "label": 1}])
    )
    assert read(path)[0].rationale is None
    documents = read(path, rationale="gold", require_rationale=True)
    assert [document.rationale for document in documents] == [((0, 4), (4, 5)), None]
    with pytest.raises(DataError, match="no column 'why'"):
        read(path, rationale="why", require_rationale=True)
    with pytest.raises(DataError, match=r"no column 'rationale'.*--rationale NAME"):
        read(file("text,label\nx,a\n", "a.csv"), require_rationale=True)
    assert read(path, rationale=None)[0].rationale is None


def test_documents_from_lists():
    documents = list(documents_from(["ab", "c"], ["x", 1], [[(0, 1)], None]))
    assert documents == [Document("ab", "x", ((0, 1),), 0), Document("c", 1, None, 1)]
    assert [document.label for document in documents_from(iter(["ab"]))] == [None]


def test_documents_from_arrays():
    labels = np.array([1, 2])
    documents = list(documents_from(np.array(["ab", "c"]), labels, [np.array([[0, 1]]), None]))
    assert [type(document.label) for document in documents] == [int, int]
    assert type(documents[0].text) is str and documents[0].rationale == ((0, 1),)
    assert [document.label for document in documents_from(["a"], np.array([0.5], dtype=np.float32))] == [0.5]


def test_documents_from_pandas_and_arrow():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"t": ["ab", "c"], "l": [0, 1]}, index=[7, 3])
    assert [(document.text, document.label) for document in documents_from(frame["t"], frame["l"])] == [
        ("ab", 0),
        ("c", 1),
    ]
    gold = pyarrow.array([[[0, 1]], None])
    texts = pyarrow.chunked_array([["ab"], ["c"]])
    documents = list(documents_from(texts, pyarrow.array([0.5, 1.0]), gold))
    assert [(document.label, document.rationale) for document in documents] == [(0.5, ((0, 1),)), (1.0, None)]
    with pytest.raises(DataError, match="texts has 2 dimensions"):
        documents_from(frame)
    with pytest.raises(DataError, match="row 0: the label is empty"):
        list(documents_from(["a"], pandas.Series([pandas.NA])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one text",), "texts is str 'one text'; allowed: a list"),
        ((["a"], "x"), "labels is str"),
        (({"a": 1},), "texts is dict"),
        ((5,), "texts is int 5"),
        ((["a", "b"], ["x"]), "2 texts but 1 labels; allowed: as many of each"),
        ((iter(["a", "b"]), ["x"]), "row 1: the 'labels' end before this row"),
        ((["a"], ["x"], [None, None]), "rationales"),
        ((["a", " "],), "data, row 1: the text is empty"),
        ((["a", None],), "row 1: the text is None"),
        ((["a"], [float("nan")]), "row 0: the label is nan"),
        ((["a"], [None]), "row 0: the label is empty"),
        ((["a"], ["x"], [[(0, 2)]]), r"row 0: the rationale holds \(0, 2\)"),
    ],
)
def test_documents_from_bad_data(arguments, message):
    with pytest.raises(DataError, match=message):
        list(documents_from(*arguments))
