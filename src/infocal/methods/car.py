"""CAR (Chang, Zhang, Yu, Jaakkola, NeurIPS 2019): for each class, the words that speak for it."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from infocal.errors import SettingsError
from infocal.losses.adversarial import discrimination
from infocal.losses.classwise import doubt, share_gap
from infocal.losses.fluency import fused_lasso
from infocal.methods.base import Conditions, Method, Player, Step
from infocal.methods.parts import (
    build_predictor,
    encoder_sizes,
    input_dropout,
    only,
    own_settings,
    targets_of,
    unmoved,
)
from infocal.nn.classwise import ClasswiseSelector
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.gates import straight_through
from infocal.settings import CarSettings, Settings
from infocal.tasks import Task
from infocal.types import Batch

__all__ = ["Car"]


class Car(Method):
    """Per class t a factual generator, a counterfactual generator and a discriminator.

    The factual generator of t reads texts of class t, the counterfactual one reads texts of the other classes;
    both want d_t to take their words for factual ones, and d_t wants to tell them apart. Only words that speak for
    t win the factual generator its game: whatever other classes have too, its opponent can show as well.

    The loop's controller holds the share of factual words, for both roles alike: the paper's penalty alone takes
    thousands of steps to get there. What the penalty is left to do is to give that share to every class.

    Three readings of the paper, so that any number of classes trains in one pass:

    - The generators of a role share an encoder and differ in their output layers, and so do the discriminators.
    - A document plays counterfactual for one other class per step, drawn at random; with two classes that is the
      other one, with more it keeps the two sides of each discriminator in balance.
    - The game has rationales for a class that is given, and no prediction. Here a classifier of the full text,
      trained in the warm-up and then left alone with the word vectors, names the class; the factual generator of
      that class selects; and a predictor trained on factual rationales predicts from what was selected. That
      predictor may tell the class by which generator chose, so its accuracy says little of the words themselves.

    Args:
        settings: weights of the penalties, the share, sizes.
        embedding: token ids to vectors, shared by all parts, trained in the warm-up only.
        task: a classification; scores have no classes to argue for.
    """

    settles = True

    def __init__(self, settings: Settings, *, embedding: TokenEmbedding, task: Task) -> None:
        super().__init__()
        self.settings, self.car = settings, _checked(settings)
        self.task = task
        self.embedding = embedding
        self.language_model = None
        sizes = encoder_sizes(settings, embedding)
        self.input_dropout = input_dropout(settings)
        self.classifier = build_predictor(settings, embedding, task)
        self.factual = ClasswiseSelector(**sizes, classes=task.outputs)
        self.counterfactual = ClasswiseSelector(**sizes, classes=task.outputs)
        self.discriminator = build_predictor(settings, embedding, task)
        self.predictor = build_predictor(settings, embedding, task)

    def players(self) -> tuple[Player, ...]:
        """The two sides of the game, and the readers beside it."""
        loss, training = self.settings.loss, self.settings.training
        wishes = {
            "factual": 1.0,
            "counterfactual": 1.0,
            "sparsity": self.car.sparsity,
            "continuity": self.car.continuity,
        }
        readers = (self.embedding, self.classifier, self.predictor)
        return (
            Player(
                "readers",
                readers,
                {"guidance": loss.guidance, "prediction": loss.prediction},
                training.learning_rate,
            ),
            Player("generators", (self.factual, self.counterfactual), wishes, training.learning_rate),
            Player(
                "discriminators",
                (self.discriminator,),
                {"discrimination": loss.discrimination},
                training.discriminator_learning_rate,
            ),
        )

    def begin_joint(self) -> None:
        """Start every encoder of the game, and the predictor, from the classifier, if the settings say so."""
        if self.settings.model.initialise_selector:
            for part in (self.factual, self.counterfactual, self.discriminator):
                part.encoder.load_state_dict(self.classifier.encoder.state_dict())
            self.predictor.load_state_dict(self.classifier.state_dict())

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The classifier's loss in the warm-up, then the game and the predictor's loss on factual rationales."""
        tokens, classes = int(batch.mask.sum()), targets_of(batch)
        if conditions.phase == "warm_up":
            logits = self.classifier(self.input_dropout(self.embedding(batch.ids)), batch.mask)
            return Step({"guidance": self.task_loss(logits, batch)}, None, tokens)
        if conditions.phase == "settle":
            logits = self.predictor(self.settled_vectors(batch, conditions), batch.mask)
            return Step({"prediction": self.task_loss(logits, batch)}, None, tokens)
        vectors, mask = self.input_dropout(self.embedding(batch.ids).detach()), batch.mask
        others = self._other_classes(classes, conditions.generator)
        factual = self._rationale(self.factual, vectors, mask, classes, conditions)
        counterfactual = self._rationale(self.counterfactual, vectors, mask, others, conditions)
        found = self._wishes(vectors, mask, factual, classes, counterfactual, others)
        judged = self._judge(vectors, mask, (factual.detach(), counterfactual.detach()), (classes, others))
        found["discrimination"] = discrimination(*judged)
        kept = vectors * factual.detach().unsqueeze(-1)
        found["prediction"] = self.task_loss(self.predictor(kept, mask), batch)
        return Step(found, float(factual.detach().sum()), tokens)

    @torch.no_grad()
    def score_tokens(self, batch: Batch) -> Tensor:
        """(b, t): the log-odds of the factual generator of the class that the classifier names."""
        vectors = self.embedding(batch.ids)
        classes = self.classifier(vectors, batch.mask).argmax(dim=1)
        scores: Tensor = self.factual(vectors, batch.mask, classes)
        return scores

    @torch.no_grad()
    def predict(self, batch: Batch, selected: Tensor) -> Tensor:
        """(b, c): the predictor's output given only the tokens where ``selected`` (b, t) is True."""
        vectors = only(self.embedding(batch.ids), selected, batch.mask)
        logits: Tensor = self.predictor(vectors, batch.mask)
        return logits

    @torch.no_grad()
    def predict_full(self, batch: Batch) -> Tensor:
        """(b, c): the classifier's output."""
        logits: Tensor = self.classifier(self.embedding(batch.ids), batch.mask)
        return logits

    def _wishes(
        self,
        vectors: Tensor,
        mask: Tensor,
        factual: Tensor,
        classes: Tensor,
        counterfactual: Tensor,
        others: Tensor,
    ) -> dict[str, Tensor]:
        """What the generators want: to pass for factual, within the share, in few pieces."""
        share = self.settings.share
        with unmoved(self.discriminator):
            judged = self._judge(vectors, mask, (factual, counterfactual), (classes, others))
        return {
            "factual": doubt(judged[0]),
            "counterfactual": doubt(judged[1]),
            "sparsity": share_gap(factual, mask, classes, share=share)
            + share_gap(counterfactual, mask, others, share=share),
            "continuity": fused_lasso(factual, mask) + fused_lasso(counterfactual, mask),
        }

    def _rationale(
        self,
        generator: ClasswiseSelector,
        vectors: Tensor,
        mask: Tensor,
        classes: Tensor,
        conditions: Conditions,
    ) -> Tensor:
        """(b, t): the mask of a generator, exactly 0 or 1, without noise, relaxed going backward."""
        logits = generator(vectors, mask, classes) - conditions.offset
        return straight_through(logits, temperature=self.settings.gate.temperature) * mask

    def _judge(
        self, vectors: Tensor, mask: Tensor, selections: tuple[Tensor, Tensor], classes: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """(b,) twice: the log-odds by which the discriminators take words for factual, in one pass.

        Args:
            vectors: (b, t, d).
            mask: (b, t), True on real tokens.
            selections: (b, t) each, of the factual and of the counterfactual generators.
            classes: (b,) each, whose generator chose, and whose discriminator is asked.
        """
        kept = torch.cat([vectors * selection.unsqueeze(-1) for selection in selections])
        logits: Tensor = self.discriminator(kept, torch.cat((mask, mask)))
        factual, counterfactual = logits.gather(1, torch.cat(classes).unsqueeze(1)).squeeze(1).chunk(2)
        return factual, counterfactual

    def _other_classes(self, classes: Tensor, generator: Generator) -> Tensor:
        """(b,): for each document a class that is not its own."""
        count = self.task.outputs
        draws = torch.rand(classes.shape, generator=generator, device=classes.device)
        return (classes + 1 + (draws * (count - 1)).long().clamp(max=count - 2)) % count


def _checked(settings: Settings) -> CarSettings:
    own = own_settings(settings.car, method="car")
    if not settings.training.warm_up_rounds:
        raise SettingsError(
            "training.warm_up_rounds is 0, but the method car shows words for the class that a classifier names, "
            "and the warm-up trains it; set it to 1 or more"
        )
    return own
