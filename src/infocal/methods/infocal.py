"""InfoCal (Sha, Camburu, Lukasiewicz, AAAI 2021): rationales calibrated against a model that reads everything."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from infocal.errors import SettingsError
from infocal.losses.adversarial import discrimination, imitation
from infocal.losses.calibration import effect, smooth, token_calibration
from infocal.losses.fluency import fused_lasso, language_model_cost
from infocal.losses.information import guider_information, selection_information
from infocal.losses.supervision import rationale_supervision
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import build_selector, encoder_sizes, input_dropout, only, standing_still
from infocal.methods.task_rows import TaskRows
from infocal.methods.views import TaskView
from infocal.nn.discriminator import Discriminator
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.gates import sample_gate
from infocal.nn.language_model import VectorLanguageModel
from infocal.nn.reader import Reader
from infocal.settings import Settings
from infocal.tasks import Goal, Task, parts_of, shares_of
from infocal.types import Batch, Features, Output, Selection

__all__ = ["InfoCal"]


class InfoCal(Method):
    """Selector, predictor, guider, discriminator and language model, put together by the settings.

    Of several tasks on one text each has its own selection: the selector scores every token k times, the predictor
    reads the text once with each selection, the guider once with all words, and each task has its own attention to
    what they read. In shapes, k * b are the documents with the selection of the first task, then those with that
    of the second, and so on; k is 1 for one task. Where one network makes the features of all k tasks of a
    document, they are (b, k, f).

    Args:
        settings: weights, forms and sizes.
        embedding: token ids to vectors, shared by all parts.
        task: gives the head's width, the loss and the margin that attributions explain.
    """

    settles = True

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Goal) -> None:
        super().__init__()
        self.tasks = parts_of(task)
        self.rows = TaskRows(self.tasks)
        self.shares = shares_of(task, settings.select)
        if len(self.tasks) > 1 and settings.loss.rationale_supervision:
            raise SettingsError("loss.rationale_supervision (--supervise) is for one label; rows mark words once")
        model, sizes = settings.model, encoder_sizes(settings, embedding)
        self.settings = settings
        self.task = task
        self.embedding = embedding
        self.controlled_share = settings.loss.selection_information is None
        self.learns_full_text = bool(settings.loss.guidance)
        self.input_dropout = input_dropout(settings)
        self.selector = build_selector(settings, embedding, centred=self.controlled_share, outputs=len(self.tasks))
        sizes |= {"feature_width": model.feature_width, "tasks": len(self.tasks)}
        self.guider = Reader(**sizes)
        self.predictor = self.guider if model.sharing == "all" else Reader(**sizes)
        self.head = nn.Linear(model.feature_width, task.outputs)
        self.discriminator = Discriminator(
            feature_width=model.feature_width, hidden_width=model.discriminator_width
        )
        self.language_model: VectorLanguageModel = VectorLanguageModel(
            width=embedding.width, hidden_width=settings.language_model.hidden_width
        )
        self.language_model.requires_grad_(False)

    def views(self) -> tuple[Method, ...]:
        """The method itself, or one for each of several tasks."""
        if isinstance(self.task, Task):
            return (self,)
        return tuple(TaskView(self, place, task) for place, task in enumerate(self.tasks))

    def players(self) -> tuple[Player, ...]:
        """The rationalizer (selector, predictor, guider) and the discriminator (Algorithm 1)."""
        loss, training = self.settings.loss, self.settings.training
        pinned = loss.selection_information
        weights = {
            "prediction": loss.prediction,
            "guidance": loss.guidance,
            "selection_information": (self.settings.controller.information_weight if pinned is None else pinned),
            "guider_information": loss.guider_information,
            "imitation": loss.imitation,
            "fluency": loss.fluency,
            "fused_lasso": loss.fused_lasso,
            "token_calibration": loss.token_calibration,
            "rationale_supervision": loss.rationale_supervision,
        }
        rationalizer = Player(
            "rationalizer",
            (self.embedding, self.selector, self.guider, self.predictor, self.head),
            weights,
            training.learning_rate,
        )
        if not loss.imitation:
            return (rationalizer,)
        critic = Player(
            "discriminator",
            (self.discriminator,),
            {"discrimination": loss.discrimination},
            training.discriminator_learning_rate,
        )
        return (rationalizer, critic)

    def begin_joint(self) -> None:
        """Start the selector, and a predictor of its own, from the warmed-up guider."""
        if self.settings.model.initialise_selector:
            self.selector.encoder.load_state_dict(self.guider.encoder.state_dict())
            if self.predictor is not self.guider:
                self.predictor.load_state_dict(self.guider.state_dict())

    def forward(self, batch: Batch, conditions: Conditions) -> Output:
        """One training pass: sampled mask, sampled features on both sides.

        Both sides sample their Gaussian: if only the guider did, the discriminator would detect the noise.
        """
        vectors = self.input_dropout(self.embedding(batch.ids))
        selection = self._select(vectors, batch.mask, conditions)
        features, guide = self._read(vectors, selection.mask, batch.mask, conditions.generator)
        return Output(selection, features, self._answers(features), guide, self._outputs(guide))

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The objectives of one batch; in the warm-up only those of the guider."""
        tokens = int(batch.mask.sum())
        if conditions.phase == "warm_up":
            vectors = self.input_dropout(self.embedding(batch.ids))
            guide = self._guide(vectors, batch.mask, conditions.generator)
            return Step(self._guider_objectives(guide, self._outputs(guide), batch), None, tokens)
        if conditions.phase == "settle":
            return self._settle(batch, conditions, tokens)
        output = self.forward(batch, conditions)
        selected = self.rows.counts(output.selection.mask.detach())
        return Step(self.objectives(output, batch, conditions), selected, tokens)

    def objectives(self, output: Output, batch: Batch, conditions: Conditions) -> dict[str, Tensor]:
        """The objectives by name, each (b,); those that cost something only where their weight is not zero."""
        if output.guide_features is None or output.guide_logits is None:
            raise ValueError("training needs the guider's side")
        loss = self.settings.loss
        selection, mask = output.selection, self.rows.copies(batch.mask)
        found = self._guider_objectives(output.guide_features, output.guide_logits, batch)
        found["prediction"] = self.task_loss(output.logits, batch)
        found["selection_information"] = self.rows.mean(self._information(selection.logits, mask))
        if loss.imitation:
            found |= self._game(output, batch, conditions.generator)
        if loss.fluency:
            cost = language_model_cost(
                selection.mask,
                self.rows.copies(self.fluency_scores(batch)),
                mask,
                form=loss.fluency_form,
                reduction=loss.fluency_reduction,
            )
            found["fluency"] = self.rows.mean(cost)
        if loss.fused_lasso:
            found["fused_lasso"] = self.rows.mean(fused_lasso(selection.mask, mask))
        if loss.token_calibration:
            calibration = self._calibration(selection.logits, batch, conditions.generator)
            found["token_calibration"] = self.rows.mean(calibration)
        if loss.rationale_supervision and batch.gold is not None and batch.annotated is not None:
            found["rationale_supervision"] = rationale_supervision(
                selection.logits, batch.gold, batch.annotated, mask
            )
        return found

    def attribution(self, batch: Batch) -> Tensor:
        """How much the guider's answer hangs on each token, by the gradient of its margin.

        Args:
            batch: the documents.

        Returns:
            (k * b, t), no gradient, 0 on padding; dropout and sampling are off.
        """
        vectors = self.embedding(batch.ids).detach().requires_grad_(True)
        with standing_still(self.guider, self.head), torch.enable_grad():
            logits = self._outputs(self.guider(vectors, batch.mask))
            margins = [task.margin(part).sum() for task, part in self.rows.outputs(logits)]
            last = margins[-1]
            gradients = [torch.autograd.grad(one, vectors, retain_graph=one is not last)[0] for one in margins]
        found = [self._attributed(gradient, vectors.detach(), batch.mask) for gradient in gradients]
        return found[0] if len(found) == 1 else torch.cat(found)

    @torch.no_grad()
    def fluency_scores(self, batch: Batch) -> Tensor:
        """(b, t): the language model's score of each token after the unmasked words before it."""
        scores: Tensor = self.language_model(self.embedding(batch.ids))
        return scores

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the selector's log-odds, deterministic; (k, b, t) for several tasks."""
        scores: Tensor = self.selector(self.embedding(batch.ids), batch.mask)
        return scores

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the output given only the tokens where ``selected`` (b, t) is True."""
        vectors = only(self.embedding(batch.ids), selected, batch.mask)
        return self._outputs(self.predictor(vectors, batch.mask))

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the guider's output; that of the predictor, given all words, where no guider was trained."""
        reader = self.guider if self.learns_full_text else self.predictor
        return self._outputs(reader(self.embedding(batch.ids), batch.mask))

    def _settle(self, batch: Batch, conditions: Conditions, tokens: int) -> Step:
        """Predictor and guider go on learning while the selection stands still, word vectors included."""
        if conditions.selected is None:
            raise ValueError("settling needs the selected words")
        selected = conditions.selected.reshape(-1, conditions.selected.shape[-1])
        vectors = self.input_dropout(self.embedding(batch.ids).detach())
        features, guide = self._read(vectors, selected, batch.mask, conditions.generator)
        found = self._guider_objectives(guide, self._outputs(guide), batch)
        found["prediction"] = self.task_loss(self._answers(features), batch)
        return Step(found, self.rows.counts(selected), tokens)

    def _select(self, vectors: Tensor, mask: Tensor, conditions: Conditions) -> Selection:
        logits = self.selector(vectors, mask) - conditions.offset
        if len(self.tasks) > 1:
            logits, mask = logits.flatten(0, 1), self.rows.copies(mask)
        gate = self.settings.gate
        sampled = sample_gate(
            logits,
            mask,
            relaxation=gate.relaxation,
            temperature=gate.temperature,
            noise=gate.noise,
            generator=conditions.generator,
        )
        return Selection(logits, torch.sigmoid(logits) * mask, sampled)

    def _read(
        self, vectors: Tensor, selected: Tensor, mask: Tensor, generator: Generator
    ) -> tuple[Features, Features]:
        """The predictor's features (k * b) and the guider's (b); one network reads both sides in one pass."""
        kept, masks = self.rows.copies(vectors) * selected.unsqueeze(-1), self.rows.copies(mask)
        if self.predictor is not self.guider:
            features: Features = self.predictor(kept, masks, generator=generator)
            return self.rows.own(features), self._guide(vectors, mask, generator)
        both = self._guide(torch.cat((kept, vectors)), torch.cat((masks, mask)), generator)
        sizes = [len(kept), len(vectors)]
        parts = (torch.split(part, sizes) for part in (both.mean, both.deviation, both.sample))
        first, second = (Features(*half) for half in zip(*parts, strict=True))
        return self.rows.own(first), second

    def _guide(self, vectors: Tensor, mask: Tensor, generator: Generator) -> Features:
        features: Features = self.guider(vectors, mask, generator=generator)
        return features

    def _information(self, logits: Tensor, mask: Tensor) -> Tensor:
        """(k * b,): what the choices of (k * b, t) log-odds tell beyond each task's share of words."""
        loss, count = self.settings.loss, len(self.tasks)
        found = [
            selection_information(
                part, own, prior=loss.selection_prior or share, reduction=loss.selection_reduction
            )
            for part, own, share in zip(logits.chunk(count), mask.chunk(count), self.shares, strict=True)
        ]
        return found[0] if count == 1 else torch.cat(found)

    def _guider_objectives(self, guide: Features, logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        found = {"guidance": self.task_loss(logits, batch)}
        if self.settings.loss.guider_information:
            information = guider_information(
                guide.mean, guide.deviation, reduction=self.settings.loss.guider_reduction
            )
            found["guider_information"] = information if information.ndim == 1 else information.mean(dim=1)
        return found

    def _game(self, output: Output, batch: Batch, generator: Generator) -> dict[str, Tensor]:
        """L_g for the rationalizer, L_d for the discriminator; neither gradient reaches the other's side."""
        if output.guide_features is None:
            raise ValueError("the game needs the guider's side")
        real, fake = output.guide_features.sample.detach(), output.features.sample
        reached = fake
        if self.settings.loss.imitation_reach == "selector":
            reached = self._moved_by_words(output.selection.mask, batch, generator)
        return {
            "imitation": self.rows.mean(imitation(self.discriminator(reached))),
            "discrimination": self.rows.mean(
                discrimination(
                    self.discriminator(self.rows.by_task(real)),
                    self.discriminator(fake.detach()),
                    form=self.settings.loss.discrimination_form,
                )
            ),
        }

    def _moved_by_words(self, selected: Tensor, batch: Batch, generator: Generator) -> Tensor:
        """(k * b, d): the predictor's features, which nothing but the selection can move; dropout is off.

        The network could otherwise please the discriminator with other features for the same words.
        """
        vectors = self.rows.copies(self.embedding(batch.ids).detach())
        with standing_still(self.predictor):
            features: Features = self.predictor(
                vectors * selected.unsqueeze(-1), self.rows.copies(batch.mask), generator=generator
            )
        return self.rows.own(features).sample

    def _calibration(self, logits: Tensor, batch: Batch, generator: Generator) -> Tensor:
        window = self.settings.loss.calibration_window
        if window == "auto":
            raise ValueError("calibration_window must be resolved before training")
        mask = self.rows.copies(batch.mask)
        attribution = smooth(self.attribution(batch), mask, window=window)
        lengths = mask.sum(dim=1, keepdim=True)
        draws = torch.rand(mask.shape, generator=generator, device=logits.device)
        partner = torch.minimum((draws * lengths).long(), lengths - 1)
        return token_calibration(logits, attribution, partner, mask)

    def _attributed(self, gradient: Tensor, vectors: Tensor, mask: Tensor) -> Tensor:
        if self.settings.loss.calibration_attribution == "effect":
            return effect(gradient, vectors, mask)
        norm: Tensor = gradient.norm(dim=-1) * mask
        return norm

    def _outputs(self, features: Features) -> Tensor:
        """(b, c): each task's outputs, made from its own of the features (b, k, f)."""
        logits: Tensor = self.head(features.sample)
        return logits if len(self.tasks) == 1 else self.rows.joined(logits.unbind(1))

    def _answers(self, features: Features) -> Tensor:
        """(b, c): each task's outputs, made from the features (k * b, f) of its own selection."""
        logits: Tensor = self.head(features.sample)
        return logits if len(self.tasks) == 1 else self.rows.joined(logits.chunk(len(self.tasks)))
