"""Rare classes: priors, the loss that weighs rows by them, and what becomes of the answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.errors import ModelError, SettingsError
from infocal.fitting import fit
from infocal.methods import build_method
from infocal.methods.base import Conditions
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.retrieval import ArticleRetriever, Articles
from infocal.tasks import Classification, Joint, Regression, goal_from_json, task_from_json
from infocal.training.held_out import HeldOut
from infocal.training.inference import full_text_outputs
from infocal.training.preparation import prepare
from infocal.types import Document

SMALL = {"text.width": 6, "encoder.hidden_width": 5, "model.feature_width": 4, "model.discriminator_width": 4}
PRIORS = (0.7, 0.2, 0.1)
TASK = Classification(("a", "b", "c"), PRIORS)


def outputs(count=40, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, classes)).astype(np.float32), rng.integers(0, classes, count)


def by_hand(logits, targets, priors, *, balance, inverse_temperature=1.0):
    values = inverse_temperature * logits.astype(np.float64)
    losses = np.logaddexp.reduce(values, axis=1) - values[np.arange(len(targets)), targets]
    weights = 1 / np.array(priors) ** balance
    weights /= (np.array(priors) * weights).sum()  # 1 on average over rows of these frequencies
    return weights[targets] * losses / np.log(len(priors))


def test_without_balance_the_loss_is_to_the_bit_what_it_was():
    logits, targets = outputs()
    tensors = torch.from_numpy(logits), torch.from_numpy(targets)
    plain = torch.nn.functional.cross_entropy(*tensors, reduction="none") / float(np.log(3))
    assert torch.equal(TASK.loss(*tensors, balance=0.0), plain)
    unaware = Classification(TASK.classes)
    np.testing.assert_array_equal(
        TASK.held_out_losses(logits, targets, balance=0.0), unaware.held_out_losses(logits, targets)
    )


@pytest.mark.parametrize("balance", [0.4, 1.0])
def test_rows_of_rare_classes_count_more(balance):
    logits, targets = outputs()
    found = TASK.loss(torch.from_numpy(logits), torch.from_numpy(targets), balance=balance)
    np.testing.assert_allclose(found, by_hand(logits, targets, PRIORS, balance=balance), rtol=1e-5)


def test_the_weights_of_the_extremes():
    """Seven rows, two and one of three classes, at a uniform guess, whose loss is 1."""
    targets = np.repeat(np.arange(3), [7, 2, 1])
    logits = torch.zeros(10, 3)

    def of_class(balance):
        losses = TASK.loss(logits, torch.from_numpy(targets), balance=balance).numpy()
        assert losses.mean() == pytest.approx(1.0, rel=1e-5)  # the loss keeps its scale
        return np.bincount(targets, weights=losses) / 10

    np.testing.assert_allclose(of_class(1.0), [1 / 3] * 3, rtol=1e-5)  # all classes count the same
    roots = np.sqrt(PRIORS)
    np.testing.assert_allclose(of_class(0.5), roots / roots.sum(), rtol=1e-5)


def test_rounds_are_judged_by_the_weighted_loss_at_the_best_temperature():
    logits, targets = outputs(400)
    found = TASK.held_out_losses(logits, targets, balance=1.0)
    grid = np.exp(np.linspace(-3, 1, 41))
    wanted = [by_hand(logits, targets, PRIORS, balance=1.0, inverse_temperature=t) for t in grid]
    np.testing.assert_allclose(found, min(wanted, key=np.mean), rtol=1e-6)


def test_a_balanced_model_is_not_stopped_by_the_unbalanced_loss():
    """Perfect logits of likelihoods: the better ones by the weighted loss, the worse ones by the plain one."""
    rng = np.random.default_rng(0)
    targets = rng.choice(2, size=4000, p=[0.95, 0.05])
    likelihoods = rng.normal(size=4000) + 1.5 * (2 * targets - 1)
    balanced = np.stack([-1.5 * likelihoods, 1.5 * likelihoods], axis=1)
    drowned = balanced + np.log([0.95, 0.05])
    task = Classification(("often", "rare")).with_priors(targets)

    def judged(logits, balance):
        return task.held_out_losses(logits, targets, balance=balance).mean()

    assert judged(balanced, 0.0) > judged(drowned, 0.0)
    assert judged(balanced, 1.0) < judged(drowned, 1.0)


def test_scores_ignore_it():
    task = Regression(0.0, 1.0, 0.2)
    logits, targets = torch.randn(5, 1), torch.rand(5)
    assert task.with_priors(targets.numpy()) is task
    assert torch.equal(task.loss(logits, targets, balance=1.0), task.loss(logits, targets))
    np.testing.assert_array_equal(
        task.held_out_losses(logits.numpy(), targets.numpy(), balance=1.0),
        task.held_out_losses(logits.numpy(), targets.numpy()),
    )


def test_each_of_several_tasks_balances_itself():
    joint = Joint({"kind": Classification(("a", "b", "c")), "stars": Regression(0.0, 1.0, 0.2)})
    targets = joint.target_array([[0, 0.5], [0, 0.1], [1, 0.3], [0, 1.0]])
    known = joint.with_priors(targets)
    assert known.tasks["kind"].priors == (3 / 5, 1 / 5, 1 / 5)
    assert known.tasks["stars"] == joint.tasks["stars"]
    logits = torch.randn(4, 4)
    parts = [
        known.tasks["kind"].loss(logits[:, :3], torch.tensor([0, 0, 1, 0]), balance=1.0),
        known.tasks["stars"].loss(logits[:, 3:], torch.tensor(targets[:, 1])),
    ]
    torch.testing.assert_close(
        known.loss(logits, torch.from_numpy(targets), balance=1.0), torch.stack(parts).mean(dim=0)
    )
    judged = known.held_out_losses(logits.numpy(), targets, balance=1.0)
    assert not np.allclose(judged, known.held_out_losses(logits.numpy(), targets))
    assert goal_from_json(known.to_json()) == known


def test_priors_are_the_training_rows_frequencies():
    task = Classification(("a", "b", "c"))
    assert task.with_priors(np.array([0, 0, 0, 2])).priors == (3 / 5, 1 / 5, 1 / 5)  # nobody has b: as if one had
    assert task.with_priors(np.array([0, 1, 1, 2])).priors == (0.25, 0.5, 0.25)
    with pytest.raises(ValueError, match="priors"):
        task.loss(torch.zeros(1, 3), torch.tensor([0]), balance=0.5)


def test_priors_are_saved_and_records_without_them_are_read():
    assert task_from_json(TASK.to_json()) == TASK
    old = {"kind": "classify", "classes": ["a", "b"]}
    assert task_from_json(old) == Classification(("a", "b"))
    assert Classification(("a", "b")).to_json() == old
    for wrong in ([0.5], [0.5, 0.0], [0.5, float("nan")], ["x", 0.5], 3):
        with pytest.raises(ModelError, match="damaged"):
            task_from_json({**old, "priors": wrong})


def rows(seed=0):
    """Forty texts of one class, eight of the other."""
    rng = np.random.default_rng(seed)
    words = ("river stone bread lamp", "cloud paper wheel salt")
    return [
        Document(
            f"{rng.choice(words[row % 6 == 5].split())} and {rng.integers(9)} more", "no" if row % 6 else "yes"
        )
        for row in range(48)
    ]


def test_preparation_counts_the_rows_that_are_trained_on(tiny):
    dev = [Document("a lamp and more", "no")] * 30
    given = prepare(rows(), dev, tiny(), bad_rows=BadRows())
    assert given.task.classes == ("no", "yes")
    assert given.task.priors == (40 / 48, 8 / 48)
    split = prepare(rows(), None, tiny(training__dev_share=0.25), bad_rows=BadRows())
    counts = np.bincount(split.train.targets)
    assert split.task.priors == tuple((counts / counts.sum()).tolist())


@pytest.mark.parametrize("name", ["infocal", "attention", "bernoulli", "hardkuma", "l2x", "invase", "car"])
def test_every_method_trains_on_the_balanced_loss(name, batch):
    found = {}
    for balance in (0.0, 1.0):
        settings = load_settings(name, {**SMALL, "loss.balance": balance, "loss.calibration_window": 3})
        torch.manual_seed(0)
        embedding = TokenEmbedding(size=50, width=6)
        method = build_method(settings, embedding=embedding, task=TASK).eval()
        conditions = Conditions("warm_up", 0.0, torch.Generator().manual_seed(1))
        objectives = method.step(batch, conditions).objectives
        found[balance] = next(
            objectives[key] for key in ("guidance", "baseline", "prediction") if key in objectives
        )
        logits = torch.tensor(outputs(5)[0])
        expected = by_hand(logits.numpy(), batch.targets.numpy(), PRIORS, balance=balance)
        np.testing.assert_allclose(method.task_loss(logits, batch), expected, rtol=1e-5)
    assert not torch.allclose(found[0.0], found[1.0])


@pytest.mark.parametrize("name", ["infocal", "topjudge", "mpbfn", "fla"])
def test_every_method_of_several_tasks_trains_on_the_balanced_loss(name, batch):
    goal = Joint({"article": TASK, "charge": replace(TASK, priors=PRIORS[::-1])})
    batch = replace(batch, targets=torch.stack([batch.targets, batch.targets.flip(0)], dim=1))
    articles = Articles(
        ids=torch.tensor([5, 6, 7]),
        offsets=torch.arange(4),
        sentence_ends=(9,),
        retriever=ArticleRetriever(
            places=torch.arange(50),
            inverse_frequency=torch.ones(50),
            weights=torch.randn(3, 50, generator=torch.Generator().manual_seed(0)),
            bias=torch.zeros(3),
        ),
    )
    found = {}
    for balance in (0.0, 1.0):
        settings = load_settings(name, {**SMALL, "loss.balance": balance, "loss.calibration_window": 3})
        torch.manual_seed(0)
        embedding = TokenEmbedding(size=50, width=6)
        method = build_method(
            settings, embedding=embedding, task=goal, articles=articles if name == "fla" else None
        ).eval()
        conditions = Conditions("warm_up", 0.0, torch.Generator().manual_seed(1))
        objectives = method.step(batch, conditions).objectives
        key = "guidance" if "guidance" in objectives else "prediction"
        logits = method.predict_full(batch).detach().numpy()
        sides = [
            by_hand(logits[:, 3 * k : 3 * k + 3], batch.targets[:, k].numpy(), priors, balance=balance)
            for k, priors in enumerate((PRIORS, PRIORS[::-1]))
        ]
        found[balance] = objectives[key].detach().numpy()
        if name != "infocal":  # whose guider samples what it read
            np.testing.assert_allclose(found[balance], np.mean(sides, axis=0), rtol=1e-4)
    assert not np.allclose(found[0.0], found[1.0])


def test_the_held_out_judge_has_the_settings_balance(tiny):
    """What decides when to stop is the loss that is trained on."""
    losses = {}
    for balance in (0.0, 1.0):
        settings = tiny(loss__balance=balance)
        prepared = prepare(rows(), None, settings, bad_rows=BadRows())
        torch.manual_seed(0)
        embedding = TokenEmbedding(size=len(prepared.vocabulary), width=settings.text.width)
        method = build_method(settings, embedding=embedding, task=prepared.task).eval()
        judge = HeldOut(method, prepared.dev, shares=(0.2,), texts=prepared.dev)
        losses[balance] = judge.judge("warm_up")[0].numpy()
        answers = full_text_outputs(method, prepared.dev)
        wanted = prepared.task.held_out_losses(answers, prepared.dev.targets, balance=balance)
        np.testing.assert_array_equal(losses[balance], wanted)
    assert (losses[1.0] > losses[0.0])[prepared.dev.targets == 1].all()  # "yes" is rare


@pytest.mark.parametrize("value", [-0.1, 1.1, "much"])
def test_a_balance_is_between_0_and_1(value):
    with pytest.raises(SettingsError, match=r"loss\.balance"):
        load_settings(changes={"loss.balance": value})


def trained_recalls(balance):
    """The recall of each of four classes, of a linear head on fixed features, without the classes' frequencies."""
    rng = np.random.default_rng(0)
    counts, centres = [900, 60, 30, 10], 1.1 * np.eye(4)
    targets = np.repeat(np.arange(4), counts)
    features = torch.tensor(centres[targets] + rng.normal(size=(1000, 4)), dtype=torch.float32)
    task = Classification(tuple("abcd")).with_priors(targets)
    torch.manual_seed(0)
    head = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        task.loss(head(features), torch.from_numpy(targets), balance=balance).mean().backward()
        optimizer.step()
    new = np.repeat(np.arange(4), 300)
    with torch.no_grad():
        logits = head(torch.tensor(centres[new] + rng.normal(size=(1200, 4)), dtype=torch.float32)).numpy()
    return (logits.argmax(axis=1) == new).reshape(4, 300).mean(axis=1), task.scores(logits, new)["macro_recall"]


def test_rare_classes_are_found_more_often():
    (plain, low), (_, middle), (balanced, high) = (trained_recalls(balance) for balance in (0.0, 0.5, 1.0))
    assert low + 0.05 < middle < high
    assert (balanced[1:] > plain[1:] + 0.2).all()


def test_the_package_run_finds_rare_classes_more_often(suppers, tiny):
    documents = [row for row in suppers(400, seed=0) if row.label == "no" or row.line % 20 == 1]
    found = []
    for balance in (0.0, 1.0):
        settings = tiny(
            loss__balance=balance,
            training__learning_rate=0.01,
            training__warm_up_rounds=2,
            training__most_round_steps=15,
            training__joint_rounds=1,
        )
        found.append(fit(documents, settings).evaluate(suppers(100, seed=1)))
    for plain, balanced in (found, [figures["full_text"] for figures in found]):
        assert balanced["macro_recall"] > plain["macro_recall"] + 0.1
