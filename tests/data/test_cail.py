"""Cases of CAIL2018: what is read, what is refused, what is left out."""

import gzip
import json
from pathlib import Path

import pytest

from infocal.data.cail import (
    INTERVALS,
    REASONS,
    Case,
    case_documents,
    case_files,
    encoding_of,
    is_case_file,
    parse_case,
    penalty_interval,
    read_cases,
    why_dropped,
)
from infocal.data.records import BadRows
from infocal.errors import DataError

SHARED = Path(__file__).parents[3] / "shared" / "data" / "cail"
TERM = {"imprisonment": 6, "life_imprisonment": False, "death_penalty": False}


def line(fact="李某窃得手机一部", **meta):
    usual = {"accusation": ["盗窃"], "relevant_articles": [264], "term_of_imprisonment": TERM}
    return json.dumps({"fact": fact, "meta": {**usual, **meta}}, ensure_ascii=False)


def parsed(text):
    return parse_case(text.encode(), 7, encoding="utf-8", source="a.json")


def test_a_case_of_the_layout():
    assert parsed(line()) == Case("李某窃得手机一部", ("盗窃",), (264,), 6, False, 7)
    grave = parsed(line(term_of_imprisonment={**TERM, "imprisonment": None, "death_penalty": True}))
    assert grave.gravest
    assert grave.months is None
    assert parsed(line(term_of_imprisonment={**TERM, "life_imprisonment": True})).gravest
    assert not parsed(line(term_of_imprisonment={"imprisonment": 6, "death_penalty": None})).gravest
    assert parsed(line(relevant_articles=["264", 133])).articles == (264, 133)


def test_a_charge_of_several_acts_is_one_charge_with_brackets_or_without():
    acts = "走私、贩卖、运输、制造"
    found = parsed(line(accusation=[f"[{acts}]毒品", f"{acts}毒品", " 盗窃"]))
    assert found.charges == (f"{acts}毒品", "盗窃")
    with pytest.raises(DataError, match=r"a\.json, line 7: accusation is \['\[\]'\]"):
        parsed(line(accusation=["[]"]))


def test_cases_as_documents(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("\n".join([line("甲"), "", line("乙", accusation=["盗窃", "诈骗"])]), encoding="gb18030")
    assert is_case_file(path)
    first = next(case_documents(path, ["charge"], bad_rows=BadRows()))
    assert (first.text, first.label, first.line) == ("甲", "盗窃", 1)
    with pytest.raises(DataError, match=r"line 3: the case is left out: several charges.*--skip-bad"):
        list(case_documents(path, ["charge"], bad_rows=BadRows()))
    skipping = BadRows(skip=True)
    (only,) = case_documents(path, ["term", "article"], bad_rows=skipping)
    assert only.label == {"term": "over 0 months", "article": "264"}
    assert skipping.count == 1
    labels = [one.label for one in case_documents(path, ["charge"], bad_rows=BadRows(), require_label=False)]
    assert labels == ["盗窃", None]


@pytest.mark.parametrize("text", ["", "no JSON", '{"fact": "x"}', '{"fact": "x", "meta": 3}', "[1]"])
def test_other_files_are_no_cases(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert not is_case_file(path)


@pytest.mark.parametrize(
    ("months", "interval"),
    [
        (0, 10),
        (1, 9),
        (6, 9),
        (7, 8),
        (9, 8),
        (12, 7),
        (24, 6),
        (25, 5),
        (10, 7),
        (13, 6),
        (36, 5),
        (37, 4),
        (60, 4),
        (61, 3),
        (84, 3),
        (85, 2),
        (120, 2),
        (121, 1),
    ],
)
def test_the_eleven_intervals(months, interval):
    assert len(INTERVALS) == 11
    assert penalty_interval(Case("x", ("a",), (1,), months, False, 1)) == INTERVALS[interval]


def test_death_and_life_are_the_gravest_and_no_term_is_none():
    assert penalty_interval(Case("x", ("a",), (1,), 0, True, 1)) == INTERVALS[0]
    assert penalty_interval(Case("x", ("a",), (1,), None, False, 1)) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line(accusation=["盗窃", "诈骗"]), "several charges"),
        (line(relevant_articles=[264, 266]), "several articles"),
        (line(accusation=[]), "no charge"),
        (line(relevant_articles=[]), "no article"),
        (line(accusation=["盗窃", " 盗窃"], relevant_articles=[264, "264"]), None),
        (line(term_of_imprisonment={**TERM, "imprisonment": None}), "no term"),
        (line("原审被告人李某窃得手机一部"), "second instance"),
        (line("上诉人李某"), "second instance"),
        (line("李某不服，提起上诉，二审期间"), "second instance"),
        (line("李某申请再审"), "second instance"),
        (line(), None),
    ],
)
def test_what_is_left_out(text, reason):
    assert reason is None or reason in REASONS
    assert why_dropped(parsed(text)) == reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the line is not JSON"),
        ("[1]", "stands where an object with 'fact' should"),
        ('{"fact": "x"}', "there is no 'meta', only 'fact'"),
        (line(""), "the fact is ''"),
        (line(3), "the fact is 3"),
        (line(accusation="盗窃"), "accusation is '盗窃'; allowed: a list of names"),
        (line(accusation=[""]), "accusation is"),
        (line(relevant_articles=[2.5]), r"relevant_articles is \[2.5\]"),
        (line(term_of_imprisonment={"imprisonment": -1}), "imprisonment is -1"),
        (
            '{"fact": "\\ud800", "meta": {}}',
            r"the text holds the lone surrogate U\+D800 at 0; allowed: valid Unicode",
        ),
        (line().replace("盗窃", "盗\\udfff"), r"the text holds the lone surrogate U\+DFFF at 1"),
        (
            line(term_of_imprisonment={**TERM, "death_penalty": "false"}),
            "death_penalty is 'false'; allowed: true, fal",
        ),
        (
            line(term_of_imprisonment={**TERM, "life_imprisonment": 0}),
            "life_imprisonment is 0; allowed: true, false",
        ),
        (line(term_of_imprisonment=3), "stands where an object with 'imprisonment' should"),
    ],
)
def test_lines_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(f"{line()}\n\n{text}\n{line()}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"a.json, line 3: .*{message}"):
        list(read_cases(path, bad_rows=BadRows()))
    bad_rows = BadRows(skip=True)
    assert [case.line for case in read_cases(path, bad_rows=bad_rows)] == [1, 4]
    assert bad_rows.count == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_plain_or_packed(tmp_path, encoding, packed):
    content = f"{line()}\n{line('王某𠮷打人')}\n".encode(encoding)
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert [case.fact for case in read_cases(path, bad_rows=BadRows())] == ["李某窃得手机一部", "王某𠮷打人"]
    assert encoding_of(path) == ("gb18030" if encoding == "gb18030" else "utf-8")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_a_bad_byte_is_an_error_of_its_line(tmp_path, encoding):
    path = tmp_path / "a.json"
    lines = [f"{line(fact)}\n".encode(encoding) for fact in ("李某窃得手机一部", "王某打人", "张某醉酒驾车")]
    lines[0] = lines[0].replace("手机".encode(encoding.removesuffix("-sig")), b"\xff")
    path.write_bytes(b"".join(lines))
    name = "GB18030" if encoding == "gb18030" else "UTF-8"
    with pytest.raises(DataError, match=rf"a\.json, line 1: byte 0xff at position \d+ is not {name}"):
        list(read_cases(path, bad_rows=BadRows()))
    bad_rows = BadRows(skip=True)
    assert [case.fact for case in read_cases(path, bad_rows=bad_rows)] == ["王某打人", "张某醉酒驾车"]
    assert bad_rows.count == 1


def test_neither_encoding(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xff\xff\n")
    with pytest.raises(DataError, match="neither UTF-8 nor GB18030"):
        encoding_of(path)
    path.write_bytes("{}".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        encoding_of(path)


def test_folders_within_a_folder_are_named_where_it_has_no_cases(tmp_path):
    for name in ("final/first_stage/train.json", "final/rest/data.json.gz", "final/rest/notes.md", "other/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(DataError, match="but in it 'first_stage', 'rest' have some: name one of the folders"):
        case_files(tmp_path / "final")
    with pytest.raises(DataError, match=r"no file of cases, but in it .*first_stage"):
        case_files(tmp_path)


def test_a_folder_means_its_files_of_cases(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        case_files(tmp_path / "none")
    with pytest.raises(DataError, match="no file of cases"):
        case_files(tmp_path)
    for name in ("b.json.gz", "a.json", "notes.md", "._a.json", ".train.json"):
        (tmp_path / name).touch()
    assert [file.name for file in case_files(tmp_path)] == ["a.json", "b.json.gz"]
    assert case_files(tmp_path / "a.json") == [tmp_path / "a.json"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real cases are not on this machine")
def test_the_real_cases_are_read_and_sifted():
    found = [why_dropped(case) for case in read_cases(SHARED / "test.json", bad_rows=BadRows())]
    assert len(found) == 932
    assert found.count("several charges") == 104
    assert found.count(None) == 624  # 61 of them name their one article twice


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_mark_in_front_of_the_file_is_no_part_of_the_first_case(tmp_path, encoding):
    path = tmp_path / "a.json"
    path.write_bytes(("\ufeff" + line("甲") + "\n" + line("乙") + "\n").encode(encoding))
    assert encoding_of(path) == encoding
    assert is_case_file(path)
    assert [case.fact for case in read_cases(path, bad_rows=BadRows())] == ["甲", "乙"]
