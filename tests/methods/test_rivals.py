"""Bernoulli, HardKuma and INVASE: what each objective may move, what reaches the output, what a run keeps."""

import math
import random
from dataclasses import replace

import pytest
import torch

from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews, toy_scores
from infocal.errors import SettingsError
from infocal.fitting import fit
from infocal.loading import load_one as load
from infocal.losses.sparsity import boundaries
from infocal.methods import build_method
from infocal.methods.base import Conditions
from infocal.nn.embedding import TokenEmbedding
from infocal.tasks import Classification
from infocal.training.loop import Trainer
from infocal.training.preparation import build_embedding, prepare
from infocal.types import Batch, Document

TINY = {
    "text.width": 12,
    "encoder.hidden_width": 10,
    "training.least_round_steps": 4,
    "training.most_round_steps": 6,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 2,
    "training.settle_steps": 2,
    "training.batch_documents": 16,
    "training.checkpoint_seconds": 0.0,
    "loss.calibration_window": 3,
}
NO_DROPOUT = {"encoder.dropout": 0.0, "model.input_dropout": 0.0, "model.token_dropout": 0.0}
VARIANTS = {
    "bernoulli": ("bernoulli", {}),
    "bernoulli, dependent": ("bernoulli", {"bernoulli.dependent": True}),
    "bernoulli, as printed": ("bernoulli", {"bernoulli.sparsity": 0.01, "bernoulli.baseline": "none"}),
    "hardkuma": ("hardkuma", {"hardkuma.fused_lasso": 0.1}),
    "hardkuma, share only": ("hardkuma", {"hardkuma.fused_lasso": None}),
    "invase": ("invase", {}),
}
REACH = {
    "bernoulli": {"prediction": {"embedding", "predictor"}, "score_function": {"selector"}},
    "hardkuma": {
        "prediction": {"embedding", "selector", "predictor"},
        "selected_share": {"embedding", "selector"},
        "expected_transitions": {"embedding", "selector"},
    },
    "invase": {
        "prediction": {"embedding", "critic"},
        "baseline": {"embedding", "baseline"},
        "score_function": {"actor"},
        "selected_share": {"actor"},
    },
}
every_variant = pytest.mark.parametrize("variant", list(VARIANTS))


def settings_of(variant, **changes):
    name, own = VARIANTS[variant]
    return load_settings(name, {**TINY, **own, **changes})


@pytest.fixture
def rival(network):
    """Make an untrained network of a variant."""

    def make(variant, *, scores=False, **changes):
        return network(settings_of(variant, **changes), scores=scores)

    return make


def conditions(phase="joint", *, offset=0.0, seed=0):
    return Conditions(phase, offset, torch.Generator().manual_seed(seed))


def reached(loss, method):
    """The parts that a loss has a gradient for."""
    found = set()
    for name, part in method.named_children():
        parameters = [p for p in part.parameters() if p.requires_grad]
        if parameters:
            slopes = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            if any(slope is not None and slope.abs().sum() > 0 for slope in slopes):
                found.add(name)
    return found


@every_variant
def test_objectives_are_named_unreduced_and_owned(rival, batch, variant):
    method = rival(variant)
    step = method.step(batch, conditions())
    assert all(value.shape == (len(batch.ids),) for value in step.objectives.values())
    owned = [name for player in method.players() for name in player.weights]
    assert sorted(owned) == sorted(step.objectives)
    assert step.tokens == int(batch.mask.sum())
    assert 0 <= step.selected <= step.tokens


@every_variant
def test_each_objective_reaches_its_own_parts_and_no_other(rival, batch, variant):
    method = rival(variant)
    objectives = method.step(batch, conditions()).objectives
    choices = {"choices"} if getattr(method, "choices", None) is not None else set()
    for name, value in objectives.items():
        expected = REACH[VARIANTS[variant][0]][name]
        assert reached(value.sum(), method) == expected | (choices if "selector" in expected else set()), name


@every_variant
def test_every_parameter_has_one_owner_who_can_move_it(rival, batch, variant):
    method = rival(variant)
    owned = [id(p) for player in method.players() for p in player.parameters()]
    assert len(owned) == len(set(owned))
    assert set(owned) == {id(p) for p in method.parameters() if p.requires_grad}
    assert method.language_model is None


@every_variant
def test_the_warm_up_trains_on_the_full_text(rival, batch, variant):
    method = rival(variant)
    step = method.step(batch, conditions("warm_up"))
    assert step.selected is None
    (value,) = step.objectives.values()
    assert reached(value.sum(), method) == {"embedding", "baseline" if "invase" in variant else "predictor"}


@every_variant
def test_settling_moves_what_predicts_and_nothing_else(rival, batch, variant):
    method = rival(variant)
    selected = batch.mask & (torch.arange(batch.mask.shape[1]) % 2 == 0)
    settle = Conditions("settle", 0.0, torch.Generator().manual_seed(0), selected)
    (value,) = method.step(batch, settle).objectives.values()
    assert method.settles
    assert reached(value.sum(), method) == {"critic" if VARIANTS[variant][0] == "invase" else "predictor"}
    other = replace(batch, ids=torch.where(selected, batch.ids, 7) * batch.mask)
    method.eval()
    one, two = (next(iter(method.step(b, settle).objectives.values())) for b in (batch, other))
    assert torch.equal(one, two)


def test_the_actors_reward_weighs_the_choices_of_the_whole_text_and_its_penalty_their_mean(rival, batch):
    method = rival("invase").eval()
    found = method.step(batch, conditions(offset=0.5)).objectives
    log_odds = method.score_tokens(batch) - 0.5
    draws = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(0))
    probability = torch.sigmoid(log_odds)
    chosen = (draws < probability) & batch.mask
    likely = torch.where(chosen, probability, 1 - probability).log() * batch.mask
    reward = (found["prediction"] - found["baseline"]).detach()
    torch.testing.assert_close(found["score_function"], reward * likely.sum(1), rtol=1e-4, atol=1e-6)
    mean = (probability * batch.mask).sum(1) / batch.mask.sum(1)
    torch.testing.assert_close(found["selected_share"], mean)


def test_the_selectors_cost_weighs_the_choices_of_the_whole_text(rival, batch):
    method = rival("bernoulli", **{"bernoulli.baseline": "none", "bernoulli.continuity": 0.0}).eval()
    found = method.step(batch, conditions(offset=0.5)).objectives
    draws = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(0))
    probability = torch.sigmoid(method.score_tokens(batch))  # the offset is in it
    chosen = (draws < probability) & batch.mask
    likely = torch.where(chosen, probability, 1 - probability).log() * batch.mask
    expected = found["prediction"].detach() * likely.sum(1)
    torch.testing.assert_close(found["score_function"], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["attention", "bernoulli", "hardkuma", "l2x", "invase", "car"])
def test_everybodys_loss_can_be_plain(network, batch, method):
    found = {}
    for scale in ("task", "printed"):
        settings = load_settings(method, {**TINY, **NO_DROPOUT, "loss.scale": scale})
        found[scale] = network(settings).step(batch, conditions("warm_up")).objectives
    for name, value in found["task"].items():
        torch.testing.assert_close(found["printed"][name], value * math.log(3))


@every_variant
def test_a_step_is_a_function_of_batch_conditions_and_state(rival, batch, variant):
    first, second, third = (
        rival(variant, **NO_DROPOUT).step(batch, conditions(seed=seed)).objectives for seed in (5, 5, 6)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["prediction"], third["prediction"])


@pytest.mark.parametrize("variant", ["bernoulli", "bernoulli, dependent", "invase"])
def test_a_higher_offset_selects_less(rival, batch, variant):
    method = rival(variant)
    assert method.controlled_share
    shares = [method.step(batch, conditions(offset=offset)).selected for offset in (-20.0, 0.0, 20.0)]
    assert shares[0] == int(batch.mask.sum())
    assert shares[0] > shares[1] > shares[2] == 0


@pytest.mark.parametrize("variant", ["bernoulli, as printed", "hardkuma", "hardkuma, share only"])
def test_methods_that_price_their_words_do_not_ask_for_the_controller(rival, variant):
    assert not rival(variant).controlled_share


@pytest.mark.parametrize("kind", ["rcnn", "gru", "lstm"])
@every_variant
def test_unselected_words_do_not_change_the_prediction_by_one_bit(variant, kind):
    torch.manual_seed(0)
    method = build_method(
        settings_of(variant, **{"encoder.kind": kind}),
        embedding=TokenEmbedding(size=30, width=12),
        task=Classification(("a", "b")),
    ).eval()
    generator = random.Random(1)
    for _ in range(10):
        length = generator.randint(1, 12)
        mask = torch.arange(14)[None] < length
        first, second = (torch.tensor([generator.choices(range(1, 30), k=14)]) for _ in range(2))
        chosen = torch.tensor([generator.choices((True, False), k=14)])
        changed = torch.where(chosen & mask, first, second)
        one, two = (
            method.predict(Batch(ids=ids, mask=mask, rows=torch.zeros(1)), chosen) for ids in (first, changed)
        )
        assert torch.equal(one, two)


@every_variant
def test_selected_words_do_change_the_prediction(rival, batch, variant):
    method = rival(variant).eval()
    chosen = torch.zeros_like(batch.mask)
    chosen[:, 0] = True
    before = method.predict(batch, chosen)
    batch.ids[:, 0] = (batch.ids[:, 0] + 7) % 49 + 1
    assert not torch.equal(before, method.predict(batch, chosen))


@every_variant
def test_inference_is_deterministic_and_changes_nothing(rival, batch, variant):
    method = rival(variant).eval()
    method.step(batch, conditions(offset=0.7))
    before = {name: value.clone() for name, value in method.state_dict().items()}
    torch.manual_seed(1)
    first = method.score_tokens(batch), method.predict(batch, batch.mask), method.predict_full(batch)
    torch.manual_seed(2)
    second = method.score_tokens(batch), method.predict(batch, batch.mask), method.predict_full(batch)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert torch.isfinite(first[0]).all()
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())


@every_variant
def test_padding_does_not_change_a_score(rival, batch, variant):
    method = rival(variant).eval()
    together = method.score_tokens(batch)
    alone = method.score_tokens(Batch(ids=batch.ids[1:2, :3], mask=batch.mask[1:2, :3], rows=batch.rows[1:2]))
    torch.testing.assert_close(together[1:2, :3], alone)


@every_variant
def test_scores_can_be_learned_too(rival, batch, variant):
    method = rival(variant, scores=True)
    numbers = torch.tensor([0.1, 0.9, 0.5, 0.0, 1.0])
    scored = Batch(batch.ids, batch.mask, batch.rows, numbers)
    found = method.step(scored, conditions()).objectives
    assert all(torch.isfinite(value).all() for value in found.values())
    assert method.predict(batch, batch.mask).shape == (len(batch.ids), 1)


@pytest.mark.parametrize("method", ["bernoulli", "hardkuma", "invase"])
def test_a_method_without_its_own_settings_says_what_to_do(network, method):
    settings = load_settings("infocal", TINY).model_copy(update={"method": method})
    with pytest.raises(SettingsError, match=f"start from the recipe {method}"):
        network(settings)


@pytest.mark.parametrize("rounds", [0, 2])
def test_the_critic_starts_from_a_baseline_that_was_warmed_up(rival, rounds):
    method = rival("invase", **{"training.warm_up_rounds": rounds})
    method.begin_joint()
    pairs = zip(method.critic.parameters(), method.baseline.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs) == bool(rounds)


def test_the_baseline_is_the_average_cost_of_the_batches_before(rival, batch):
    changes = {**NO_DROPOUT, "bernoulli.continuity": 0.0}
    held, plain = rival("bernoulli", **changes), rival("bernoulli", **changes, **{"bernoulli.baseline": "none"})
    one, other = (method.step(batch, conditions()).objectives for method in (held, plain))
    cost = other["prediction"].detach()
    ratio = (one["score_function"] / other["score_function"]).detach()
    torch.testing.assert_close(ratio, (cost - 1) / cost)
    assert held.average_cost.item() == pytest.approx(0.9 + 0.1 * cost.mean().item())
    assert plain.average_cost.item() == 1.0


def test_boundaries_are_counted():
    chosen = torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0, 1.0]])
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    assert boundaries(chosen, mask).tolist() == [3.0, 1.0]


def test_words_and_boundaries_raise_the_selectors_cost(rival, batch):
    def step(sparsity, continuity):
        prices = {"bernoulli.sparsity": sparsity, "bernoulli.continuity": continuity}
        return rival("bernoulli, as printed", **NO_DROPOUT, **prices).step(batch, conditions())

    free = step(0.0, 0.0)
    likelihood = free.objectives["score_function"] / free.objectives["prediction"]

    def extra(priced):
        return ((priced.objectives["score_function"] - free.objectives["score_function"]) / likelihood).detach()

    assert extra(step(1.0, 0.0)).sum().item() == pytest.approx(free.selected, abs=1e-3)
    boundaries = extra(step(0.0, 1.0)) * (batch.mask.sum(1) - 1)
    torch.testing.assert_close(boundaries, boundaries.round(), atol=1e-3, rtol=0)
    assert boundaries.max() >= 1


def test_dependent_scores_are_made_with_the_last_offset(rival, batch):
    method = rival("bernoulli, dependent").eval()
    method.step(batch, conditions(offset=9.0))
    high = method.score_tokens(batch)
    method.step(batch, conditions(offset=-9.0))
    low = method.score_tokens(batch)
    differences = (low - high)[batch.mask]
    assert differences.mean().item() == pytest.approx(18.0, abs=3.0)
    assert differences.std() > 0, "the choices before a token should matter, not the offset alone"


def test_a_multiplier_follows_the_moving_average_and_prices_the_share(rival, batch):
    method = rival("hardkuma, share only")
    method.multipliers.fill_(0.5)
    found = method.step(batch, conditions()).objectives["selected_share"].mean().item()
    price, excess = method.multipliers.item(), method.excesses.item()
    assert excess > 0
    assert excess == pytest.approx((1 - method.own.moving_average) * found / price, rel=1e-4)
    assert price == pytest.approx(0.5 * math.exp(method.own.multiplier_rate * excess), rel=1e-4)


def trainer(variant, path, trackers=()):
    settings = settings_of(variant)
    prepared = prepare(toy_reviews(100), None, settings, bad_rows=BadRows(skip=False))
    torch.manual_seed(0)
    embedding = build_embedding(prepared, settings)
    method = build_method(settings, embedding=embedding, task=prepared.task)
    parts = {"train": prepared.train, "dev": prepared.dev}
    return Trainer(method, settings, **parts, trackers=trackers, checkpoint=path)


@every_variant
def test_a_crash_then_resume_gives_the_same_state(variant, tmp_path, stop_at):
    whole = trainer(variant, tmp_path / "whole")
    whole.run()
    with pytest.raises(RuntimeError, match="crash"):
        trainer(variant, tmp_path / "parts", [stop_at(7)]).run()
    resumed = trainer(variant, tmp_path / "parts")
    resumed.run(resume=True)
    one, other = whole.method.state_dict(), resumed.method.state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert whole.controllers == resumed.controllers


@every_variant
def test_a_saved_model_says_the_same(variant, tmp_path):
    model = fit(toy_reviews(100), settings_of(variant))
    texts = [document.text for document in toy_reviews(20, seed=5)]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert [e.to_dict() for e in again.explain(texts)] == [e.to_dict() for e in model.explain(texts)]
    own = dict(model.method.named_buffers())
    assert all(torch.equal(value, own[name]) for name, value in again.method.named_buffers())


@pytest.mark.parametrize("method", ["bernoulli", "hardkuma", "invase"])
def test_a_regression_trains_to_the_end(method):
    model = fit(toy_scores(100), settings_of(method))
    found = model.evaluate(toy_scores(40, seed=3))
    assert found["mse"] > 0
    assert found["selected"] == pytest.approx(0.2, abs=0.1)


FILLER = tuple("the a of and in on at we they it was had went came saw table door road".split())  # noqa: SIM905
WORDS = {"yes": ("wonderful", "splendid", "delicious"), "no": ("dreadful", "horrid", "tasteless")}


def known_corpus(count, seed):
    """One phrase of two words decides the label; everything else is noise."""
    generator = random.Random(seed)
    documents = []
    for row in range(count):
        label = "yes" if row % 2 else "no"
        before, after = ([generator.choice(FILLER) for _ in range(generator.randint(2, 6))] for _ in range(2))
        phrase = " ".join(generator.sample(WORDS[label], 2))
        start = len(" ".join(before)) + 1
        documents.append(
            Document(" ".join([*before, phrase, *after]), label, ((start, start + len(phrase)),), row)
        )
    return documents


@pytest.mark.parametrize("variant", ["bernoulli", "bernoulli, dependent", "hardkuma, share only", "invase"])
def test_it_learns_which_words_decide(variant):
    changes = {
        "text.width": 16,
        "encoder.hidden_width": 16,
        "training.learning_rate": 0.01,
        "training.least_round_steps": 40,
        "training.most_round_steps": 40,
        "training.warm_up_rounds": 2,
        "training.joint_rounds": 4,
        "training.settle_steps": 20,
        "training.batch_documents": 32,
    }
    settings = settings_of(variant, **changes).model_copy(update={"select": 0.2})
    found = fit(known_corpus(400, 0), settings).evaluate(known_corpus(200, 1))
    assert found["accuracy"] > 0.9
    assert found["rationale"]["f1"] > 0.4, "random words have 0.2"
    assert found["selected"] == pytest.approx(0.2, rel=0.2)
