"""What many tests share: tiny settings, network and batch, a corpus whose evidence is known, a crash."""

import random
from concurrent.futures import Future

import numpy as np
import pytest
import torch

from infocal.config import load_settings
from infocal.methods import build_method
from infocal.nn.embedding import TokenEmbedding
from infocal.tasks import Classification, Regression
from infocal.training.tracking import Tracker
from infocal.types import Batch, Document

TINY = {
    "text.width": 12,
    "encoder.hidden_width": 10,
    "model.feature_width": 8,
    "model.discriminator_width": 8,
    "language_model.hidden_width": 8,
    "training.least_round_steps": 4,
    "training.warm_up_rounds": 1,
    "training.most_round_steps": 6,
    "training.joint_rounds": 2,
    "training.batch_documents": 16,
    "training.settle_steps": 0,
    "loss.calibration_window": 3,
}


@pytest.fixture(scope="session")
def tiny_changes():
    """Settings of a network that is trained in a second, as ``name=value``."""
    values = {**TINY, "training.joint_rounds": 1, "training.settle_steps": 2}
    return tuple(f"{name}={value}" for name, value in values.items())


@pytest.fixture(scope="session")
def tiny_options(tiny_changes):
    """The same for the command line."""
    return [item for change in tiny_changes for item in ("--set", change)]


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors run faster on one thread, and two test processes share two cores."""
    torch.set_num_threads(1)


@pytest.fixture
def tiny():
    """Make tiny settings, with changes by dotted name."""

    def make(**changes):
        return load_settings("infocal", {**TINY, **{name.replace("__", "."): v for name, v in changes.items()}})

    return make


@pytest.fixture
def network():
    """Make an untrained network for given settings."""

    def make(settings, *, scores=False, size=50, seed=0):
        torch.manual_seed(seed)
        task = Regression(0.0, 1.0, 0.1) if scores else Classification(("a", "b", "c"))
        embedding = TokenEmbedding(size=size, width=settings.text.width)
        return build_method(settings, embedding=embedding, task=task)

    return make


@pytest.fixture
def batch():
    """Five documents of different lengths."""
    rng = np.random.default_rng(3)
    lengths = torch.tensor([9, 3, 7, 1, 9])
    mask = torch.arange(9) < lengths[:, None]
    ids = torch.tensor(rng.integers(1, 50, size=(5, 9))) * mask
    gold = torch.tensor(rng.integers(0, 2, size=(5, 9))).float() * mask
    return Batch(
        ids=ids,
        mask=mask,
        rows=torch.arange(5),
        targets=torch.tensor([0, 1, 2, 0, 1]),
        gold=gold,
        annotated=torch.tensor([True, True, False, True, False]),
    )


FILLER = tuple("the a of and in on at we they it was had went came saw table door road".split())  # noqa: SIM905
PHRASES = {
    "yes": ["truly wonderful supper", "quite splendid supper", "wonderful splendid dinner"],
    "no": ["truly dreadful supper", "quite horrid supper", "dreadful horrid dinner"],
}


@pytest.fixture(scope="session")
def suppers():
    """Make documents whose label hangs on one phrase, which is their rationale."""

    def make(count, seed):
        generator = random.Random(seed)
        documents = []
        for row in range(count):
            label = "yes" if row % 2 else "no"
            before, after = ([generator.choice(FILLER) for _ in range(generator.randint(3, 9))] for _ in range(2))
            phrase = generator.choice(PHRASES[label])
            start = len(" ".join(before)) + 1
            text = " ".join([*before, phrase, *after])
            documents.append(Document(text, label, ((start, start + len(phrase)),), row))
        return documents

    return make


@pytest.fixture(scope="session")
def stop_at():
    """Make a tracker that dies at a given step, as a crash would."""

    class StopAt(Tracker):
        def __init__(self, step):
            self.step = step

        def advance(self, *, step, phase, tokens):
            if step == self.step:
                raise RuntimeError("crash")

    return StopAt


class HereAndNow:
    """A pool of processes that does at once, in this one, what it is given."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # as a real pool does
            future.set_exception(error)
        return future


@pytest.fixture
def here_and_now():
    return HereAndNow
