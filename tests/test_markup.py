import html
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.markup import escape, explanation_html, explanation_text, page, percent, plain, value_text
from infocal.types import Explanation

TEXT = "The food was great, really."
BASE = Explanation(
    text=TEXT,
    prediction="positive",
    probabilities={"positive": 0.97, "negative": 0.03},
    spans=((13, 18),),
    tokens=((0, 3), (4, 8), (9, 12), (13, 18), (18, 19), (20, 26), (26, 27)),
    scores=(0.01, 0.2, 0.001, 0.9, 0.1, 0.3, 0.1),
    selected=(False, False, False, True, False, False, False),
    share=1 / 7,
    read_to=27,
)
ATTACK = "<script>alert(1)</script>\"'&lt; onload=x <img src=x onerror=alert(1)>"


def example(**changes):
    return replace(BASE, **changes)


class Reader(HTMLParser):
    """Collects the text's element, what is marked in it, and every tag and attribute."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.marked, self.gold = [], [], "", "", ""
        self._open = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag != "meta":
            self._open.append((tag, dict(attrs).get("class")))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        if ("div", "infocal-text") in self._open:
            self.text += data
            self.marked += data if ("mark", "infocal-selected") in self._open else ""
            self.gold += data if ("u", "infocal-gold") in self._open else ""

    def close(self):
        super().close()
        assert not self._open


def parse(source):
    reader = Reader()
    reader.feed(source)
    reader.close()
    return reader


def legal(text):
    """What HTML may hold of a text, by the rules of the standard."""

    def forbidden(character):
        code = ord(character)
        control = code < 32 and character not in "\t\n\f\r"
        return (
            control
            or 127 <= code < 160
            or 0xD800 <= code < 0xE000
            or 0xFDD0 <= code < 0xFDF0
            or code & 0xFFFE == 0xFFFE
        )

    return "".join("\ufffd" if forbidden(character) else character for character in text)


def covered(text, spans):
    return "".join(c for i, c in enumerate(text) if any(start <= i < end for start, end in spans))


texts = st.text(
    st.characters() | st.sampled_from("<>&\"'\r\n\0\x1b\ud800\ufffe;#") | st.characters(categories=["Cs"])
)
spans = st.lists(st.tuples(st.integers(-2, 40), st.integers(-2, 40)), max_size=4).map(tuple)


@settings(deadline=None)
@given(text=texts, chosen=spans, gold=st.none() | spans, tokens=spans, read_to=st.integers(0, 40))
def test_without_tags_the_html_is_the_text(text, chosen, gold, tokens, read_to):
    explanation = example(
        text=text, spans=chosen, gold=gold, tokens=tokens, scores=(0.5,) * len(tokens), read_to=read_to
    )
    source = explanation_html(explanation)
    inner = source[source.index('<div class="infocal-text"') :]
    assert html.unescape(re.sub("<[^>]*>", "", inner)) == legal(text)
    reader = parse(source)
    assert reader.text == legal(text)
    assert reader.marked == covered(legal(text), chosen)
    assert reader.gold == covered(legal(text), gold or ())
    assert set(reader.tags) <= {"div", "strong", "bdi", "span", "mark", "u"}
    source.encode("utf-8")


@settings(deadline=None)
@given(text=texts, chosen=spans)
def test_no_control_character_reaches_a_terminal(text, chosen):
    explanation = example(text=text, spans=chosen, prediction=text, label=text, full_text_prediction="x")
    for shown in (plain(explanation), explanation_text(explanation).plain):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", shown)


def test_nothing_a_user_wrote_becomes_markup():
    explanation = example(
        text=ATTACK,
        spans=((3, 12),),
        gold=((5, 30),),
        prediction=ATTACK,
        probabilities={ATTACK: 1.0},
        label=ATTACK + "2",
        full_text_prediction=ATTACK + "3",
    )
    reader = parse(page(ATTACK, explanation_html(explanation), language='en"><script>'))
    assert not {"script", "img"} & set(reader.tags)
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    assert reader.text == ATTACK
    assert escape(ATTACK) in page(ATTACK, "")


def test_overlapping_selected_and_gold_words_get_both():
    source = explanation_html(example(spans=((4, 12),), gold=((9, 18),)))
    reader = parse(source)
    assert (reader.marked, reader.gold) == ("food was", "was great")
    assert source.count("<mark") == 1
    assert source.count("<u ") == 2


def test_a_token_says_how_probable_it_was():
    assert '<span title="90 %">great</span>' in explanation_html(BASE)
    assert '<span title="&lt;1 %">was</span>' in explanation_html(BASE)


def test_plain_marks_the_words():
    assert plain(BASE) == "positive (97 %) · words selected 14 %\nThe food was [[great]], really."
    assert str(example(text="a\r\nb\x1b[31m\rc", spans=(), read_to=9)).endswith("\na\nb␛[31m␍c")


def test_the_terminal_header_says_what_is_known():
    assert explanation_text(BASE).plain.splitlines()[0] == "positive (97 %) · words selected 14 %"
    known = example(label="negative", read_to=12, full_text_prediction="negative")
    head = explanation_text(known).plain.splitlines()[0]
    assert "true label negative (differs)" in head
    assert "cut at character 12" in head
    assert "from the full text negative" in head
    same = explanation_text(example(label="positive", full_text_prediction="positive")).plain
    assert "(matches)" in same
    assert "from the full text positive" in same
    assert "full text" not in explanation_text(BASE).plain
    assert plain(known).splitlines()[0] == head


def test_a_score_has_no_probability_and_an_error():
    score = example(prediction=3.25, probabilities=None, label=4.0, full_text_prediction=3.2500001)
    head = explanation_text(score).plain.splitlines()[0]
    assert head == "3.25 · true label 4 (off by 0.75) · words selected 14 % · from the full text 3.25"


def test_the_terminal_highlights_the_selected_words_only():
    rich_text = explanation_text(example(gold=((0, 3),)))
    (highlight,) = [span for span in rich_text.spans if "underline" in str(span.style)]
    assert rich_text.plain[highlight.start : highlight.end] == "great"
    assert "bold" in str(highlight.style)


def test_brackets_in_the_text_are_not_the_consoles_markup():
    console_module = pytest.importorskip("rich.console")
    stream = io.StringIO()
    console_module.Console(file=stream, width=200).print(example(text="[bold]x[/bold] [/]", spans=((0, 6),)))
    assert "[bold]x[/bold] [/]" in stream.getvalue()


def test_words_that_were_not_read_are_set_apart():
    source = explanation_html(example(read_to=12))
    assert re.search(r'infocal-unread"[^>]*> ?', source)
    assert parse(source).text == TEXT
    assert "infocal-unread" not in explanation_html(BASE)


def test_a_page_runs_and_fetches_nothing():
    source = page("A & B", "<p>body</p>", language="zh")
    assert source.startswith("<!DOCTYPE html>")
    assert "<title>A &amp; B</title>" in source
    assert "default-src 'none'; style-src 'unsafe-inline'" in source
    assert 'lang="zh"' in source
    assert "prefers-color-scheme:dark" in source
    assert not re.search(r"<script|<link|<img|@import|url\(|https?:", source)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0 %"), (0.001, "<1 %"), (0.97, "97 %"), (0.9999, ">99 %"), (1.0, "100 %"), (0.5, "50 %")],
)
def test_only_certainty_is_shown_as_certainty(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3.0, "3"),
        (0.12345, "0.123"),
        (1234567.0, "1234567"),
        (0.00012, "0.00012"),
        (-0.5, "-0.5"),
        ("x", "x"),
    ],
)
def test_numbers_are_short_and_in_full(value, shown):
    assert value_text(value) == shown
