"""Which round's weights are kept."""

import numpy as np
import pytest
import torch

from infocal.tasks import Classification, Regression
from infocal.training.loop import Trainer


def judge(phase, *rounds):
    """What the loop decides of rounds with these held-out losses, one after the other."""
    trainer = Trainer.__new__(Trainer)
    trainer.state = type("State", (), {"best": float("inf"), "phase": phase})()
    return [trainer._judge(torch.tensor(losses, dtype=torch.float64)) for losses in rounds]


BASE = [0.5, 0.7, 0.2, 0.9]


def test_a_better_round_is_kept_in_both_phases():
    better = [value - 0.1 for value in BASE]
    assert judge("warm_up", BASE, better, BASE) == [True, True, False]
    assert judge("joint", BASE, better, BASE) == [True, True, False]


def test_in_the_joint_phase_a_later_round_wins_where_none_can_tell_them_apart():
    mixed = [0.1, 1.1, 0.3, 0.9]  # a mean difference of .025 with a standard error of .15
    assert judge("joint", BASE, mixed) == [True, True]
    assert judge("warm_up", BASE, mixed) == [True, False]


def test_small_steps_down_do_not_add_up():
    """Each is compared with the best round, not with the one before."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, 400)
    worse = [(1 + 0.004 * step + noise - noise.mean()).tolist() for step in (1, 2, 3)]
    assert judge("joint", [1.0] * 400, *worse) == [True, True, False, False]


def test_of_several_tasks_a_hard_one_does_not_decide_for_the_others():
    """A tenth less of an easy task's loss weighs more than a hundredth more of a hard one's."""
    first = np.tile([0.1, 0.8], (4, 1))
    assert judge("warm_up", first.tolist(), (first * [0.9, 1.015]).tolist()) == [True, True]
    assert judge("warm_up", first.tolist(), (first * [0.99, 1.02]).tolist()) == [True, False]
    assert judge("joint", first.tolist(), (first * [0.99, 1.02]).tolist()) == [True, False]


def test_of_several_tasks_the_error_is_that_of_their_mean():
    """What one task loses of a document and another gains of it is no difference."""
    first = np.full((4, 2), 0.5)
    swing = np.array([[0.2, -0.2], [-0.2, 0.2], [0.2, -0.2], [-0.2, 0.2]])
    assert judge("joint", first.tolist(), (first + swing + 0.001).tolist()) == [True, False]
    both = np.abs(swing) * [[1], [-1], [1], [-1]]
    assert judge("joint", first.tolist(), (first + both + 0.001).tolist()) == [True, True]


def test_a_perfect_round_can_be_beaten_by_none():
    assert judge("joint", [0.0] * 4, [0.0] * 4, [1e-3] * 4) == [True, True, False]
    assert judge("warm_up", [0.0] * 4, [0.0] * 4) == [True, False]


@pytest.mark.parametrize("phase", ["warm_up", "joint"])
def test_a_task_that_is_solved_hides_nothing_of_the_others(phase):
    assert judge(phase, [[0.0, 0.5]] * 4, [[0.0, 0.9]] * 4, [[0.0, 0.4]] * 4) == [True, False, True]


def test_a_task_that_is_nearly_solved_does_not_decide_for_the_others():
    assert judge("warm_up", [[1e-3, 0.8]] * 4, [[3e-3, 0.4]] * 4) == [True, True]
    assert judge("warm_up", [[0.001, 0.3, 0.8]] * 4, [[0.0025, 0.2, 0.6]] * 4) == [True, True]


def test_losses_that_are_no_numbers_are_never_kept():
    assert judge("joint", BASE, [float("nan")] * 4) == [True, False]


def test_probabilities_that_are_too_sure_do_not_count_against_a_classifier():
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 3, 300)
    logits = rng.normal(size=(300, 3)) + 2 * np.eye(3)[targets]
    task = Classification(("a", "b", "c"))
    calm, sure = (task.held_out_losses((logits * k).astype(np.float32), targets) for k in (1.0, 4.0))
    assert calm.shape == (300,)
    assert sure.mean() == pytest.approx(calm.mean(), rel=0.01)
    plain = task.loss(torch.tensor(logits * 4), torch.tensor(targets)).mean()
    assert float(plain) > 1.2 * sure.mean()


def test_the_best_temperature_is_no_worse_than_none():
    rng = np.random.default_rng(2)
    targets, logits = rng.integers(0, 2, 50), rng.normal(size=(50, 2)).astype(np.float32)
    task = Classification(("a", "b"))
    plain = float(task.loss(torch.tensor(logits), torch.tensor(targets)).mean())
    assert task.held_out_losses(logits, targets).mean() <= plain + 1e-6


def test_held_out_losses_of_scores_are_the_loss():
    task = Regression(0.0, 5.0, 0.2)
    logits, targets = np.array([[0.3], [-2.0]], dtype=np.float32), np.array([0.5, 0.1], dtype=np.float32)
    expected = task.loss(torch.tensor(logits), torch.tensor(targets)).numpy()
    np.testing.assert_allclose(task.held_out_losses(logits, targets), expected, rtol=1e-5)
