"""InfoCal on several tasks at once: one network, a selection and an answer for each of them."""

import numpy as np
import pytest
import torch

from infocal import fitting
from infocal.config import load_settings
from infocal.data.corpus import Corpus
from infocal.errors import DataError, ModelError, SettingsError
from infocal.fitting import run_identity
from infocal.losses.information import selection_information
from infocal.methods import build_method
from infocal.methods.base import Conditions
from infocal.methods.task_rows import TaskRows
from infocal.nn.embedding import TokenEmbedding
from infocal.tasks import Classification, Joint, Regression, goal_from_json, parts_of, shares_of
from infocal.training.held_out import HeldOut, threshold_texts
from infocal.training.inference import full_text_outputs, outputs, token_scores
from infocal.training.loop import Trainer
from infocal.training.preparation import Prepared
from infocal.training.tracking import Tracker
from infocal.types import Batch, Features

GOAL = Joint({"law": Classification(("12", "34")), "term": Classification(("low", "middle", "high"))})


def network(settings, seed=0):
    torch.manual_seed(seed)
    return build_method(settings, embedding=TokenEmbedding(size=20, width=settings.text.width), task=GOAL)


def corpus(count=64, seed=0):
    """Word 2 or 3 says the law, word 4, 5 or 6 the term; all others say nothing."""
    generator = np.random.default_rng(seed)
    targets = np.stack([generator.integers(0, 2, count), generator.integers(0, 3, count)], axis=1)
    rows = []
    for law, term in targets:
        words = generator.integers(7, 20, 8)
        places = generator.choice(8, 2, replace=False)
        words[places] = 2 + law, 4 + term
        rows.append(words)
    return Corpus(
        ids=np.concatenate(rows).astype(np.int32),
        offsets=np.arange(count + 1, dtype=np.int64) * 8,
        lines=np.arange(count, dtype=np.int32),
        targets=targets,
    )


@pytest.fixture
def batch():
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    ids = torch.tensor([[2, 9, 5, 11, 7], [3, 4, 8, 0, 0]])
    return Batch(ids=ids, mask=mask, rows=torch.arange(2), targets=torch.tensor([[0, 1], [1, 0]]))


def joint(seed=0):
    return Conditions("joint", torch.zeros(2, 1, 1), torch.Generator().manual_seed(seed))


def test_every_objective_is_a_mean_over_tasks(tiny, batch):
    method = network(tiny(loss__imitation=0.5, loss__fluency=0.1, loss__fused_lasso=0.1))
    step = method.step(batch, joint())
    assert set(step.objectives) >= {
        "prediction",
        "guidance",
        "imitation",
        "discrimination",
        "fluency",
        "fused_lasso",
    }
    assert all(value.shape == (2,) for value in step.objectives.values())
    assert len(step.selected) == 2
    assert all(0 <= count <= step.tokens for count in step.selected)


def test_each_task_predicts_from_its_own_selection_alone(tiny, batch):
    """The gradient of one task's outputs reaches the scores of its own selection and no other."""
    method = network(tiny())
    method.eval()
    output = method.forward(batch, joint())
    law, term = output.logits[:, :2].square().sum(), output.logits[:, 2:].square().sum()
    for own, loss in enumerate((law, term)):
        (gradient,) = torch.autograd.grad(loss, output.selection.logits, retain_graph=True)
        first, second = gradient.chunk(2)
        assert (first.abs().sum() > 0) == (own == 0)
        assert (second.abs().sum() > 0) == (own == 1)


def test_attributions_are_those_of_each_task_by_itself(tiny, batch):
    method = network(tiny())
    both = method.attribution(batch)
    method.train()
    vectors = method.embedding(batch.ids).detach().requires_grad_(True)
    method.eval()
    features = method.guider(vectors, batch.mask).sample
    for place, (task, own) in enumerate(zip(parts_of(GOAL), (slice(0, 2), slice(2, 5)), strict=True)):
        part = method.head(features[:, place])[:, own]
        (gradient,) = torch.autograd.grad(task.margin(part).sum(), vectors, retain_graph=True)
        expected = method._attributed(gradient, vectors.detach(), batch.mask)
        torch.testing.assert_close(both.chunk(2)[place], expected)


def test_each_task_attends_by_itself(tiny, batch):
    """What one task attends to changes its own answers, from selected words and from all, and no other's."""
    method = network(tiny()).eval()
    selected = torch.tensor([[True, False, False, True, False], [True, True, False, False, False]])

    def answers():
        return method.predict(batch, selected), method.predict_full(batch), method.forward(batch, joint()).logits

    before = answers()
    with torch.no_grad():
        method.guider.attention.weight[1] += 1.0
    for old, new in zip(before, answers(), strict=True):
        assert torch.equal(old[:, :2], new[:, :2])
        assert not torch.equal(old[:, 2:], new[:, 2:])


def test_rows_and_features_of_tasks():
    rows = TaskRows(parts_of(GOAL))
    values = torch.arange(3.0)
    assert rows.copies(values).tolist() == [0, 1, 2, 0, 1, 2]
    assert rows.mean(torch.tensor([0.0, 1, 2, 4, 5, 6])).tolist() == [2, 3, 4]
    features = torch.arange(24.0).view(6, 2, 2)  # (k * b, k, f)
    own = rows.own(Features(features, features + 100, -features))
    expected = [[0.0, 1], [4, 5], [8, 9], [14, 15], [18, 19], [22, 23]]
    assert own.mean.tolist() == expected
    assert own.deviation.tolist() == (torch.tensor(expected) + 100).tolist()
    assert own.sample.tolist() == (-torch.tensor(expected)).tolist()
    assert rows.by_task(features[:3]).tolist() == [[0, 1], [4, 5], [8, 9], [2, 3], [6, 7], [10, 11]]
    one = torch.arange(10.0).view(2, 5)
    assert rows.joined([one, -one]).tolist() == [[0, 1, -2, -3, -4], [5, 6, -7, -8, -9]]


def test_a_view_is_one_task_of_the_whole(tiny, batch):
    method = network(tiny())
    method.eval()
    scores, full = method.score_tokens(batch), method.predict_full(batch)
    selected = torch.tensor([[True, False, False, True, False], [False, True, False, False, False]])
    views = method.views()
    assert [view.task for view in views] == list(GOAL.tasks.values())
    for place, (view, own) in enumerate(zip(views, (slice(0, 2), slice(2, 5)), strict=True)):
        assert torch.equal(view.score_tokens(batch), scores[place])
        assert torch.equal(view.predict_full(batch), full[:, own])
        assert torch.equal(view.predict(batch, selected), method.predict(batch, selected)[:, own])
        assert not view.training
        with pytest.raises(TypeError, match="not trained"):
            view.step(batch, joint())
    views[0].train()
    assert method.training


def test_unselected_words_do_not_matter(tiny, batch):
    view = network(tiny()).eval().views()[1]
    selected = torch.tensor([[True, False, False, True, False], [False, True, False, False, False]])
    other = Batch(ids=torch.where(selected, batch.ids, 19) * batch.mask, mask=batch.mask, rows=batch.rows)
    assert torch.equal(view.predict(batch, selected), view.predict(other, selected))


def test_the_words_of_each_task_are_found(tiny):
    """Two tasks, a word for each: after training, each selection has its own task's words."""
    settings = tiny(
        select=0.125,
        training__warm_up_rounds=6,
        training__most_round_steps=40,
        training__least_round_steps=40,
        training__joint_rounds=3,
        training__settle_steps=10,
        training__learning_rate=0.01,
        loss__calibration_window=1,
        text__width=32,
        encoder__hidden_width=32,
        model__feature_width=32,
    )
    train, dev = corpus(256), corpus(64, seed=1)
    trainer = Trainer(network(settings), settings, train=train, dev=dev)
    history = trainer.run().history
    assert {"law", "term"} == set(history[-1]["dev"]["selection"])
    shares = [controller.offset for controller in trainer.controllers]
    assert len(set(shares)) == 2  # each task has its own
    for view, words, targets in zip(trainer.method.views(), ({2, 3}, {4, 5, 6}), dev.targets.T, strict=True):
        best = token_scores(view, dev).reshape(len(dev), 8).argmax(axis=1)
        chosen = dev.ids.reshape(len(dev), 8)[np.arange(len(dev)), best]
        assert np.isin(chosen, list(words)).mean() > 0.9
        selected = np.zeros((len(dev), 8), dtype=np.bool_)
        selected[np.arange(len(dev)), best] = True
        found = outputs(view, dev, selected.ravel())
        assert (found.argmax(axis=1) == targets).mean() > 0.9
        assert (full_text_outputs(view, dev).argmax(axis=1) == targets).mean() > 0.9


def test_settling_reads_the_selection_of_each_view(tiny):
    method, dev = network(tiny()), corpus(30)
    held_out = HeldOut(method, dev, shares=(0.25,) * len(method.views()), texts=threshold_texts(dev, dev))
    mask = torch.ones(3, 8, dtype=torch.bool)
    batch = Batch(
        ids=torch.from_numpy(dev.ids[:24].reshape(3, 8).astype(np.int64)),
        mask=mask,
        rows=torch.arange(3),
        targets=torch.from_numpy(dev.targets[:3]),
    )
    selected = held_out.selected(batch)
    assert selected.shape == (2, 3, 8)
    assert not torch.equal(selected[0], selected[1])
    settle = Conditions("settle", 0.0, torch.Generator().manual_seed(0), selected)
    step = method.step(batch, settle)
    assert step.selected == tuple(float(part.sum()) for part in selected)


def test_each_task_may_have_a_share_of_its_own(tiny, batch):
    settings = tiny(select={"law": 0.125, "term": 0.5})
    method, dev = network(settings), corpus(30)
    trainer = Trainer(method, settings, train=corpus(64), dev=dev)
    assert [controller.target for controller in trainer.controllers] == [0.125, 0.5]
    mask = torch.ones(30, 8, dtype=torch.bool)
    whole = Batch(ids=torch.from_numpy(dev.ids.reshape(30, 8).astype(np.int64)), mask=mask, rows=torch.arange(30))
    law, term = trainer.held_out.selected(whole).float().mean(dim=(1, 2)).tolist()
    assert law == pytest.approx(0.125, abs=0.05)
    assert term == pytest.approx(0.5, abs=0.1)
    output = method(batch, joint())
    found = method.objectives(output, batch, joint())["selection_information"]
    parts = zip(output.selection.logits.chunk(2), (0.125, 0.5), strict=True)
    by_hand = [selection_information(logits, batch.mask, prior=share) for logits, share in parts]
    torch.testing.assert_close(found, sum(by_hand) / 2)


def test_shares_go_with_labels():
    assert shares_of(GOAL, 0.2) == (0.2, 0.2)
    assert shares_of(GOAL, {"term": 0.3, "law": 0.1}) == (0.1, 0.3)
    for wrong in ({"law": 0.1}, {"law": 0.1, "term": 0.3, "money": 0.2}):
        with pytest.raises(SettingsError, match="allowed: one for each of law, term"):
            shares_of(GOAL, wrong)
    with pytest.raises(SettingsError, match="one share, since there is one label"):
        shares_of(Classification(("a", "b")), {"a": 0.1})
    with pytest.raises(SettingsError, match="this needs one share"):
        _ = load_settings(None, {"select": {"law": 0.1, "term": 0.3}}).share


def test_methods_of_one_task_and_supervision_refuse_several(tiny):
    with pytest.raises(SettingsError, match="one label"):
        network(tiny(loss__rationale_supervision=1.0))
    embedding = TokenEmbedding(size=20, width=12)
    with pytest.raises(SettingsError, match="hardkuma answers one task"):
        build_method(load_settings(method="hardkuma"), embedding=embedding, task=GOAL)


def test_plain_losses_are_those_of_each_task(tiny, batch):
    """loss.scale=printed: the mean of the tasks' cross-entropies, not of their means."""
    method = network(tiny(loss__scale="printed"))
    logits = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    law = torch.nn.functional.cross_entropy(logits[:, :2], batch.targets[:, 0], reduction="none")
    term = torch.nn.functional.cross_entropy(logits[:, 2:], batch.targets[:, 1], reduction="none")
    torch.testing.assert_close(method.task_loss(logits, batch), (law + term) / 2)


def test_a_goal_of_one_task_has_a_view_too(tiny, batch):
    settings = tiny()
    goal = Joint({"law": Classification(("12", "34"))})
    method = build_method(settings, embedding=TokenEmbedding(size=20, width=settings.text.width), task=goal).eval()
    (view,) = method.views()
    assert view.task == goal.tasks["law"]
    assert torch.equal(view.score_tokens(batch), method.score_tokens(batch))


def test_a_crash_then_resume_gives_the_same_state(tiny, tmp_path):
    settings = tiny(training__settle_steps=3, training__checkpoint_seconds=0.0)
    train, dev = corpus(64), corpus(32, seed=1)

    def trainer(folder, trackers=()):
        return Trainer(
            network(settings), settings, train=train, dev=dev, trackers=trackers, checkpoint=folder / "state"
        )

    whole = trainer(tmp_path / "whole")
    whole.run()
    with pytest.raises(RuntimeError, match="crash"):
        trainer(tmp_path / "parts", [CrashAt(7)]).run()
    resumed = trainer(tmp_path / "parts")
    resumed.run(resume=True)
    one, other = whole.method.state_dict(), resumed.method.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert whole.controllers == resumed.controllers


class CrashAt(Tracker):
    def __init__(self, step):
        self.step = step

    def advance(self, *, step, phase, tokens):
        if step == self.step:
            raise RuntimeError("crash")


def test_labels_of_several_tasks():
    assert GOAL.encode({"law": 34, "term": "low", "more": 1}) == [1, 0]
    with pytest.raises(DataError, match="no label 'term'"):
        GOAL.encode({"law": "12"}, source="x", line=3)
    with pytest.raises(DataError, match="no labels"):
        GOAL.encode("12")
    assert GOAL.target_array([[0, 1]]).dtype == np.int64
    mixed = Joint({"law": Classification(("a", "b")), "years": Regression(0.0, 10.0, 0.1)})
    assert mixed.target_array([[1, 0.5]]).dtype == np.float32
    assert mixed.outputs == 3
    assert mixed.unit == pytest.approx((np.log(2) + 0.1) / 2)


def test_losses_and_scores_are_those_of_each_task():
    generator = np.random.default_rng(0)
    logits, targets = generator.normal(size=(6, 5)).astype(np.float32), corpus(6).targets
    law, term = parts_of(GOAL)
    found = GOAL.held_out_losses(logits, targets)
    assert found.shape == (6, 2)
    np.testing.assert_allclose(found[:, 0], law.held_out_losses(logits[:, :2], targets[:, 0]))
    np.testing.assert_allclose(found[:, 1], term.held_out_losses(logits[:, 2:], targets[:, 1]))
    tensors = torch.from_numpy(logits), torch.from_numpy(targets)
    plain = (law.loss(tensors[0][:, :2], tensors[1][:, 0]) + term.loss(tensors[0][:, 2:], tensors[1][:, 1])) / 2
    torch.testing.assert_close(GOAL.loss(*tensors), plain)
    assert GOAL.scores(logits, targets)["term"] == term.scores(logits[:, 2:], targets[:, 1])


def test_runs_of_several_labels_know_the_rules_they_were_made_by(monkeypatch):
    settings, rows = load_settings(), corpus(20)
    one = Prepared.__new__(Prepared)
    for name, value in {"train": rows, "dev": rows, "vectors": None, "task": GOAL}.items():
        object.__setattr__(one, name, value)
    before = run_identity(one, settings)
    monkeypatch.setattr(fitting, "RULES_OF_SEVERAL", 99)
    assert run_identity(one, settings) != before
    object.__setattr__(one, "task", parts_of(GOAL)[0])
    alone = run_identity(one, settings)
    monkeypatch.undo()
    assert run_identity(one, settings) == alone


def test_goals_are_saved_and_damage_is_told():
    assert goal_from_json(GOAL.to_json()) == GOAL
    assert goal_from_json(parts_of(GOAL)[0].to_json()) == parts_of(GOAL)[0]
    with pytest.raises(ModelError, match="damaged"):
        goal_from_json({"kind": "joint", "tasks": 3})
    with pytest.raises(ModelError, match="unknown"):
        goal_from_json({"kind": "joint", "tasks": {"a": {"kind": "joint"}}})
