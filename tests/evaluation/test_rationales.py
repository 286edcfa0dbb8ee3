import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.errors import DataError
from infocal.evaluation.rationales import average_precisions, count_rationales, rationale_scores


def spans_of(flags):
    edges = np.flatnonzero(np.diff(np.concatenate(([0], np.asarray(flags, int), [0]))))
    return [set(range(start, end)) for start, end in edges.reshape(-1, 2)]


def slow_scores(selected, gold, offsets, annotated):
    """The definitions, document by document and span by span."""
    rows, spans, hits, gold_spans = [], 0, 0, 0
    for (start, end), counted in zip(itertools.pairwise(offsets), annotated, strict=True):
        if not counted:
            continue
        ours, theirs = selected[start:end], gold[start:end]
        both = int((ours & theirs).sum())
        precision = both / ours.sum() if ours.any() else float(not theirs.any())
        recall = both / theirs.sum() if theirs.any() else float(not ours.any())
        rows.append((precision, recall, 2 * precision * recall / (precision + recall or 1.0)))
        mine, others = spans_of(ours), spans_of(theirs)
        best = [max((len(a & b) / len(a | b) for b in others), default=0.0) for a in mine]
        spans, gold_spans, hits = (
            spans + len(mine),
            gold_spans + len(others),
            hits + sum(b >= 0.5 for b in best),
        )
    return np.mean(rows, axis=0), 2 * hits / max(1, spans + gold_spans)


def test_by_hand():
    # Tokens 0 to 4, 5 and 6 (not annotated), 7 to 10.
    gold = np.array([1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1], bool)
    selected = np.array([1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1], bool)
    scores = np.array([0.9, 0.1, 0.2, 0.8, 0.7, 0.0, 0.0, 0.1, 0.2, 0.9, 0.8])
    found = rationale_scores(selected, gold, [0, 5, 7, 11], annotated=[True, False, True], scores=scores)
    assert found == pytest.approx(
        {
            "n": 2,
            "precision": 4 / 5,
            "recall": 4 / 6,
            "f1": 8 / 11,
            "macro_precision": (2 / 3 + 1) / 2,
            "macro_recall": 2 / 3,
            "macro_f1": (2 / 3 + 0.8) / 2,
            # Spans: {0} ~ {0,1} at 1/2, {3,4} ~ {4} at 1/2, {2,3} ~ {1,2,3} at 2/3: all match.
            "iou_f1": 1.0,
            "auprc": ((1 + 2 / 3 + 3 / 5) / 3 + 1) / 2,
            "gold_share": 6 / 9,
            "selected_share": 5 / 9,
        }
    )


documents = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12), min_size=1, max_size=6)


@settings(deadline=None)
@given(corpus=documents, data=st.data())
def test_equals_the_definitions(corpus, data):
    offsets = np.concatenate(([0], np.cumsum([len(document) for document in corpus])))
    flags = np.array([pair for document in corpus for pair in document], bool).reshape(-1, 2)
    size = len(corpus)
    annotated = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    found = rationale_scores(
        flags[:, 0], flags[:, 1], offsets, annotated=annotated, scores=flags[:, 0].astype(float)
    )
    if not annotated.any():
        assert found is None
        return
    macro, iou_f1 = slow_scores(flags[:, 0], flags[:, 1], offsets, annotated)
    assert [found["macro_precision"], found["macro_recall"], found["macro_f1"]] == pytest.approx(macro)
    assert found["iou_f1"] == pytest.approx(iou_f1)


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_equals_scikit_learn(ties):
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 15, 40)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    scores = generator.normal(size=offsets[-1])
    scores = np.round(scores) if ties else scores
    gold = generator.random(offsets[-1]) < 0.3
    found = average_precisions(gold, scores, offsets)
    for precision, (start, end) in zip(found, itertools.pairwise(offsets), strict=True):
        if gold[start:end].any():
            expected = metrics.average_precision_score(gold[start:end], scores[start:end])
            assert precision == pytest.approx(expected)
        else:
            assert precision == 0.0


def test_parts_add_up_to_the_whole():
    generator = np.random.default_rng(1)
    offsets = np.concatenate(([0], np.cumsum(generator.integers(0, 20, 30))))
    selected, gold = generator.random((2, offsets[-1])) < 0.4
    scores, annotated = generator.normal(size=offsets[-1]), generator.random(30) < 0.7
    whole = rationale_scores(selected, gold, offsets, annotated=annotated, scores=scores)
    cut = offsets[11]
    first = count_rationales(
        selected[:cut], gold[:cut], offsets[:12], annotated=annotated[:11], scores=scores[:cut]
    )
    second = count_rationales(
        selected[cut:], gold[cut:], offsets[11:] - cut, annotated=annotated[11:], scores=scores[cut:]
    )
    assert (first + second).scores() == pytest.approx(whole)


def test_nothing_marked_and_nothing_annotated():
    empty = np.zeros(3, bool)
    found = rationale_scores(empty, empty, [0, 3], annotated=[True], scores=np.zeros(3))
    assert (found["macro_f1"], found["f1"], found["auprc"]) == (1.0, 0.0, None)
    assert rationale_scores(empty, empty, [0, 3], annotated=[False], scores=np.zeros(3)) is None
    with pytest.raises(DataError, match="annotated of shape"):
        rationale_scores(empty, empty, [0, 3], annotated=[True, False], scores=np.zeros(3))
    with pytest.raises(DataError, match="one value per token"):
        rationale_scores(empty, empty[:2], [0, 3], annotated=[True], scores=np.zeros(3))
