"""Attention, L2X and CAR: what each objective may move, that nothing leaks past the mask, and that they learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.errors import SettingsError
from infocal.evaluation.decoding import select_share
from infocal.fitting import fit
from infocal.loading import load_one as load
from infocal.losses.classwise import doubt, share_gap
from infocal.losses.imitating import answer_cross_entropy, answer_error
from infocal.methods import build_method
from infocal.methods.base import Conditions
from infocal.methods.parts import targets_of
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.gates import straight_through, subset_gumbel, subset_sizes
from infocal.tasks import Classification
from infocal.training.loop import Trainer
from infocal.training.preparation import build_embedding, prepare

METHODS = ["attention", "l2x", "car"]
TINY = {
    "text.width": 12,
    "encoder.hidden_width": 10,
    "training.batch_documents": 16,
    "training.least_round_steps": 4,
    "training.most_round_steps": 6,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 2,
    "training.settle_steps": 2,
    "training.checkpoint_seconds": 0.0,
}
QUIET = {"encoder__dropout": 0.0, "model__input_dropout": 0.0, "model__token_dropout": 0.0}
REACHES = {
    ("attention", "warm_up"): {"prediction": {"embedding", "predictor"}},
    ("attention", "joint"): {"prediction": {"embedding", "predictor"}},
    ("l2x", "warm_up"): {"guidance": {"embedding", "explained"}},
    ("l2x", "joint"): {"answer_imitation": {"selector", "approximator"}},
    ("car", "warm_up"): {"guidance": {"embedding", "classifier"}},
    ("car", "joint"): {
        "factual": {"factual"},
        "counterfactual": {"counterfactual"},
        "sparsity": {"factual", "counterfactual"},
        "continuity": {"factual", "counterfactual"},
        "discrimination": {"discriminator"},
        "prediction": {"predictor"},
    },
}
"""For each objective the parts that its gradient reaches; a player moves its own part of them only."""
OWNERS = {
    "attention": {"prediction": {"embedding", "predictor"}},
    "l2x": {"guidance": {"embedding", "explained"}, "answer_imitation": {"selector", "approximator"}},
    "car": {
        "guidance": {"embedding", "classifier"},
        "prediction": {"predictor"},
        "factual": {"factual"},
        "counterfactual": {"counterfactual"},
        "sparsity": {"factual", "counterfactual"},
        "continuity": {"factual", "counterfactual"},
        "discrimination": {"discriminator"},
    },
}


def settings_of(method, **changes):
    named = {name.replace("__", "."): value for name, value in changes.items() if "__" in name}
    top = {name: value for name, value in changes.items() if "__" not in name}
    return load_settings(None, {**TINY, **named}, method=method, **top)


def conditions(phase="joint", seed=0):
    return Conditions(phase, 0.0, torch.Generator().manual_seed(seed))


def reached(loss, method):
    """The names of the parts that a loss would move."""
    found = set()
    for name, part in method.named_children():
        parameters = list(part.parameters())
        if parameters:
            gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            if any(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients):
                found.add(name)
    return found


@pytest.mark.parametrize(("method", "phase"), list(REACHES))
def test_objectives_are_named_and_unreduced_and_reach_what_they_should(network, batch, method, phase):
    built = network(settings_of(method))
    step = built.step(batch, conditions(phase))
    assert all(value.shape == (len(batch.ids),) for value in step.objectives.values())
    assert {name: reached(value.sum(), built) for name, value in step.objectives.items()} == REACHES[method, phase]
    assert step.tokens == int(batch.mask.sum())


@pytest.mark.parametrize("method", METHODS)
def test_players_share_no_parameter_and_own_every_one(network, method):
    built = network(settings_of(method))
    owned = [id(parameter) for player in built.players() for parameter in player.parameters()]
    assert len(owned) == len(set(owned))
    assert set(owned) == {id(parameter) for parameter in built.parameters()}


@pytest.mark.parametrize("method", METHODS)
def test_each_objective_moves_its_owner_only(network, batch, method):
    built = network(settings_of(method))
    parts = {name: {id(p) for p in part.parameters()} for name, part in built.named_children()}
    for player in built.players():
        own = {id(p) for p in player.parameters()}
        for phase in ("warm_up", "joint"):
            for name, value in built.step(batch, conditions(phase)).objectives.items():
                if name in player.weights:
                    moved = {part for part in reached(value.sum(), built) if parts[part] <= own}
                    assert moved == OWNERS[method][name]


@pytest.mark.parametrize("method", METHODS)
def test_with_the_mask_fixed_unselected_words_do_not_change_the_prediction_by_one_bit(network, batch, method):
    built = network(settings_of(method)).eval()
    chosen = (torch.arange(batch.mask.shape[1]) % 3 == 1) & batch.mask
    changed = replace(batch, ids=torch.where(chosen | ~batch.mask, batch.ids, (batch.ids + 7) % 49 + 1))
    assert not torch.equal(batch.ids, changed.ids)
    assert torch.equal(built.predict(batch, chosen), built.predict(changed, chosen))
    other = replace(batch, ids=torch.where(chosen, (batch.ids + 7) % 49 + 1, batch.ids))
    assert not torch.equal(built.predict(batch, chosen), built.predict(other, chosen))


@pytest.mark.parametrize("method", METHODS)
def test_inference_is_deterministic_and_ignores_padding(network, batch, method):
    built = network(settings_of(method)).eval()
    assert torch.equal(built.score_tokens(batch), built.score_tokens(batch))
    assert torch.equal(built.predict_full(batch), built.predict_full(batch))
    short = replace(batch, ids=batch.ids[1:2, :3], mask=batch.mask[1:2, :3])
    torch.testing.assert_close(built.score_tokens(short), built.score_tokens(batch)[1:2, :3])
    torch.testing.assert_close(built.predict_full(short), built.predict_full(batch)[1:2])


@pytest.mark.parametrize("method", METHODS)
def test_a_step_is_a_function_of_batch_conditions_and_weights(network, batch, method):
    built = network(settings_of(method, **QUIET))
    first, second = (built.step(batch, conditions(seed=5)) for _ in range(2))
    assert all(torch.equal(first.objectives[name], second.objectives[name]) for name in first.objectives)
    assert first.selected == second.selected


def test_attention_scores_are_the_logarithms_of_its_weights(network, batch):
    built = network(settings_of("attention")).eval()
    weights = torch.where(batch.mask, built.score_tokens(batch).exp(), 0.0)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(batch.ids)))
    states = built.predictor.encoder(built.embedding(batch.ids), batch.mask)
    pooled = torch.einsum("bt,btd->bd", weights, states)
    torch.testing.assert_close(built.predictor.head(pooled), built.predict_full(batch))
    assert torch.equal(built.predict(batch, batch.mask), built.predict_full(batch))
    assert built.judged_by_full_text
    assert built.step(batch, conditions()).selected is None


def test_the_subset_gate_is_the_largest_of_k_gumbel_softmax_samples():
    rng = np.random.default_rng(0)
    logits, lengths, sizes = rng.normal(size=(3, 6)).astype(np.float32), (6, 4, 1), (3, 2, 1)
    mask = np.arange(6) < np.array(lengths)[:, None]
    found = subset_gumbel(
        torch.from_numpy(logits),
        torch.from_numpy(mask),
        torch.tensor(sizes),
        temperature=0.5,
        generator=torch.Generator().manual_seed(4),
    ).numpy()
    uniform = torch.rand(3, 3, 6, generator=torch.Generator().manual_seed(4)).numpy().astype(np.float64)
    expected = np.zeros((3, 6))
    for row, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        for sample in range(size):
            noisy = np.exp((logits[row, :length] - np.log(-np.log(uniform[row, sample, :length]))) / 0.5)
            expected[row, :length] = np.maximum(expected[row, :length], noisy / noisy.sum())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert not found[~mask].any()


def test_at_a_low_temperature_the_subset_gate_draws_at_most_k_tokens_and_the_likely_ones():
    logits = torch.tensor([[3.0, 0.0, 3.0, 0.0, 0.0, 0.0]]).expand(4000, 6)
    drawn = subset_gumbel(
        logits,
        torch.ones(4000, 6, dtype=torch.bool),
        torch.full((4000,), 2),
        temperature=0.01,
        generator=torch.Generator().manual_seed(0),
    )
    assert (drawn > 0.5).sum(dim=1).max() == 2
    likely = float(torch.softmax(logits[0], dim=0)[0])
    assert float((drawn[:, 0] > 0.5).float().mean()) == pytest.approx(1 - (1 - likely) ** 2, abs=0.03)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.25, 0.5, 0.9])
def test_k_is_that_of_the_decoder(share):
    lengths = np.arange(1, 60)
    mask = torch.arange(60) < torch.from_numpy(lengths)[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    selected = select_share(np.random.default_rng(0).normal(size=offsets[-1]), offsets, share=share)
    assert subset_sizes(mask, share=share).tolist() == np.add.reduceat(selected, offsets[:-1]).tolist()


def test_l2x_counts_k_words_per_document(network, batch):
    step = network(settings_of("l2x", select=0.4)).step(batch, conditions())
    assert step.selected == 4 + 1 + 3 + 1 + 4  # of 9, 3, 7, 1 and 9 words


def test_l2x_imitates_the_answers_not_the_labels(network, batch):
    built = network(settings_of("l2x", **QUIET))
    first = built.step(batch, conditions()).objectives["answer_imitation"]
    others = replace(batch, targets=(batch.targets + 1) % 3)
    assert torch.equal(first, built.step(others, conditions()).objectives["answer_imitation"])
    with torch.no_grad():
        built.explained.head.bias += torch.tensor([3.0, 0.0, 0.0])
    assert not torch.equal(first, built.step(batch, conditions()).objectives["answer_imitation"])


def test_l2x_asks_the_explained_model_without_its_dropout(network, batch):
    built = network(settings_of("l2x", encoder__dropout=0.5)).train()
    assert torch.equal(built._answers(batch), built._answers(batch))
    assert built.explained.training


def test_the_distance_to_an_answer_against_numpy():
    rng = np.random.default_rng(1)
    logits, answers = rng.normal(size=(2, 4, 3))
    softmax = np.exp(answers) / np.exp(answers).sum(1, keepdims=True)
    expected = -(softmax * (logits - np.log(np.exp(logits).sum(1, keepdims=True)))).sum(1)
    found = answer_cross_entropy(torch.tensor(logits), torch.tensor(answers))
    np.testing.assert_allclose(found.numpy(), expected)
    one, other = 1 / (1 + np.exp(-logits[:, 0])), 1 / (1 + np.exp(-answers[:, 0]))
    found = answer_error(torch.tensor(logits[:, :1]), torch.tensor(answers[:, :1]))
    np.testing.assert_allclose(found.numpy(), (one - other) ** 2)


def test_a_sure_answer_costs_what_the_task_charges_for_the_label(network, batch):
    built = network(settings_of("l2x"))
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    sure = 1e4 * torch.nn.functional.one_hot(batch.targets, 3).float()
    torch.testing.assert_close(built._imitation(logits, sure), built.task.loss(logits, batch.targets))
    scored = network(settings_of("l2x"), scores=True)
    answers = torch.tensor([[-1.0], [0.3]])
    expected = scored.task.loss(logits[:2, :1], torch.sigmoid(answers[:, 0]))
    torch.testing.assert_close(scored._imitation(logits[:2, :1], answers), expected)


@pytest.mark.parametrize("method", ["attention", "l2x"])
def test_scores_can_be_predicted_too(network, batch, method):
    built = network(settings_of(method), scores=True)
    scored = replace(batch, targets=torch.tensor([0.1, 0.9, 0.5, 0.0, 1.0]))
    for phase in ("warm_up", "joint"):
        objectives = built.step(scored, conditions(phase)).objectives
        assert {name: reached(v.sum(), built) for name, v in objectives.items()} == REACHES[method, phase]


def test_car_refuses_scores(network):
    with pytest.raises(SettingsError, match="scores have no classes"):
        network(settings_of("car"), scores=True)


@pytest.mark.parametrize("method", ["l2x", "car"])
def test_what_needs_a_warm_up_says_so(network, method):
    with pytest.raises(SettingsError, match="warm_up_rounds is 0"):
        network(settings_of(method, training__warm_up_rounds=0))


@pytest.mark.parametrize("method", ["l2x", "car"])
def test_what_needs_its_own_settings_says_so(network, method):
    bare = load_settings("infocal", TINY).model_copy(update={"method": method})
    with pytest.raises(SettingsError, match=f"recipe {method}"):
        network(bare)


def test_the_game_starts_from_the_classifier_or_not(network):
    for together in (True, False):
        built = network(settings_of("car", model__initialise_selector=together))
        built.begin_joint()
        for part in (built.factual, built.counterfactual, built.discriminator, built.predictor):
            pairs = zip(part.encoder.parameters(), built.classifier.encoder.parameters(), strict=True)
            assert all(torch.equal(one, other) and one is not other for one, other in pairs) is together


def test_every_other_class_is_argued_for_and_never_the_own(network):
    built = network(settings_of("car"))
    classes = torch.arange(3).repeat(2000)
    others = built._other_classes(classes, torch.Generator().manual_seed(0))
    assert not (others == classes).any()
    counts = torch.bincount(classes * 3 + others, minlength=9).view(3, 3)
    assert counts[~torch.eye(3, dtype=torch.bool)].min() > 900


def test_with_two_classes_the_other_one_is_argued_for():
    embedding = TokenEmbedding(size=9, width=12)
    built = build_method(settings_of("car"), embedding=embedding, task=Classification(("a", "b")))
    assert built._other_classes(torch.tensor([0, 1, 1]), torch.Generator()).tolist() == [1, 0, 0]


def test_car_shows_the_words_of_the_class_that_the_classifier_names(network, batch):
    built = network(settings_of("car")).eval()
    for name in range(3):
        with torch.no_grad():
            built.classifier.head.bias.copy_(torch.eye(3)[name] * 100)
        classes = torch.full((len(batch.ids),), name)
        expected = built.factual(built.embedding(batch.ids), batch.mask, classes)
        assert torch.equal(built.score_tokens(batch), expected)


def test_the_noise_free_gate_is_hard_in_value_and_soft_in_gradient():
    logits = torch.tensor([[-0.2, 0.1, 4.0]], requires_grad=True)
    gate = straight_through(logits, temperature=2.0)
    assert gate.tolist() == [[0.0, 1.0, 1.0]]
    (found,) = torch.autograd.grad(gate.sum(), logits)
    soft = torch.sigmoid(logits.detach() / 2)
    torch.testing.assert_close(found, soft * (1 - soft) / 2)


def test_the_gap_to_the_share_is_that_of_all_texts_that_a_generator_reads():
    selection = torch.tensor(
        [[1.0, 1.0, 0.0, 9.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], requires_grad=True
    )
    mask = torch.tensor([[True, True, True, False], [True, True, True, True], [True, True, False, False]])
    one = torch.zeros(3, dtype=torch.int64)
    gap = share_gap(selection, mask, one, share=0.2)
    torch.testing.assert_close(gap, torch.full((3,), abs(4 / 9 - 0.2)))
    (gradient,) = torch.autograd.grad(gap.mean(), selection)
    torch.testing.assert_close(gradient, mask.float() / 9)
    torch.testing.assert_close(share_gap(selection, mask, one, share=0.6), torch.full((3,), 0.6 - 4 / 9))
    two = torch.tensor([1, 1, 0])
    expected = torch.tensor([3 / 7 - 0.2, 3 / 7 - 0.2, 0.5 - 0.2])
    torch.testing.assert_close(share_gap(selection, mask, two, share=0.2), expected)


def test_the_controller_moves_the_generators_of_both_roles(network, batch):
    built = network(settings_of("car"))
    masks = []
    built._judge = lambda _, __, selections, ___: masks.extend(selections) or tuple(s.sum(1) for s in selections)
    for offset in (-50.0, 50.0):
        built.step(batch, Conditions("joint", offset, torch.Generator().manual_seed(0)))
    everything, nothing = masks[:4], masks[4:]
    assert all(torch.equal(mask.detach(), batch.mask.float()) for mask in everything)
    assert not any(mask.detach().any() for mask in nothing)


def test_the_discriminators_say_of_two_rationales_in_one_pass_what_they_say_of_each(network, batch):
    built = network(settings_of("car", **QUIET)).eval()
    vectors, mask, classes = built.embedding(batch.ids), batch.mask, targets_of(batch)
    others = (classes + 1) % 3
    one, other = mask.float(), (torch.arange(mask.shape[1]) % 2 == 0) * mask.float()
    found = built._judge(vectors, mask, (one, other), (classes, others))
    for log_odds, selection, asked in zip(found, (one, other), (classes, others), strict=True):
        alone = built.discriminator(vectors * selection.unsqueeze(-1), mask)
        torch.testing.assert_close(log_odds, alone[torch.arange(len(asked)), asked])


def test_doubt_is_what_is_left_of_the_discriminators_belief():
    logits = torch.tensor([-3.0, 0.0, 2.0])
    torch.testing.assert_close(doubt(logits), 1 - torch.sigmoid(logits))


@pytest.mark.parametrize("step", [3, 7])
@pytest.mark.parametrize("method", METHODS)
def test_a_crash_in_either_phase_then_resume_gives_the_same_weights(tmp_path, method, step, suppers, stop_at):
    settings = settings_of(method)
    prepared = prepare(suppers(100, 0), None, settings, bad_rows=BadRows(skip=False))

    def run(name, trackers=(), *, resume=False):
        torch.manual_seed(0)
        embedding = build_embedding(prepared, settings)
        built = build_method(settings, embedding=embedding, task=prepared.task)
        data = {"train": prepared.train, "dev": prepared.dev}
        Trainer(built, settings, **data, trackers=trackers, checkpoint=tmp_path / name).run(resume=resume)
        return dict(built.named_parameters())

    whole = run("whole")
    with pytest.raises(RuntimeError, match="crash"):
        run("parts", [stop_at(step)])
    resumed = run("parts", resume=True)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.fixture(scope="module", params=METHODS)
def model(request, suppers):
    torch.set_num_threads(1)
    sizes = {"text.width": 24, "encoder.hidden_width": 24, "training.batch_documents": 32}
    schedule = {
        "training.learning_rate": 0.005,
        "training.least_round_steps": 40,
        "training.warm_up_rounds": 3,
        "training.joint_rounds": {"attention": 4, "l2x": 3, "car": 2}[request.param],
        "training.settle_steps": 20,
    }
    return fit(suppers(500, 0), load_settings(None, {**sizes, **schedule}, method=request.param, select=0.2))


def test_it_learns_what_decides_and_shows_it(model, suppers):
    scores = model.evaluate(suppers(200, 1))
    assert scores["full_text"]["accuracy"] >= 0.95
    assert scores["accuracy"] >= 0.7
    assert scores["rationale"]["f1"] >= 0.4  # words at random: 0.2
    assert scores["selected"] == pytest.approx(0.2, rel=0.15)


def test_a_saved_model_says_the_same(model, tmp_path, suppers):
    texts = [document.text for document in suppers(20, 2)]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.settings.method == model.settings.method
    assert [e.to_dict() for e in again.explain(texts)] == [e.to_dict() for e in model.explain(texts)]
