"""Every equation of the paper against numpy, by hand."""

import math

import numpy as np
import pytest
import torch

from infocal.losses.adversarial import discrimination, imitation
from infocal.losses.calibration import smooth, token_calibration
from infocal.losses.fluency import fused_lasso, language_model_cost, language_model_pretraining
from infocal.losses.information import guider_information, selection_information
from infocal.losses.prediction import cross_entropy, squared_error
from infocal.losses.reductions import masked_mean, weighted_sum
from infocal.losses.supervision import rationale_supervision

RNG = np.random.default_rng(7)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def ragged(documents=5, tokens=8):
    """Random log-odds, a mask with different lengths, and their tensors."""
    logits = RNG.normal(size=(documents, tokens))
    mask = np.arange(tokens) < RNG.integers(1, tokens + 1, size=(documents, 1))
    return logits, mask, torch.tensor(logits), torch.tensor(mask)


def close(tensor, expected):
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_prediction_is_the_negative_log_softmax_of_the_target():
    logits, targets = RNG.normal(size=(6, 4)), RNG.integers(0, 4, size=6)
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    close(cross_entropy(torch.tensor(logits), torch.tensor(targets)), -np.log(softmax[np.arange(6), targets]))


def test_regression_is_the_squared_error_through_a_sigmoid():
    logits, targets = RNG.normal(size=(6, 1)), RNG.uniform(size=6)
    close(squared_error(torch.tensor(logits), torch.tensor(targets)), (sigmoid(logits[:, 0]) - targets) ** 2)
    with pytest.raises(ValueError, match="one output"):
        squared_error(torch.zeros(3, 2), torch.zeros(3))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_selection_information_is_the_divergence_to_the_prior(reduction):
    logits, mask, tensor, tensor_mask = ragged()
    p, r = sigmoid(logits), 0.13
    divergence = (p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r))) * mask
    expected = divergence.sum(axis=1) / (mask.sum(axis=1) if reduction == "mean" else 1)
    close(selection_information(tensor, tensor_mask, prior=r, reduction=reduction), expected)


def test_selection_information_is_zero_only_at_the_prior_and_finite_at_certainty():
    mask = torch.ones(1, 3, dtype=torch.bool)
    at_prior = torch.full((1, 3), math.log(0.2 / 0.8), dtype=torch.float64)
    assert selection_information(at_prior, mask, prior=0.2).item() == pytest.approx(0, abs=1e-12)
    certain = torch.tensor([[80.0, -80.0, 500.0]])
    assert torch.isfinite(selection_information(certain, mask, prior=0.2)).all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        selection_information(at_prior, mask, prior=0.0)


def test_guider_information_is_the_gaussian_divergence():
    mean, deviation = RNG.normal(size=(4, 3)), RNG.uniform(0.1, 2, size=(4, 3))
    expected = 0.5 * (mean**2 + deviation**2 - 1 - 2 * np.log(deviation))
    close(guider_information(torch.tensor(mean), torch.tensor(deviation), reduction="sum"), expected.sum(1))
    close(guider_information(torch.tensor(mean), torch.tensor(deviation)), expected.mean(1))
    assert guider_information(torch.zeros(1, 3), torch.ones(1, 3)).item() == 0


def test_adversarial_losses_in_both_forms():
    real, fake = RNG.normal(size=5), RNG.normal(size=5)
    real_tensor, fake_tensor = torch.tensor(real), torch.tensor(fake)
    close(imitation(fake_tensor), -np.log(sigmoid(fake)))
    close(discrimination(real_tensor, fake_tensor), -np.log(sigmoid(real)) - np.log(1 - sigmoid(fake)))
    close(
        discrimination(real_tensor, fake_tensor, form="printed"),
        -np.log(sigmoid(real)) + np.log(sigmoid(fake)),
    )
    with pytest.raises(ValueError, match="bounded"):
        discrimination(real_tensor, fake_tensor, form="other")


def test_the_printed_discriminator_loss_has_no_floor_and_ours_has():
    real, fake = torch.tensor([1000.0]), torch.tensor([-1000.0])
    assert discrimination(real, fake, form="printed").item() < -900
    assert discrimination(real, fake).item() >= 0


@pytest.mark.parametrize("form", ["printed", "centred"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_language_model_cost_by_a_loop(form, reduction):
    scores, mask, tensor_scores, tensor_mask = ragged()
    chosen = (RNG.uniform(size=scores.shape) < 0.5) * mask
    expected = np.zeros(len(scores))
    for row in range(len(scores)):
        for i in range(1, scores.shape[1]):
            if mask[row, i]:
                cost = -np.log(sigmoid(chosen[row, i] * scores[row, i]))
                expected[row] += chosen[row, i - 1] * (cost - (math.log(2) if form == "centred" else 0))
        if reduction == "mean":
            expected[row] /= mask[row].sum()
    found = language_model_cost(
        torch.tensor(chosen.astype(float)), tensor_scores, tensor_mask, form=form, reduction=reduction
    )
    close(found, expected)


def test_language_model_pretraining_in_both_forms():
    positive, negative = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4, 6))
    arguments = torch.tensor(positive), torch.tensor(negative)
    close(
        language_model_pretraining(*arguments),
        -(np.log(sigmoid(positive)) + np.log(sigmoid(-negative)).mean(-1)),
    )
    close(
        language_model_pretraining(*arguments, form="printed"),
        -(np.log(sigmoid(positive)) - np.log(sigmoid(negative)).mean(-1)),
    )


def test_fused_lasso_counts_boundaries():
    chosen = torch.tensor([[1.0, 1, 0, 0, 1], [0, 0, 1, 0, 0]])
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    close(fused_lasso(chosen, mask), [2 / 4, 1 / 2])


def test_token_calibration_by_a_loop():
    logits, mask, tensor, tensor_mask = ragged()
    attribution = RNG.uniform(size=logits.shape) * mask
    attribution[0, :] = 0.3
    partner = np.array([RNG.integers(0, count, size=logits.shape[1]) for count in mask.sum(1)])
    expected = np.zeros(len(logits))
    for row in range(len(logits)):
        count = mask[row].sum()
        for i in range(count):
            j = partner[row, i]
            sign = np.sign(attribution[row, i] - attribution[row, j])
            if sign:
                expected[row] += np.log1p(np.exp(-sign * (logits[row, i] - logits[row, j]))) / count
    found = token_calibration(tensor, torch.tensor(attribution), torch.tensor(partner), tensor_mask)
    close(found, expected)


def test_smoothing_averages_over_real_neighbours_only():
    values = torch.tensor([[1.0, 2, 6, 9, 100]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, True, False]])
    close(smooth(values, mask, window=3), [[1.5, 3, 17 / 3, 7.5, 0]])
    close(smooth(values, mask, window=1), [[1, 2, 6, 9, 0]])
    with pytest.raises(ValueError, match="odd"):
        smooth(values, mask, window=4)


def test_rationale_supervision_is_cross_entropy_on_annotated_documents_only():
    logits, mask, tensor, tensor_mask = ragged(documents=3)
    gold = (RNG.uniform(size=logits.shape) < 0.3) * mask
    p = sigmoid(logits)
    expected = (-(gold * np.log(p) + (1 - gold) * np.log(1 - p)) * mask).sum(1) / mask.sum(1)
    expected[1] = 0
    annotated = torch.tensor([True, False, True])
    close(rationale_supervision(tensor, torch.tensor(gold), annotated, tensor_mask), expected)


def test_the_total_is_the_weighted_sum_of_batch_means():
    objectives = {"prediction": torch.tensor([1.0, 3.0]), "fluency": torch.tensor([10.0, 20.0])}
    assert weighted_sum(objectives, {"prediction": 1.0, "fluency": 0.1}).item() == pytest.approx(3.5)
    with pytest.raises(ValueError, match="fluency"):
        weighted_sum(objectives, {"prediction": 1.0})


def test_masked_mean_of_an_empty_document_is_zero():
    values = torch.tensor([[1.0, 2.0], [5.0, 7.0]])
    close(masked_mean(values, torch.tensor([[False, False], [True, False]])), [0, 5])
