"""Before the game: what can be learned from the text alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from infocal.data.batches import collate, plan_batches
from infocal.data.corpus import Corpus
from infocal.losses.fluency import language_model_pretraining
from infocal.losses.reductions import masked_mean
from infocal.training.word_vectors import learn_word_vectors

if TYPE_CHECKING:
    from infocal.nn.embedding import TokenEmbedding
    from infocal.nn.language_model import VectorLanguageModel
    from infocal.settings import Settings

__all__ = ["pretrain_language_model", "start_word_vectors"]

MOST_BATCHES = 2500
"""Of a pass: ten million words at the usual batch, about as many as the rounds after it read; a pass over a large
corpus would read many times what the training does that it serves."""


@torch.no_grad()
def start_word_vectors(embedding: TokenEmbedding, corpus: Corpus, settings: Settings) -> None:
    """Fill the table with vectors learned from the corpus; words without one keep what they have."""
    known, vectors = learn_word_vectors(
        corpus, size=len(embedding.places), width=embedding.width, seed=settings.seed
    )
    ids = torch.from_numpy(known)
    filled = embedding(ids)
    filled[:, : vectors.shape[1]] = vectors
    embedding.fill(ids, filled)


def pretrain_language_model(
    model: VectorLanguageModel, embedding: TokenEmbedding, corpus: Corpus, settings: Settings
) -> float:
    """Train the vector language model by negative sampling (Eq. pre); the token vectors stay as they are.

    Negatives are drawn from the words' frequencies in the corpus and shared by the positions of a batch,
    so that their scores are one matrix product. A pass over a large corpus ends after `MOST_BATCHES`, which are
    others in the next.

    Returns:
        The mean loss of the last pass; 2 ln 2 is that of a model that knows nothing.
    """
    choices = settings.language_model
    generator = torch.Generator().manual_seed(settings.seed)
    rng = np.random.default_rng([settings.seed, 1])
    frequency = torch.from_numpy(corpus.word_counts(len(embedding.places)).astype(np.float32))
    model.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=choices.learning_rate)
    total, batches = 0.0, 0
    for _ in range(choices.passes):
        total, batches = 0.0, 0
        plan = plan_batches(
            corpus.lengths,
            tokens=settings.training.batch_tokens,
            documents=settings.training.batch_documents,
            rng=rng,
        )
        for rows in plan[:MOST_BATCHES]:
            batch = collate(corpus, rows)
            if batch.ids.shape[1] < 2:
                continue
            drawn = torch.multinomial(frequency, choices.negatives, replacement=True, generator=generator)
            with torch.no_grad():
                vectors, negatives = embedding(batch.ids), embedding(drawn)
            positive, negative = model.contrast(vectors, negatives)
            loss = language_model_pretraining(positive[:, 1:], negative[:, 1:], form=choices.form)
            value = masked_mean(loss, batch.mask[:, 1:]).mean()
            optimizer.zero_grad()
            torch.autograd.backward(value)
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.training.clip)
            optimizer.step()
            total, batches = total + float(value.detach()), batches + 1
    model.requires_grad_(False)
    return total / max(batches, 1)
