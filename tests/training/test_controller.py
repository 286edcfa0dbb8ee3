"""The controller hits the requested share whatever the log-odds are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.training.controller import RateController


def selected(logits, offset, rng):
    noise = rng.logistic(size=logits.shape)
    return float((logits + noise > offset).sum())


@settings(deadline=None, max_examples=40)
@given(st.floats(0.05, 0.6), st.floats(-6, 6), st.floats(0.2, 4))
def test_the_sampled_share_settles_at_the_request(target, centre, spread):
    rng = np.random.default_rng(0)
    controller = RateController(target, gain=0.1)
    shares = []
    for step in range(300):
        logits = rng.normal(centre, spread, size=2000)
        count = selected(logits, controller.offset, rng)
        controller.update(count, 2000)
        if step >= 200:
            shares.append(count / 2000)
    assert np.mean(shares) == pytest.approx(target, abs=0.02)


def test_it_follows_log_odds_that_drift():
    rng = np.random.default_rng(1)
    controller = RateController(0.2, gain=0.1)
    share = 0.0
    for step in range(400):
        count = selected(rng.normal(step * 0.01, 1, size=2000), controller.offset, rng)
        controller.update(count, 2000)
        share = count / 2000
    assert share == pytest.approx(0.2, abs=0.04)


def test_all_or_nothing_selected_moves_it_by_a_bounded_step():
    controller = RateController(0.2, gain=0.1)
    controller.update(0, 100)
    assert -1 < controller.offset < 0
    controller.update(100, 100)
    assert controller.offset > 0


def test_pinned_weights_leave_it_still():
    controller = RateController(0.2, gain=0.1, active=False)
    controller.update(90, 100)
    assert controller.offset == 0
