import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from infocal.errors import DataError
from infocal.report import Table, report_html, write_report
from infocal.types import Explanation

ATTACK = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
VOID = {"meta"}


def explanation(**changes):
    values = {
        "text": "good beer",
        "prediction": "positive",
        "probabilities": {"positive": 0.8, "negative": 0.2},
        "spans": ((0, 4),),
        "tokens": ((0, 4), (5, 9)),
        "scores": (0.9, 0.1),
        "selected": (True, False),
        "share": 0.5,
        "read_to": 9,
    }
    return Explanation(**(values | changes))


class Checker(HTMLParser):
    """Every element closed in order; collects tags, attributes and the rows of tables."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.rows, self.words = [], [], [], []
        self._open = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend((tag, *pair) for pair in attrs)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.words.append(data)
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data


def check(**changes):
    values = {"title": "A model", "summary": {}, "tables": [], "explanations": [], "notes": []}
    source = report_html(**(values | changes))
    checker = Checker()
    checker.feed(source)
    checker.close()
    assert not checker._open
    return checker


def test_the_file_is_complete_and_stands_alone(tmp_path):
    path = tmp_path / "out" / "report.html"
    table = Table("Scores", ["set", "n", "f1"], [["test", 1250, 0.9]], "A caption.")
    write_report(
        path,
        title="Ein Bericht: 啤酒",
        summary={"Accuracy": 0.9},
        tables=[table],
        explanations=[explanation(text="\ud800 bad surrogate")],
        notes=["A note."],
    )
    source = path.read_text(encoding="utf-8")
    assert source.startswith("<!DOCTYPE html>")
    assert "啤酒" in source
    assert "Content-Security-Policy" in source
    assert not re.search(r"<script|<link|<img|@import|url\(|https?:", source)
    assert all(words in source for words in ("A caption.", "A note.", "Accuracy"))
    assert list(path.parent.iterdir()) == [path]


def test_nothing_a_user_wrote_becomes_markup():
    hostile = explanation(
        text=ATTACK,
        prediction=ATTACK,
        probabilities={ATTACK: 1.0},
        label="x",
        full_text_prediction=ATTACK + "!",
    )
    checker = check(
        title=ATTACK,
        summary={ATTACK: ATTACK},
        tables=[Table(ATTACK, [ATTACK], [[ATTACK]], ATTACK)],
        explanations=[hostile],
        notes=[ATTACK],
    )
    assert not {"script", "img"} & set(checker.tags)
    assert not any(name.startswith("on") for _, name, _ in checker.attributes)
    assert "".join(checker.words).count(ATTACK) >= 9


def test_numbers_of_a_column_share_their_decimals_and_stand_right():
    table = Table("t", ["name", "n", "f1"], [["a", 12500, 0.9], ["b", 7, 0.905], ["c", None, None]])
    checker = check(tables=[table])
    assert checker.rows == [
        ["name", "n", "f1"],
        ["a", "12\u202f500", "0.900"],
        ["b", "7", "0.905"],
        ["c", "–", "–"],
    ]
    assert sum(pair[1:] == ("class", "number") for pair in checker.attributes) == 8


def test_very_small_numbers_are_not_shown_as_nothing():
    assert check(tables=[Table("t", ["p"], [[0.00004], [0.5]])]).rows[1:] == [["4e-05"], ["0.5"]]


def test_the_legend_explains_what_is_there_and_nothing_else():
    bare = "".join(check(explanations=[explanation()]).words)
    assert "Highlighted" in bare
    assert not re.search("Underlined|Faded|thick edge", bare)
    full = [explanation(gold=((0, 4),)), explanation(read_to=4), explanation(label="negative")]
    assert all(word in "".join(check(explanations=full).words) for word in ("Underlined", "Faded", "thick edge"))
    assert "Highlighted" not in "".join(check().words)


def test_bars_show_the_share_to_eyes_and_to_screen_readers():
    checker = check(explanations=[explanation(share=0.25), explanation(share=0.75)])
    widths = [value for tag, name, value in checker.attributes if name == "style" and "width" in value]
    labels = [value for _, name, value in checker.attributes if name == "aria-label"]
    assert widths == ["width:50.0%", "width:25.0%", "width:75.0%"]
    assert labels == [f"{share} % of the words selected" for share in (50, 25, 75)]


def test_headings_do_not_skip_a_level():
    checker = check(tables=[Table("t", ["a"], [])], explanations=[explanation()], notes=["n"])
    assert [tag for tag in checker.tags if re.fullmatch("h[1-6]", tag)] == ["h1", "h2", "h2", "h2"]
    assert checker.tags.count("main") == 1


def test_the_page_stays_small():
    words = " ".join(["word"] * 300)
    tokens = tuple((5 * i, 5 * i + 4) for i in range(300))
    long = explanation(
        text=words,
        tokens=tokens,
        scores=(0.1,) * 300,
        selected=(True,) + (False,) * 299,
        share=1 / 300,
        read_to=len(words),
    )
    source = report_html(title="t", summary={}, tables=[], explanations=[long] * 20)
    assert len(source.encode()) < 20 * 300 * 45 + 10_000


def test_a_row_that_does_not_fit_its_header_is_named():
    with pytest.raises(DataError, match="row 1 of the table 'Scores' has 1 cells; allowed: 2"):
        Table("Scores", ["a", "b"], [[1, 2], [3]])


def test_a_narrow_terminal_loses_nothing():
    rows = [(name, *["0.1"] * 6, 98) for name in ("infocal-no-adv-no-calibration", "infocal-no-adv-no-ib")]
    table = Table("t", ["", "precision", "recall", "F1", "accuracy", "share", "of marked", "runs"], rows)
    stream = io.StringIO()
    Console(file=stream, width=60).print(table)
    shown = stream.getvalue()
    assert "…" not in shown
    assert (shown.count("0.1"), shown.count("98")) == (12, 2)
    names = "".join(line.split()[0] for line in shown.splitlines() if line.strip() and line.startswith("  "))
    assert "infocal-no-adv-no-calibrationinfocal-no-adv-no-ib" in names


def test_names_stay_whole_in_a_narrow_terminal():
    names = ("infocal-no-adv", "infocal-no-lm")
    rows = [(name, *["0.123"] * 6) for name in names]
    table = Table("t", ["", "precision", "recall", "F1", "accuracy", "share", "of marked"], rows)
    stream = io.StringIO()
    Console(file=stream, width=80).print(table)
    assert "…" not in stream.getvalue()
    assert all(name in stream.getvalue() for name in names)
    assert stream.getvalue().count("0.123") == 12
