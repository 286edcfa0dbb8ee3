"""The loop: rounds of steps, each player minimising its own objectives; the best round on held-out data wins."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from infocal.data.batches import collate, plan_batches
from infocal.data.corpus import Corpus
from infocal.errors import OtherRunError, TrainingError
from infocal.losses.reductions import weighted_sum
from infocal.methods.base import Conditions, Method
from infocal.tasks import shares_of
from infocal.training.checkpoint import (
    load_optimizer,
    optimizer_tensors,
    read_checkpoint,
    take,
    write_checkpoint,
)
from infocal.training.controller import RateController
from infocal.training.held_out import HeldOut, threshold_texts
from infocal.training.interrupts import stop_on_interrupt
from infocal.training.progress import Progress, Result
from infocal.training.rounds import change_of
from infocal.training.warm_up import Parts, keep_warm_up, take_warm_up
from infocal.training.weights import Weights

if TYPE_CHECKING:
    from torch import Tensor

    from infocal.settings import Settings
    from infocal.training.tracking import Tracker

__all__ = ["Trainer"]


class Trainer:
    """Trains one method on one corpus.

    Args:
        method: the network; its weights are changed in place.
        settings: schedule, seeds, rate.
        train: the training corpus.
        dev: the held-out corpus that decides when to stop; its rationales are not looked at.
        trackers: who is told.
        checkpoint: file for the state of the run; None keeps none.
        identity: what must be the same for a checkpoint to belong to this run.
        warm_up: file of a warm-up that several runs share: taken if it is there, else written.
    """

    def __init__(
        self,
        method: Method,
        settings: Settings,
        *,
        train: Corpus,
        dev: Corpus,
        trackers: Sequence[Tracker] = (),
        checkpoint: Path | None = None,
        identity: str = "",
        warm_up: Path | None = None,
    ) -> None:
        self.method, self.settings, self.train = method, settings, train
        self.trackers, self.checkpoint, self.identity = trackers, checkpoint, identity
        self.warm_up = warm_up
        self.players = method.players()
        self.optimizers = {
            player.name: torch.optim.Adam(
                player.parameters(),
                lr=player.learning_rate,
                weight_decay=settings.training.weight_decay,
                fused=True,  # word vectors are many: one pass over them instead of one for each term
            )
            for player in self.players
        }
        shares = shares_of(method.task, settings.select)
        shares = shares[: len(method.views())]  # one that selects nothing has one view of all tasks
        self.controllers = [
            RateController(share, settings.controller.gain, method.controlled_share) for share in shares
        ]
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.state = Progress(phase="warm_up" if settings.training.warm_up_rounds else "joint")
        self.held_out = HeldOut(method, dev, shares=shares, texts=threshold_texts(dev, train))
        self.weights = Weights(method, averaging=settings.training.averaging)
        self._untrained: dict[str, Tensor] = {}
        self.reference = torch.empty(0, dtype=torch.float64)
        training, batches = settings.training, len(self._plan(None))
        self._usual_steps = min(max(batches, training.least_round_steps), training.most_round_steps)
        self._batches: list[NDArray[np.int64]] = []
        self._batches_of = -1

    def run(self, *, resume: bool = False) -> Result:
        """Train to the end, or until interrupted; the method then has the best weights found."""
        with torch.random.fork_rng(devices=[]), stop_on_interrupt() as stop:
            torch.manual_seed(self.settings.seed)
            if self.warm_up is not None:  # before a checkpoint's weights come in
                self._untrained = self.weights.copy()
            if resume and self.checkpoint is not None and self.checkpoint.exists():
                self._restore()
            elif self.state.phase == "joint":
                self.method.begin_joint()
            else:
                self._share_warm_up()
            self._save()
            for tracker in self.trackers:
                tracker.start(total_steps=self._total_steps(), step=self.state.step, history=self.state.history)
            try:
                while not self.state.done and not stop.is_set():
                    self._round(stop)
            finally:
                for tracker in self.trackers:
                    tracker.finish()
            self._save()
        state = self.state
        trained = state.phase == "settle" or (state.phase == "joint" and state.round + state.round_step > 0)
        if self.weights.best:
            self.weights.load(self.weights.best)
        return Result(self.state.history, self.state.seconds, stop.is_set() and not self.state.done, trained)

    @property
    def round_steps(self) -> int:
        """How many steps make a round of this phase."""
        return self.settings.training.settle_steps if self.state.phase == "settle" else self._usual_steps

    def _round(self, stop: threading.Event) -> None:
        state, started, processor = self.state, time.monotonic(), time.process_time()
        began = saved = started
        self.method.train()
        while state.round_step < self.round_steps and not stop.is_set():
            self._step(self._next_rows())
            now = time.monotonic()
            if now - saved >= self.settings.training.checkpoint_seconds:
                state.seconds, began, saved = state.seconds + now - began, now, now
                self._save()
        state.seconds += time.monotonic() - began
        if state.round_step == self.round_steps:
            self._finish_round(time.monotonic() - started, time.process_time() - processor)

    def _finish_round(self, elapsed: float, processor: float) -> None:
        state, weights = self.state, self.weights
        began = time.monotonic()
        current = weights.copy()
        weights.load({**current, **weights.average})
        losses, dev = self.held_out.judge(state.phase)
        dev |= self._measured()
        kept = self._judge(losses)
        record = self._record(float(losses.mean()), kept, dev)
        record |= {"seconds": round(elapsed, 3), "processor": round(processor, 3)}
        state.history.append(record)
        if kept:
            state.stale = 0
            weights.best = weights.copy()
        else:
            state.stale += 1
        weights.load(current)
        state.round, state.round_step, state.sums = state.round + 1, 0, {}
        self._next_phase()
        state.seconds += time.monotonic() - began
        for tracker in self.trackers:
            tracker.round(record)
        self._save()

    def _judge(self, losses: Tensor) -> bool:
        """Whether to keep this round's weights: its held-out losses, (n,) or (n, k), against the best round's.

        In the joint phase a later round also wins where nobody can tell that it is worse: the selector goes on
        learning while the task loss stands still.
        """
        mean = float(losses.mean())
        if not math.isfinite(mean):
            return False
        change = None if math.isinf(self.state.best) else change_of(losses, self.reference)
        if change is None or change.better:
            self.state.best, self.reference = mean, losses
            return True
        return self.state.phase != "warm_up" and change.unclear

    def _next_phase(self) -> None:
        state, training = self.state, self.settings.training
        if state.phase == "warm_up":
            if state.stale >= training.warm_up_patience or state.round >= training.warm_up_rounds:
                if not self.weights.best:
                    raise TrainingError(
                        "the held-out loss was no number in any round of the warm-up; lower training.learning_rate"
                    )
                self.weights.load(self.weights.best)
                if self.warm_up is not None:
                    keep_warm_up(self.warm_up, self._untrained, self._warm_up_parts(), state)
                self._begin_joint()
        elif state.phase == "settle":
            state.done = True
        elif state.stale >= training.joint_patience or state.round >= training.joint_rounds:
            if self.method.settles and training.settle_steps and self.weights.best:
                self.weights.load(self.weights.best)
                state.phase, state.round, self.weights.average, state.followed = "settle", 0, {}, 0
            else:
                state.done = True

    def _begin_joint(self) -> None:
        state = self.state
        self._untrained = {}
        self.method.begin_joint()
        self.weights.begin_anew()
        state.phase, state.round, state.stale, state.best, state.followed = "joint", 0, 0, math.inf, 0

    def _share_warm_up(self) -> None:
        """Begin behind a warm-up that is on file, if one is."""
        found = None if self.warm_up is None else take_warm_up(self.warm_up, self._warm_up_parts())
        if found is not None:
            self.state = found
            self._begin_joint()

    def _warm_up_parts(self) -> Parts:
        return Parts(self.weights.tensors(), dict(self.method.named_parameters()), self.optimizers, self.generator)

    def _step(self, rows: NDArray[np.int64]) -> None:
        state = self.state
        batch = collate(self.train, rows)
        selected = self.held_out.selected(batch) if state.phase == "settle" else None
        conditions = Conditions(state.phase, self._offset(), self.generator, selected)
        step = self.method.step(batch, conditions)
        moved = []
        for player in self.players:
            own = {name: value for name, value in step.objectives.items() if name in player.weights}
            if own:
                moved.append(player)
                self._backward(player.name, weighted_sum(own, player.weights), player.parameters())
        for player in moved:
            for group in self.optimizers[player.name].param_groups:
                group["lr"] = player.learning_rate * self._rate()
            self.optimizers[player.name].step()
        state.followed += 1
        self.weights.follow(state.followed)
        if state.phase == "joint" and step.selected is not None:
            for controller, count in zip(self.controllers, step.counts, strict=True):
                controller.update(count, step.tokens)
        state.count(step, len(rows))
        state.round_step, state.step = state.round_step + 1, state.step + 1
        for tracker in self.trackers:
            tracker.advance(step=state.step, phase=state.phase, tokens=step.tokens)

    def _offset(self) -> float | Tensor:
        offsets = [controller.offset for controller in self.controllers]
        return offsets[0] if len(offsets) == 1 else torch.tensor(offsets).view(-1, 1, 1)

    def _rate(self) -> float:
        """What is left of the learning rates: all of it in the warm-up, falling in a straight line after it."""
        if self.state.phase == "warm_up":
            return 1.0
        if self.state.phase == "settle":
            return self.settings.training.settle_rate * (1.0 - self.state.round_step / self.round_steps)
        done = self.state.round + self.state.round_step / self.round_steps
        return 1.0 - self.settings.training.joint_decay * min(1.0, done / self.settings.training.joint_rounds)

    def _backward(self, name: str, loss: Tensor, parameters: list[torch.nn.Parameter]) -> None:
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the {name}'s loss became {float(loss.detach())} at step {self.state.step}; "
                "lower training.learning_rate or the weight that was changed last"
            )
        self.optimizers[name].zero_grad(set_to_none=True)
        torch.autograd.backward(loss, inputs=parameters)  # only this player's parameters get a gradient
        torch.nn.utils.clip_grad_norm_(parameters, self.settings.training.clip)

    def _record(self, loss: float, kept: bool, dev: dict[str, Any]) -> dict[str, Any]:
        state = self.state
        return {
            "phase": state.phase,
            "round": state.round + 1,
            "step": state.step,
            "rate": state.rate,
            "offset": statistics.fmean(controller.offset for controller in self.controllers),
            "losses": state.mean_losses(),
            "dev_loss": loss,
            "kept": kept,
            "dev": dev,
        }

    def _measured(self) -> dict[str, Any]:
        """What the trackers find in the weights that are being judged; the random numbers stay as they were."""
        found: dict[str, Any] = {}
        with torch.random.fork_rng(devices=[]):
            for tracker in self.trackers:
                found |= tracker.measure(self.method, self.state.phase)
        return found

    def _plan(self, rng: np.random.Generator | None) -> list[NDArray[np.int64]]:
        training = self.settings.training
        return plan_batches(
            self.train.lengths, tokens=training.batch_tokens, documents=training.batch_documents, rng=rng
        )

    def _next_rows(self) -> NDArray[np.int64]:
        """The next batch; each pass over the data has its own seed, so that any pass can be made again."""
        state = self.state
        if self._batches_of != state.data_pass:
            self._batches = self._plan(np.random.default_rng([self.settings.seed, state.data_pass]))
            self._batches_of = state.data_pass
        rows = self._batches[state.position]
        state.position += 1
        if state.position == len(self._batches):
            state.data_pass, state.position = state.data_pass + 1, 0
        return rows

    def _total_steps(self) -> int:
        training = self.settings.training
        settling = training.settle_steps if self.method.settles else 0
        return (training.warm_up_rounds + training.joint_rounds) * self._usual_steps + settling

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        weights = {"model": self.weights.tensors(), "best": self.weights.best, "average": self.weights.average}
        tensors = {f"{kind}.{name}": value for kind, part in weights.items() for name, value in part.items()}
        for name, optimizer in self.optimizers.items():
            tensors |= {f"{name}.{key}": value for key, value in optimizer_tensors(optimizer).items()}
        tensors |= {
            "reference": self.reference,
            "random.global": torch.get_rng_state(),
            "random.own": self.generator.get_state(),
        }
        values = {
            "identity": self.identity,
            "threads": torch.get_num_threads(),
            "offsets": [controller.offset for controller in self.controllers],
            "progress": self.state.to_json(),
        }
        write_checkpoint(self.checkpoint, tensors, values)

    def _restore(self) -> None:
        if self.checkpoint is None:
            return
        tensors, values = read_checkpoint(self.checkpoint)
        if values["identity"] != self.identity:
            raise OtherRunError(
                f"{self.checkpoint} belongs to a run with other data or settings; "
                "resume with the same data and settings, or train anew without resuming"
            )
        torch.set_num_threads(values["threads"])  # another number of threads may round sums differently
        self.weights.load(take(tensors, "model"))
        self.weights.best, self.weights.average = take(tensors, "best"), take(tensors, "average")
        self.reference = tensors["reference"]
        for name, optimizer in self.optimizers.items():
            load_optimizer(optimizer, take(tensors, name))
        torch.set_rng_state(tensors["random.global"])
        self.generator.set_state(tensors["random.own"])
        for controller, offset in zip(self.controllers, values["offsets"], strict=True):
            controller.offset = offset
        self.state = Progress.from_json(values["progress"])
