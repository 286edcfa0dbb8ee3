"""Runs that differ only in what follows the warm-up share it, and come out the same to the bit."""

import json
from dataclasses import replace

import pytest
import torch

from infocal.comparison.plan import Run, Sources
from infocal.comparison.worker import Job, run_job
from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews, write_toy
from infocal.fitting import train_method, warm_up_identity
from infocal.settings import Settings
from infocal.training.preparation import prepare
from infocal.training.tracking import Tracker
from infocal.training.warm_up import LATER, LATER_GROUPS

TINY = {
    "text.width": 12,
    "encoder.hidden_width": 10,
    "model.feature_width": 8,
    "model.discriminator_width": 8,
    "training.least_round_steps": 4,
    "training.most_round_steps": 6,
    "training.warm_up_rounds": 2,
    "training.joint_rounds": 1,
    "training.batch_documents": 16,
    "training.settle_steps": 2,
}


class Steps(Tracker):
    """Remembers at which step a run began and in which phases it took steps."""

    def __init__(self):
        self.began, self.phases = None, set()

    def start(self, *, total_steps, step, history):
        self.began = step

    def advance(self, *, step, phase, tokens):
        self.phases.add(phase)


@pytest.fixture(scope="module")
def reviews():
    """The same reviews, encoded for some settings."""

    def make(settings):
        return prepare(toy_reviews(80), None, settings, bad_rows=BadRows(skip=False))

    return make


@pytest.fixture
def trained(reviews):
    """Train on the reviews; the weights and buffers, and what was done."""

    def train(recipe, warm_ups=None, trackers=(), checkpoint=None, **changes):
        settings = load_settings(recipe, {**TINY, **{n.replace("__", "."): v for n, v in changes.items()}})
        steps = Steps()
        method, result = train_method(
            reviews(settings),
            settings,
            trackers=[steps, *trackers],
            warm_ups=warm_ups,
            checkpoint=checkpoint,
            resume=checkpoint is not None,
        )
        return method.state_dict(), result, steps

    return train


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("recipe", ["infocal", "bernoulli", "hardkuma", "l2x", "invase", "car"])
def test_another_share_after_a_shared_warm_up_gives_the_same_weights(trained, tmp_path, recipe):
    _, _, first = trained(recipe, tmp_path, select=0.2)
    assert first.phases == {"warm_up", "joint", "settle"}
    alone, whole, _ = trained(recipe, select=0.4)
    shared, part, steps = trained(recipe, tmp_path, select=0.4)
    assert steps.began == 12
    assert steps.phases == {"joint", "settle"}
    assert same(shared, alone)
    losses = [[record["dev_loss"] for record in result.history] for result in (whole, part)]
    assert losses[0] == losses[1]
    assert [record["phase"] for record in part.history] == ["warm_up", "warm_up", "joint", "settle"]


@pytest.mark.parametrize(
    "other", ["infocal-full", "infocal-no-calibration", "infocal-no-ib", "infocal-adversarial", "infocal-hk"]
)
def test_ablations_share_the_warm_up_of_the_default(trained, tmp_path, other):
    trained("infocal", tmp_path)
    shared, _, steps = trained(other, tmp_path)
    assert "warm_up" not in steps.phases
    assert same(shared, trained(other)[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"training__warm_up_rounds": 1},
        {"training__learning_rate": 0.01},
        {"loss__guider_information": 0.5},
        {"model__token_dropout": 0.0},
    ],
)
def test_what_the_warm_up_depends_on_makes_another(trained, tmp_path, changes):
    trained("infocal", tmp_path)
    _, _, steps = trained("infocal", tmp_path, **changes)
    assert "warm_up" in steps.phases
    assert len(list(tmp_path.iterdir())) == 2


def test_a_warm_up_that_was_killed_and_resumed_is_shared_too(trained, tmp_path, stop_at):
    checkpoint, warm_ups = tmp_path / "checkpoint.safetensors", tmp_path / "warm-ups"
    with pytest.raises(RuntimeError, match="crash"):
        trained("infocal", warm_ups, [stop_at(8)], checkpoint, training__checkpoint_seconds=0.0)
    assert not warm_ups.exists()
    resumed, _, steps = trained("infocal", warm_ups, (), checkpoint, training__checkpoint_seconds=0.0)
    assert 0 < steps.began <= 8
    assert same(resumed, trained("infocal")[0])
    shared, _, after = trained("infocal", warm_ups, select=0.4)
    assert after.began == 12
    assert same(shared, trained("infocal", select=0.4)[0])


def test_other_rows_make_another_warm_up(reviews):
    settings = load_settings("infocal", TINY)
    prepared = reviews(settings)
    fewer = replace(prepared, train=prepared.train.subset(range(10)))
    assert warm_up_identity(prepared, settings) != warm_up_identity(fewer, settings)


def test_a_damaged_file_or_one_of_other_threads_is_not_taken(trained, tmp_path):
    expected, _, _ = trained("infocal", tmp_path)
    (file,) = tmp_path.iterdir()
    torch.set_num_threads(2)
    assert "warm_up" in trained("infocal", tmp_path)[2].phases
    torch.set_num_threads(1)
    file.write_bytes(b"nothing")
    weights, _, steps = trained("infocal", tmp_path)
    assert "warm_up" in steps.phases
    assert same(weights, expected)
    assert "warm_up" not in trained("infocal", tmp_path)[2].phases  # it was written anew


def test_the_settings_that_matter_later_are_settings():
    fields = Settings.model_fields
    assert set(LATER_GROUPS) <= fields.keys()
    for group, names in LATER.items():
        assert set(names) <= fields[group].annotation.model_fields.keys()


def test_a_run_of_a_comparison_counts_the_time_of_the_warm_up_that_it_took(tmp_path):
    paths = {part: tmp_path / f"{part}.jsonl" for part in ("train", "dev", "test")}
    for seed, path in enumerate(paths.values()):
        write_toy(path, toy_reviews(40, seed=seed))
    records = []
    for number, share in enumerate((0.2, 0.3)):
        run = Run(
            contender="infocal",
            settings=load_settings("infocal", TINY, select=share),
            identity="i",
            path=tmp_path / "runs" / f"{number}.json",
        )
        job = Job(
            run=run, sources=Sources(**paths), shares=(), cases=(), threads=1, warm_ups=tmp_path / "warm-ups"
        )
        assert Job.from_json(job.to_json()) == job
        records.append(json.loads(json.dumps(run_job(job))))
    first, second = records
    assert [record["seconds"] for record in first["rounds"][:2]] == [
        record["seconds"] for record in second["rounds"][:2]
    ]
    for kind, name in (("training", "seconds"), ("processor", "processor")):
        assert second["seconds"][kind] >= sum(record[name] for record in second["rounds"]) > 0
