import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.data.readers import BadRows
from infocal.data.split import check_classes, split_rows
from infocal.errors import DataError


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=80), st.floats(0.01, 0.5), st.integers(0, 9), st.booleans()
)
@settings(deadline=None)
def test_split_is_a_partition(classes, share, seed, stratify):
    targets = np.array(classes)
    train, dev = split_rows(targets, share=share, seed=seed, stratify=stratify)
    assert sorted([*train, *dev]) == list(range(len(targets)))
    assert len(dev) >= 1 and len(train) >= 1
    assert (np.diff(train) > 0).all() and (np.diff(dev) > 0).all()
    if stratify and len(set(classes)) < len(classes):
        assert set(targets[train]) == set(classes)
        assert len(dev) <= max(1, round(share * len(targets)))


def test_split_takes_the_share_of_every_class():
    targets = np.repeat([0, 1, 2], [700, 250, 50])
    _, dev = split_rows(targets, share=0.1, seed=0, stratify=True)
    assert np.bincount(targets[dev]).tolist() == [70, 25, 5]
    again = split_rows(targets, share=0.1, seed=0, stratify=True)
    np.testing.assert_array_equal(dev, again[1])
    assert not np.array_equal(dev, split_rows(targets, share=0.1, seed=1, stratify=True)[1])


def test_many_small_classes_still_give_the_share():
    targets = np.repeat(np.arange(50), 2)
    _, dev = split_rows(targets, share=0.1, seed=0, stratify=True)
    assert len(dev) == 10 and np.bincount(targets[dev]).max() == 1


def test_scores_are_split_by_bins():
    targets = np.random.default_rng(0).random(1000).astype(np.float32)
    _, dev = split_rows(targets, share=0.1, seed=0, stratify=True)
    ranks = np.argsort(np.argsort(targets))[dev]
    assert np.bincount(ranks // 100).tolist() == [10] * 10


def test_too_few_rows():
    with pytest.raises(DataError, match=r"1 rows to split.*at least 2 rows"):
        split_rows(np.array([1]), share=0.1, seed=0, stratify=True)
    train, dev = split_rows(np.array([0.5, 0.5]), share=0.1, seed=0, stratify=True)
    assert len(train) == len(dev) == 1


def rows_of(names, skip=False, bad_rows=None):
    bad_rows = bad_rows or BadRows(skip=skip)
    return check_classes(names, range(2, 2 + len(names)), bad_rows=bad_rows, source="f.csv").tolist()


def test_classes_that_can_be_learned():
    assert rows_of(["a", "b", "a", "b"]) == [0, 1, 2, 3]


def test_a_class_seen_once():
    names = ["a", "b", "a", "rare", "b"]
    with pytest.raises(DataError, match=r"f\.csv, line 5: the class 'rare' has no other row; .*--skip-bad"):
        rows_of(names)
    bad_rows = BadRows(skip=True)
    assert rows_of(names, bad_rows=bad_rows) == [0, 1, 2, 4]
    assert bad_rows.count == 1


@pytest.mark.parametrize(
    ("names", "skip", "message"),
    [
        (["a", "a"], False, "only one class: 'a'; allowed: at least two classes"),
        (["a", "a", "b"], True, "only one class"),
        (["a", "b"], True, "no class with two rows: 'a', 'b'"),
        (["a"], False, "no class with two rows: 'a'"),
        ([], False, "no class with two rows: none"),
    ],
)
def test_too_few_classes(names, skip, message):
    with pytest.raises(DataError, match=message):
        rows_of(names, skip=skip)
