"""The loop: exact resume, honest stopping, two players, clean interrupts."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from infocal.data.batches import collate
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews
from infocal.errors import TrainingError
from infocal.evaluation.decoding import select_average
from infocal.methods import build_method
from infocal.training.checkpoint import read_checkpoint, write_checkpoint
from infocal.training.held_out import threshold_texts
from infocal.training.inference import token_scores
from infocal.training.loop import Trainer
from infocal.training.preparation import build_embedding, prepare
from infocal.training.tracking import MetricsFile, Tracker

TIMES = ("seconds", "processor")
FULL = {"loss__imitation": 0.2, "training__checkpoint_seconds": 0.0}


@pytest.fixture
def run(tiny, tmp_path):
    """Make a trainer on 120 toy reviews."""

    def make(trackers=(), name="checkpoint.safetensors", identity="same", rows=120, **changes):
        settings = tiny(**{**FULL, **changes})
        prepared = prepare(toy_reviews(rows), None, settings, bad_rows=BadRows(skip=False))
        torch.manual_seed(settings.seed)
        method = build_method(settings, embedding=build_embedding(prepared, settings), task=prepared.task)
        return Trainer(
            method,
            settings,
            train=prepared.train,
            dev=prepared.dev,
            trackers=trackers,
            checkpoint=tmp_path / name,
            identity=identity,
        )

    return make


def weights(trainer):
    return {name: value.detach().clone() for name, value in trainer.method.named_parameters()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_same_seed_gives_the_same_weights_bit_for_bit(run):
    first, second, third = run(), run(name="b"), run(name="c", seed=1)
    for trainer in (first, second, third):
        trainer.run()
    assert same(weights(first), weights(second))
    assert not same(weights(first), weights(third))


@pytest.mark.parametrize("step", [2, 5, 9, 14])
def test_a_crash_at_any_step_then_resume_gives_the_same_weights(run, tmp_path, step, stop_at):
    whole = run(name="whole", trackers=[MetricsFile(tmp_path / "whole.jsonl")])
    expected = whole.run()
    crashed = run(trackers=[stop_at(step), MetricsFile(tmp_path / "parts.jsonl")])
    with pytest.raises(RuntimeError, match="crash"):
        crashed.run()
    resumed = run(trackers=[MetricsFile(tmp_path / "parts.jsonl")])
    result = resumed.run(resume=True)
    assert same(weights(whole), weights(resumed))
    assert whole.controllers == resumed.controllers

    def rounds(history):
        return [{name: value for name, value in record.items() if name not in TIMES} for record in history]

    assert rounds(expected.history) == rounds(result.history)
    lines = (tmp_path / "parts.jsonl").read_text().splitlines()
    assert rounds(map(json.loads, lines)) == rounds(expected.history)


def test_a_finished_run_resumes_to_itself(run):
    first = run()
    first.run()
    again = run()
    again.run(resume=True)
    assert same(weights(first), weights(again))


def test_a_checkpoint_of_another_run_is_refused(run):
    run().run()
    with pytest.raises(TrainingError, match="other data or settings"):
        run(identity="another").run(resume=True)


def test_a_damaged_or_newer_checkpoint_is_refused(run, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match="cannot be read"):
        run().run(resume=True)
    write_checkpoint(path, {"x": torch.zeros(1)}, {"format": 99})
    with pytest.raises(TrainingError, match="format 99"):
        run().run(resume=True)


def test_the_best_round_is_kept(run):
    trainer = run(training__joint_rounds=4, training__joint_patience=4, training__learning_rate=0.05)
    result = trainer.run()
    joint = [record for record in result.history if record["phase"] == "joint"]
    assert len(joint) == 4
    losses, _ = trainer.held_out.judge("joint")
    kept = [record["dev_loss"] for record in joint if record["kept"]]
    assert float(losses.mean()) == pytest.approx(kept[-1], abs=1e-6)


def test_what_is_judged_and_kept_are_averaged_weights(run):
    plain, averaged = (
        run(training__averaging=decay, training__learning_rate=0.02, training__warm_up_rounds=0)
        for decay in (0, 0.9)
    )
    names = [name for name, value in plain.method.named_parameters() if value.requires_grad]
    for trainer in (plain, averaged):
        trainer.run()
    assert not plain.weights.average
    trained, kept = dict(averaged.method.named_parameters()), averaged.weights.best
    assert all(torch.equal(trained[name], kept[name]) for name in names)
    assert any(not torch.equal(plain.weights.best[name], kept[name]) for name in names)


def test_the_average_follows_the_weights(run):
    trainer = run(training__averaging=0.5)
    weights = {name: value.detach().clone() for name, value in trainer.method.named_parameters()}
    trainer.weights.follow(1)
    with torch.no_grad():
        for parameter in trainer.method.parameters():
            parameter.add_(1.0)
    trainer.weights.follow(2)  # two of twelve steps old: the pace is still that of youth, 1 - 2 / 12
    for name, value in trainer.weights.average.items():
        torch.testing.assert_close(value, weights[name] + 1.0 - min(0.5, 2 / 12))


def test_patience_ends_a_phase_early(run):
    schedule = {"training__warm_up_rounds": 9, "training__least_round_steps": 1}
    history = run(training__learning_rate=1e-9, **schedule).run().history
    assert sum(record["phase"] == "warm_up" for record in history) < 9


def test_interrupt_keeps_what_was_learned_and_can_go_on(run):
    class Interrupt(Tracker):
        def advance(self, *, step, phase, tokens):
            if phase == "joint" and step == 10:
                os.kill(os.getpid(), signal.SIGINT)

    stopped = run(trackers=[Interrupt()])
    result = stopped.run()
    assert result.interrupted and result.trained
    whole = run(name="whole")
    whole.run()
    resumed = run()
    assert not resumed.run(resume=True).interrupted
    assert same(weights(whole), weights(resumed))


def test_an_exploding_loss_is_reported_not_saved(run):
    trainer = run()
    with torch.no_grad():
        trainer.method.head.weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match="learning_rate"):
        trainer.run()


def test_a_warm_up_without_a_number_is_reported(run, monkeypatch):
    trainer = run()
    judged = trainer.held_out.judge
    monkeypatch.setattr(trainer.held_out, "judge", lambda phase: (judged(phase)[0] * float("nan"), {}))
    with pytest.raises(TrainingError, match="no number in any round"):
        trainer.run()


def test_small_data_makes_rounds_of_several_passes_and_large_data_of_a_part(run):
    small = run(training__least_round_steps=40, training__most_round_steps=100)
    assert len(small._plan(None)) < small.round_steps == 40
    large = run(training__most_round_steps=3, training__least_round_steps=1)
    assert len(large._plan(None)) > large.round_steps == 3


def test_the_method_decides_whether_the_controller_holds_the_share(run):
    held, pinned = run(), run(name="pinned", loss__selection_information=0.5)
    assert held.method.controlled_share and not pinned.method.controlled_share
    for trainer in (held, pinned):
        trainer.run()
    assert held.controllers[0].offset != 0
    assert pinned.controllers[0].offset == 0


def test_every_row_is_seen_once_per_pass(run):
    trainer = run()
    seen = []
    while trainer.state.data_pass == 0:
        seen += trainer._next_rows().tolist()
    assert sorted(seen) == list(range(len(trainer.train)))


def test_rationales_of_the_held_out_rows_do_not_matter(run):
    first, second = run(), run(name="b")
    corpus = second.held_out.corpus
    second.held_out.corpus = replace(corpus, gold=~np.asarray(corpus.gold))
    first.run()
    second.run()
    assert same(weights(first), weights(second))


def test_training_leaves_the_global_random_state_alone(run):
    trainer = run()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    trainer.run()
    assert torch.equal(state, torch.get_rng_state())


SCRIPT = """
import sys
from infocal.cli import main
main(["train", sys.argv[1], "--out", sys.argv[2], "--select", "0.2", "--threads", "1",
      "--set", "encoder.hidden_width=8", "--set", "text.width=8", "--set", "training.checkpoint_seconds=0",
      "--set", "training.warm_up_rounds=2", "--set", "training.joint_rounds=2",
      "--set", "training.settle_steps=10", "--set", "training.least_round_steps=15",
      *sys.argv[3:]])
"""


@pytest.mark.slow
def test_kill_minus_nine_then_resume_gives_the_same_model(tmp_path):
    from infocal.data.toy import write_toy

    data = tmp_path / "reviews.jsonl"
    write_toy(data, toy_reviews(300))

    log = tmp_path / "log.txt"

    def start(out, *more):
        with log.open("ab") as stream:
            return subprocess.Popen(
                [sys.executable, "-c", SCRIPT, str(data), str(out), *more], stdout=stream, stderr=stream
            )

    assert start(tmp_path / "whole").wait(timeout=240) == 0, log.read_text()
    kills = 0
    checkpoint = tmp_path / "killed" / "checkpoint.safetensors"
    for kill in range(3):
        process = start(tmp_path / "killed", *(["--resume"] if kill else []))
        while process.poll() is None and _steps(checkpoint) < 8 + 17 * kill:
            time.sleep(0.01)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.wait()
    assert kills >= 2
    assert start(tmp_path / "killed", "--resume").wait(timeout=240) == 0, log.read_text()
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("whole", "killed"))
    assert one == other


def _steps(path: Path) -> int:
    try:
        return int(read_checkpoint(path)[1]["progress"]["step"])
    except (TrainingError, OSError):
        return 0


class Measuring(Tracker):
    """Looks at the weights of each round, and is careless with random numbers."""

    def __init__(self):
        self.phases = []

    def measure(self, method, phase):
        self.phases.append(phase)
        torch.rand(3)
        first = next(value for value in method.parameters() if value.requires_grad)
        return {"sum": float(first.detach().sum())}


def test_what_trackers_measure_is_in_the_history_and_changes_nothing(run):
    quiet = run(name="quiet.safetensors")
    tracker = Measuring()
    watched = run(trackers=[tracker])
    quiet.run()
    history = watched.run().history
    assert tracker.phases == [record["phase"] for record in history]
    assert all(isinstance(record["dev"]["sum"], float) for record in history)
    assert same(weights(quiet), weights(watched))
    assert run(trackers=[tracker]).run(resume=True).history == history


SETTLE = {"training__settle_steps": 5, "training__settle_rate": 1.0}


class Watch(Tracker):
    """Keeps the weights as they are when the settling begins, and the words that it learns from."""

    def __init__(self):
        self.trainer, self.before, self.seen = None, None, []

    def advance(self, *, step, phase, tokens):
        if phase == "settle":
            self.seen.append(step)

    def round(self, record):
        if self.before is None and self.trainer.state.phase == "settle":
            self.before = weights(self.trainer)


def test_settling_moves_what_predicts_and_nothing_that_selects(run):
    watch = Watch()
    watch.trainer = trainer = run(trackers=[watch], **SETTLE)
    result = trainer.run()
    assert len(watch.seen) == 5
    assert [record["phase"] for record in result.history] == ["warm_up", "joint", "joint", "settle"]
    after = {name: value.detach() for name, value in trainer.method.named_parameters()}
    moved = {
        name.split(".")[0]
        for name, value in trainer.weights.average.items()
        if not torch.equal(value, watch.before[name])
    }
    assert moved == {"guider", "head"}
    for name, value in after.items():
        if name.startswith(("selector.", "embedding.")):
            assert torch.equal(value, watch.before[name])


def test_settling_learns_from_the_words_that_inference_selects(run):
    trainer = run(**SETTLE)
    trainer.run()
    texts = threshold_texts(trainer.held_out.corpus, trainer.train).drawn()
    expected = select_average(token_scores(trainer.method, texts), texts.offsets, share=trainer.settings.select)
    batch = collate(texts, np.arange(len(texts)))
    assert trainer.held_out.selected(batch)[batch.mask].numpy().tolist() == expected.tolist()


@pytest.mark.parametrize(("worse", "kept"), [(10.0, False), (0.0, True)])
def test_a_settled_round_is_kept_only_if_it_is_no_worse(run, monkeypatch, worse, kept):
    trainer = run(**SETTLE)
    judge = trainer.held_out.judge

    def judged(phase):
        losses, figures = judge(phase)
        return (losses * 0 + trainer.state.best + worse if phase == "settle" else losses), figures

    monkeypatch.setattr(trainer.held_out, "judge", judged)
    result = trainer.run()
    assert result.history[-1]["phase"] == "settle"
    assert result.history[-1]["kept"] is kept
    assert same(weights(trainer), {name: trainer.weights.best[name] for name in weights(trainer)})


def test_a_crash_before_the_first_checkpoint_is_due_can_be_resumed(run, stop_at):
    whole = run(name="whole")
    whole.run()
    crashed = run(trackers=[stop_at(3)], training__checkpoint_seconds=1000.0)
    with pytest.raises(RuntimeError, match="crash"):
        crashed.run()
    resumed = run(training__checkpoint_seconds=1000.0)
    resumed.run(resume=True)
    assert same(weights(whole), weights(resumed))


@pytest.mark.parametrize("into", [1, 3, 5])
def test_a_crash_while_settling_then_resume_gives_the_same_weights(run, into, stop_at):
    whole = run(name="whole", **SETTLE)
    step = whole._total_steps() - 5 + into
    whole.run()
    crashed = run(trackers=[stop_at(step)], **SETTLE)
    with pytest.raises(RuntimeError, match="crash"):
        crashed.run()
    assert crashed.state.phase == "settle"
    resumed = run(**SETTLE)
    result = resumed.run(resume=True)
    assert result.trained
    assert same(weights(whole), weights(resumed))


def test_methods_without_a_third_phase_end_after_the_second(run):
    trainer = run(**SETTLE)
    trainer.method.settles = False
    assert {record["phase"] for record in trainer.run().history} == {"warm_up", "joint"}
