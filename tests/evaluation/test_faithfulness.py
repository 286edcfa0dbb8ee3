import pytest

from infocal.errors import DataError
from infocal.evaluation.faithfulness import comprehensiveness, prediction_change, sufficiency


def test_the_means_keep_their_signs():
    assert sufficiency([0.9, 0.6], [0.8, 0.8]) == pytest.approx(-0.05)
    assert comprehensiveness([0.9, 0.6], [0.4, 0.5]) == pytest.approx(0.3)


def test_changes_of_scores_are_absolute_and_in_the_users_units():
    assert prediction_change([10.0, -2.0], [7.0, 3.0]) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("full", "part", "message"),
    [
        ([0.5], [0.5, 0.5], "shapes"),
        ([], [], "at least 1"),
        ([float("nan")], [0.5], "not finite"),
        ([1.5], [0.5], "allowed: 0 to 1"),
    ],
)
def test_wrong_input_is_named(full, part, message):
    with pytest.raises(DataError, match=message):
        sufficiency(full, part)
