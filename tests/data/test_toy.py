import hashlib
import json
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from infocal.data.toy import ASPECTS, compose_reviews, toy_reviews, toy_scores, write_toy
from infocal.errors import SettingsError

NAMES = {
    "battery": r"battery|charge",
    "screen": r"screen|touchscreen|display",
    "sound": r"sound|speaker|audio|ringtone",
    "comfort": r"comfort|fit|strap|wristband|band",
    "delivery": r"delivery|shipping|courier|parcel|package|order|shipment",
    "support": r"support|service|help desk|hotline",
    "price": r"price|cost|value",
    "build": r"build|casing|construction|frame|case|housing|bezel",
}


@cache
def train(aspect="battery"):
    return compose_reviews(3000, aspect=aspect, seed=0)


@cache
def held_out(aspect="battery"):
    return compose_reviews(500, aspect=aspect, seed=1)


@cache
def some(aspect):
    return compose_reviews(400, aspect=aspect, seed=2)


def clause(review):
    start, end = review.target.span
    return review.text[start:end]


def context(review):
    start, end = review.target.span
    return review.text[:start] + " " + review.text[end:]


def labels(reviews):
    return np.array([review.target.grade >= 2 for review in reviews])


def plain(text):
    return text.casefold().replace("’", "'")


def accuracy(part):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=r"[\w'’]+")
    known = vectorizer.fit_transform([part(review) for review in train()])
    model = LogisticRegression(C=10, max_iter=2000).fit(known, labels(train()))
    return model.score(vectorizer.transform([part(review) for review in held_out()]), labels(held_out()))


@pytest.mark.parametrize("aspect", ASPECTS)
def test_the_span_is_the_clause_on_the_target_aspect_and_on_no_other(aspect):
    named = foreign = 0
    for review in some(aspect):
        start, end = review.target.span
        assert review.target.aspect == aspect
        assert clause(review) == clause(review).strip(" .!?;,/")
        assert not review.text[start - 1 : start].isalnum() and not review.text[end : end + 1].isalnum()
        assert 5 <= len(clause(review).split()) <= 10
        named += re.search(rf"\b({NAMES[aspect]})", plain(clause(review))) is not None
        others = "|".join(NAMES[other.aspect] for other in review.others)
        foreign += re.search(rf"\b(the|its|this) ({others})\b", plain(clause(review))) is not None
    assert named >= 388  # the rest have a typo in the noun itself
    assert foreign == 0


def test_clauses_of_one_review_are_apart_and_on_different_aspects():
    for review in train():
        clauses = sorted((review.target, *review.others), key=lambda each: each.span)
        assert all(before.span[1] < after.span[0] for before, after in pairwise(clauses))
        assert len({each.aspect for each in clauses}) == len(clauses) >= 3


@pytest.mark.parametrize("count", [1, 2, 7, 400])
def test_labels_are_balanced(count):
    good = sum(document.label == "good" for document in toy_reviews(count))
    assert abs(2 * good - count) <= count % 2


@pytest.mark.parametrize("aspect", ASPECTS)
def test_lengths_and_gold_share(aspect):
    words = np.array([len(review.text.split()) for review in some(aspect)])
    share = np.array([len(clause(review).split()) for review in some(aspect)]) / words
    assert words.min() >= 40 and words.max() <= 90
    assert share.min() >= 0.1 and share.max() <= 0.2
    assert 0.12 <= share.mean() <= 0.18


def test_the_same_seed_gives_the_same_reviews_in_another_process():
    script = "from infocal.data.toy import *; print(ascii(toy_reviews(20, aspect='price', seed=7)))"
    environment = {"PYTHONHASHSEED": "5", "PYTHONPATH": ":".join(sys.path)}
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert printed.strip() == ascii(toy_reviews(20, aspect="price", seed=7))


def test_the_reviews_of_a_seed_never_change():
    content = json.dumps([[d.text, d.label, d.rationale] for d in toy_reviews(50)])
    assert (
        hashlib.sha256(content.encode()).hexdigest()
        == "ee701f593f39d11fb4ed202fafae0abf89ed7584947191940e307bac94f4d589"
    )


def test_a_shorter_list_begins_a_longer_one_and_seeds_differ():
    assert toy_reviews(30, seed=3) == toy_reviews(90, seed=3)[:30]
    assert not {d.text for d in toy_reviews(300, seed=3)} & {d.text for d in toy_reviews(300, seed=4)}


def test_polarity_of_other_aspects_is_independent_of_the_label():
    for aspect in ASPECTS[1:]:
        pairs = [
            (review.target.grade >= 2, other.grade >= 2)
            for review in train()
            for other in review.others
            if other.aspect == aspect
        ]
        assert len(pairs) > 900
        assert abs(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1]) < 0.09


def test_only_the_gold_clause_tells_the_label():
    assert accuracy(context) <= 0.56
    assert accuracy(clause) >= 0.9


@pytest.mark.parametrize("aspect", ["battery", "support", "price"])
def test_phrasings_are_many_and_mostly_new_in_held_out_reviews(aspect):
    for good in (False, True):
        clauses = {plain(clause(r)) for r in train(aspect) if (r.target.grade >= 2) == good}
        assert len(clauses) >= 300
    known = {plain(clause(review)) for review in train(aspect)}
    assert np.mean([plain(clause(review)) not in known for review in held_out(aspect)]) >= 0.9


def test_opinion_words_occur_with_every_aspect_and_both_labels():
    seen = {
        (word, each.aspect, each.grade >= 2)
        for review in train()
        for each in (review.target, *review.others)
        for word in ("great", "terrible", "disappointing", "solid")
        if word in plain(review.text[slice(*each.span)])
    }
    assert len(seen) == 4 * len(ASPECTS) * 2


def test_negation_is_used_for_both_labels():
    negation = re.compile(r"\b(never|hardly|isn't|wasn't|not|can't|cannot|don't|no|far from|anything but)\b")
    for good in (False, True):
        negated = [r for r in train() if r.target.negated and (r.target.grade >= 2) == good]
        assert 0.2 <= len(negated) / 1500 <= 0.3
        assert np.mean([negation.search(plain(clause(review))) is not None for review in negated]) > 0.98


def test_some_reviews_name_the_target_outside_the_clause_without_judging_it():
    outside = np.mean([re.search(r"\b(battery|charge) ", plain(context(r))) is not None for r in train()])
    assert 0.05 < outside < 0.3


def test_a_conjunction_next_to_the_target_does_not_give_its_polarity_away():
    joined = [r for r in train() if re.match(r",? (and|but|while) ", r.text[r.target.span[1] :])]
    assert len(joined) > 200
    for word in ("and", "while", "but"):
        good = labels([r for r in joined if r.text[r.target.span[1] :].lstrip(", ").startswith(word)])
        assert abs(good.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(good))


def test_texts_have_capitals_emoji_curly_apostrophes_and_two_aspects_in_a_sentence():
    texts = [review.text for review in train()]
    assert 0.05 < np.mean([text == text.lower() for text in texts]) < 0.2
    assert 0.05 < np.mean([re.search(r"[☕⌚🙂-🤷👋📦]", text) is not None for text in texts]) < 0.4
    assert any("’" in text for text in texts) and any(re.search(r"\b[A-Z]{5,}\b", text) for text in texts)
    gaps = [
        r.text[r.target.span[1] : min(after, default=0)]
        for r in train()
        if (after := [other.span[0] for other in r.others if other.span[0] > r.target.span[1]])
    ]
    assert sum(gap.strip(", ") in ("and", "while") for gap in gaps) > 100


def test_scores_grade_the_same_reviews():
    scored, classed = toy_scores(600), toy_reviews(600)
    values = np.array([document.label for document in scored])
    assert [document.text for document in scored] == [document.text for document in classed]
    assert [document.rationale for document in scored] == [document.rationale for document in classed]
    assert all((score.label > 3) == (label.label == "good") for score, label in zip(scored, classed, strict=True))
    assert values.min() >= 1.0 and values.max() <= 5.0
    grades = np.array([review.target.grade for review in compose_reviews(600)])
    means = [values[grades == grade].mean() for grade in range(4)]
    assert np.allclose(means, [1.4, 2.4, 3.6, 4.6], atol=0.1)
    assert all(type(document.label) is float for document in scored)


def test_written_lines_hold_text_label_and_spans(tmp_path):
    documents = toy_reviews(40, aspect="sound")
    write_toy(tmp_path / "deep" / "toy.jsonl", documents)
    lines = (tmp_path / "deep" / "toy.jsonl").read_text("utf-8").split("\n")
    assert lines.pop() == ""
    records = [json.loads(line) for line in lines]
    assert [record["text"] for record in records] == [document.text for document in documents]
    assert [record["label"] for record in records] == [document.label for document in documents]
    assert [tuple(map(tuple, record["rationale"])) for record in records] == [d.rationale for d in documents]
    assert all(list(record) == ["text", "label", "rationale"] for record in records)
    assert [document.line for document in documents] == list(range(40))


@pytest.mark.parametrize("make", [toy_reviews, toy_scores])
def test_wrong_settings_name_the_choices(make):
    with pytest.raises(SettingsError, match=r"'wheels'.*battery, screen, sound"):
        make(5, aspect="wheels")
    with pytest.raises(SettingsError, match="at least 1"):
        make(0)
