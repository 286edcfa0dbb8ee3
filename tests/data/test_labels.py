import numpy as np
import pytest

from infocal.data.labels import class_name, infer_task, mostly_numbers, number
from infocal.errors import DataError


@pytest.mark.parametrize(
    ("labels", "from_text", "task"),
    [
        (["a", "b"], False, "classify"),
        ([0, 1], False, "classify"),
        ([True, False], False, "classify"),
        ([1, "a"], False, "classify"),
        ([0.5, 1], False, "regress"),
        ([1.0, 0.0], False, "regress"),
        (["0.5", "1.5"], False, "classify"),
        (list(np.array([1, 2])), False, "classify"),
        (list(np.array([1, 2], dtype=np.float32)), False, "regress"),
        (["0", "1", "-2", "+3"], True, "classify"),
        (["0", "1.5"], True, "regress"),
        (["1.0", "2.0"], True, "regress"),
        (["0", "1.5", "x"], True, "classify"),
        (["1", "nan"], True, "classify"),
        (["1", "1_0"], True, "classify"),
        (["1e-3", ".5"], True, "regress"),
    ],
)
def test_infer_task(labels, from_text, task):
    assert infer_task(labels, from_text=from_text) == task


@pytest.mark.parametrize("labels", [[0.5, "a"], ["a", np.float32(1)], [True, 0.5]])
def test_mixed_labels(labels):
    with pytest.raises(DataError, match="only numbers"):
        infer_task(labels, from_text=False)


def test_a_slip_among_scores_is_named_with_its_line():
    labels = ["1.5", "2.5"] * 20 + ["n/a"]
    with pytest.raises(DataError, match=r"x\.csv, line 42: .*this one is 'n/a'") as caught:
        infer_task(labels, from_text=True, source="x.csv", lines=range(2, 43))
    assert caught.value.line == 42
    assert infer_task(["1", "2"] * 20 + ["n/a"], from_text=True) == "classify"  # integers are classes


def test_mostly_numbers():
    assert mostly_numbers([1.5] * 9 + ["a"])
    assert mostly_numbers(["1.5"] * 9 + [float("nan")])
    assert not mostly_numbers([1.5] * 8 + ["a", True])


def test_class_name():
    labels = [3, True, False, "x", np.int64(3), np.bool_(True), np.str_("y")]
    assert [class_name(label) for label in labels] == ["3", "true", "false", "x", "3", "true", "y"]


def test_number():
    labels = [3, 0.5, "0.5", " 2 ", np.float32(0.5), np.int64(2)]
    assert [number(label, source="f", line=1) for label in labels] == [3.0, 0.5, 0.5, 2.0, 0.5, 2.0]


@pytest.mark.parametrize("label", ["x", "", None, float("nan"), float("inf"), "nan", True, [1], "1_0"])
def test_not_a_number(label):
    with pytest.raises(DataError, match=r"f\.csv, line 7: the label is .*; allowed: a finite number"):
        number(label, source="f.csv", line=7)
