"""InfoCal: what each objective may move, and that nothing leaks past the mask."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.losses.calibration import effect
from infocal.methods.base import Conditions

EVERYTHING = {
    "loss__imitation": 0.5,
    "loss__fluency": 0.1,
    "loss__fused_lasso": 0.1,
    "loss__rationale_supervision": 1.0,
}
OBJECTIVES = {
    "prediction",
    "guidance",
    "selection_information",
    "guider_information",
    "imitation",
    "discrimination",
    "fluency",
    "fused_lasso",
    "token_calibration",
    "rationale_supervision",
}


def joint(seed=0, offset=0.0):
    return Conditions("joint", offset, torch.Generator().manual_seed(seed))


def gradient_norm(loss, module):
    parameters = [p for p in module.parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    return sum(float(g.abs().sum()) for g in found if g is not None)


@pytest.fixture
def objectives(tiny, network, batch):
    method = network(tiny(**EVERYTHING))
    step = method.step(batch, joint())
    return method, step


def test_every_objective_is_named_and_unreduced(objectives, batch):
    _, step = objectives
    assert set(step.objectives) == OBJECTIVES
    assert all(value.shape == (len(batch.ids),) for value in step.objectives.values())
    assert step.tokens == int(batch.mask.sum())
    assert 0 <= step.selected <= step.tokens


def test_objectives_of_weight_zero_are_not_computed(tiny, network, batch):
    method = network(tiny(loss__imitation=0.0, loss__token_calibration=0.0))
    found = method.step(batch, joint()).objectives
    assert set(found) == {"prediction", "guidance", "selection_information", "guider_information"}
    assert [player.name for player in method.players()] == ["rationalizer"]


@pytest.mark.parametrize(
    "name",
    [
        "prediction",
        "selection_information",
        "imitation",
        "fluency",
        "fused_lasso",
        "token_calibration",
        "rationale_supervision",
    ],
)
def test_gradient_reaches_the_selector(objectives, name):
    method, step = objectives
    assert gradient_norm(step.objectives[name].sum(), method.selector) > 0


@pytest.mark.parametrize("name", ["guidance", "guider_information", "discrimination"])
def test_gradient_does_not_reach_the_selector(objectives, name):
    method, step = objectives
    assert gradient_norm(step.objectives[name].sum(), method.selector) == 0


def test_calibration_moves_the_selector_only(objectives):
    method, step = objectives
    assert gradient_norm(step.objectives["token_calibration"].sum(), method.guider) == 0


def test_imitation_moves_the_selector_only_unless_it_is_the_papers(tiny, network, batch):
    reached = {}
    for reach in ("selector", "everything"):
        method = network(tiny(**EVERYTHING, loss__imitation_reach=reach))
        loss = method.step(batch, joint()).objectives["imitation"].sum()
        parts = (method.selector, method.guider, method.embedding)
        reached[reach] = [gradient_norm(loss, part) > 0 for part in parts]
        assert method.guider.training
        assert all(parameter.requires_grad for parameter in method.guider.parameters())
    assert reached == {"selector": [True, False, True], "everything": [True, True, True]}


def test_discrimination_moves_the_discriminator_only(objectives):
    method, step = objectives
    loss = step.objectives["discrimination"].sum()
    assert gradient_norm(loss, method.discriminator) > 0
    assert gradient_norm(loss, method.guider) == gradient_norm(loss, method.head) == 0


def test_no_parameter_belongs_to_two_players_and_the_language_model_to_none(tiny, network):
    method = network(tiny(**EVERYTHING))
    owned = [id(p) for player in method.players() for p in player.parameters()]
    assert len(owned) == len(set(owned))
    assert not {id(p) for p in method.language_model.parameters()} & set(owned)
    trainable = {id(p) for p in method.parameters() if p.requires_grad}
    assert trainable == set(owned)


def test_warm_up_trains_the_full_text_side_only(tiny, network, batch):
    method = network(tiny())
    step = method.step(batch, Conditions("warm_up", 0.0, torch.Generator().manual_seed(0)))
    assert set(step.objectives) == {"guidance", "guider_information"}
    assert step.selected is None
    assert gradient_norm(step.objectives["guidance"].sum(), method.selector) == 0


def test_sharing_of_the_encoder_is_a_setting(tiny, network):
    together, apart = network(tiny()), network(tiny(model__sharing="head"))
    assert together.predictor is together.guider
    assert apart.predictor is not apart.guider
    apart.begin_joint()
    for one, other in zip(apart.predictor.parameters(), apart.guider.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_selector_starts_from_the_guider(tiny, network):
    method = network(tiny())
    method.begin_joint()
    pairs = zip(method.selector.encoder.parameters(), method.guider.encoder.parameters(), strict=True)
    assert all(torch.equal(one, other) and one is not other for one, other in pairs)


def test_a_step_is_a_function_of_batch_conditions_and_weights(tiny, network, batch):
    method = network(tiny(encoder__dropout=0.0, model__input_dropout=0.0, model__token_dropout=0.0))
    first, second = (method.step(batch, joint(seed=5)).objectives for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = method.step(batch, joint(seed=6)).objectives
    assert not torch.equal(first["prediction"], other["prediction"])


def test_a_higher_offset_selects_less(tiny, network, batch):
    method = network(tiny())
    shares = [method.step(batch, joint(offset=offset)).selected for offset in (-20.0, 0.0, 20.0)]
    assert shares[0] == int(batch.mask.sum())
    assert shares[0] > shares[1] > shares[2] == 0


def test_training_masks_are_exactly_zero_or_one(tiny, network, batch):
    mask = network(tiny()).forward(batch, joint()).selection.mask
    assert set(mask.unique().tolist()) <= {0.0, 1.0}
    assert not mask[~batch.mask].any()


@pytest.mark.parametrize("kind", ["gru", "lstm", "rcnn"])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_unselected_words_do_not_change_the_prediction_by_one_bit(kind, data):
    from infocal.config import load_settings
    from infocal.methods import build_method
    from infocal.nn.embedding import TokenEmbedding
    from infocal.tasks import Classification
    from infocal.types import Batch

    choices = {"text.width": 6, "encoder.hidden_width": 5, "model.feature_width": 4, "encoder.kind": kind}
    torch.manual_seed(0)
    method = build_method(
        load_settings("infocal", choices),
        embedding=TokenEmbedding(size=30, width=6),
        task=Classification(("a", "b")),
    ).eval()
    length = data.draw(st.integers(1, 12))
    draw_ids = st.lists(st.integers(1, 29), min_size=length, max_size=length)
    first, second = torch.tensor([data.draw(draw_ids)]), torch.tensor([data.draw(draw_ids)])
    chosen = torch.tensor([data.draw(st.lists(st.booleans(), min_size=length, max_size=length))])
    changed = torch.where(chosen, first, second)
    everything = torch.ones_like(chosen)
    one, two = (
        method.predict(Batch(ids=ids, mask=everything, rows=torch.zeros(1)), chosen) for ids in (first, changed)
    )
    assert torch.equal(one, two)


def test_selected_words_do_change_the_prediction(tiny, network, batch):
    method = network(tiny()).eval()
    chosen = torch.zeros_like(batch.mask)
    chosen[:, 0] = True
    before = method.predict(batch, chosen)
    batch.ids[:, 0] = (batch.ids[:, 0] + 7) % 49 + 1
    assert not torch.equal(before, method.predict(batch, chosen))


def test_inference_is_deterministic(tiny, network, batch):
    method = network(tiny()).eval()
    assert torch.equal(method.score_tokens(batch), method.score_tokens(batch))
    assert torch.equal(method.predict(batch, batch.mask), method.predict_full(batch))


def test_attribution_is_the_norm_of_the_margins_gradient(tiny, network, batch):
    method = network(tiny(loss__calibration_attribution="norm")).eval().double()
    attribution = method.attribution(batch)
    vectors = method.embedding(batch.ids).detach()
    step, row, token = 1e-6, 0, 2

    def margin(values):
        return method.task.margin(method.head(method.guider(values, batch.mask).sample))[row].item()

    slopes = []
    for place in range(vectors.shape[-1]):
        up, down = vectors.clone(), vectors.clone()
        up[row, token, place] += step
        down[row, token, place] -= step
        slopes.append((margin(up) - margin(down)) / (2 * step))
    assert attribution[row, token].item() == pytest.approx(sum(s * s for s in slopes) ** 0.5, rel=1e-4)
    assert not attribution[~batch.mask].any()


def test_attribution_leaves_the_mode_of_the_network_alone(tiny, network, batch):
    method = network(tiny())
    method.train()
    wanting = [parameter.requires_grad for parameter in method.parameters()]
    method.attribution(batch)
    assert method.training and method.guider.training
    assert [parameter.requires_grad for parameter in method.parameters()] == wanting
    assert all(parameter.grad is None for parameter in method.parameters())


@pytest.mark.parametrize("scores", [False, True])
def test_printed_losses_are_plain(tiny, network, batch, scores):
    numbers = torch.tensor([0.1, 0.9, 0.5, 0.0, 1.0]) if scores else batch.targets
    given = type(batch)(batch.ids, batch.mask, batch.rows, numbers, batch.gold, batch.annotated)
    found = {}
    for scale in ("task", "printed"):
        method = network(tiny(loss__scale=scale), scores=scores).eval()
        found[scale] = method.step(given, joint()).objectives
    for name in ("prediction", "guidance"):
        torch.testing.assert_close(found["printed"][name], found["task"][name] * method.task.unit)
    logits = method.predict_full(given)
    plain = (torch.sigmoid(logits[:, 0]) - numbers) ** 2 if scores else -logits.log_softmax(1)[range(5), numbers]
    torch.testing.assert_close(method.task_loss(logits, given), plain)


def test_without_guidance_the_full_text_is_read_by_what_was_trained(tiny, network, batch):
    method = network(tiny(loss__guidance=0.0, model__sharing="head")).eval()
    assert not method.learns_full_text
    assert torch.equal(method.predict_full(batch), method.predict(batch, batch.mask))


def test_scores_have_objectives_too(tiny, network, batch):
    method = network(tiny(**EVERYTHING), scores=True)
    numbers = torch.tensor([0.1, 0.9, 0.5, 0.0, 1.0])
    scored = type(batch)(batch.ids, batch.mask, batch.rows, numbers, batch.gold, batch.annotated)
    found = method.step(scored, joint()).objectives
    assert set(found) == OBJECTIVES
    assert gradient_norm(found["token_calibration"].sum(), method.selector) > 0


def test_a_pinned_weight_frees_the_scores_and_the_controller_binds_them(tiny, network):
    """Scores relative to their document could not all fall when a cost per word asks for fewer words."""
    assert network(tiny()).selector.centred
    assert not network(tiny(loss__selection_information=0.1)).selector.centred


def test_decoders_cut_the_log_odds_or_those_relative_to_their_document(tiny, network, batch):
    own = network(tiny(model__score_reference="own")).eval()
    balanced = network(tiny(model__score_reference="balanced")).eval()
    log_odds = own.score_tokens(batch)
    assert torch.equal(own.decoding_scores(batch), log_odds)
    assert torch.equal(balanced.score_tokens(batch), log_odds)
    found = balanced.decoding_scores(batch)
    for row, mask in enumerate(batch.mask):
        raw = log_odds[row][mask]
        middle = (raw.mean() + raw.exp().sum().log()) / 2
        torch.testing.assert_close(found[row][mask], raw - middle)
    balanced.score_tokens = lambda batch: log_odds + 7.0
    torch.testing.assert_close(balanced.decoding_scores(batch)[batch.mask], found[batch.mask])


def test_attribution_by_effect_is_made_of_the_same_gradient(tiny, network, batch):
    plain, mixed = network(tiny(loss__calibration_attribution="norm")), network(tiny())
    vectors = plain.embedding(batch.ids).detach().requires_grad_(True)
    plain.eval()
    margin = plain.task.margin(plain.head(plain.guider(vectors, batch.mask).sample))
    (gradient,) = torch.autograd.grad(margin.sum(), vectors)
    torch.testing.assert_close(plain.attribution(batch), gradient.norm(dim=-1) * batch.mask)
    torch.testing.assert_close(mixed.attribution(batch), effect(gradient, vectors.detach(), batch.mask))


def test_settling_needs_to_know_what_is_selected(tiny, network, batch):
    method = network(tiny())
    conditions = Conditions("settle", 0.0, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="selected words"):
        method.step(batch, conditions)
