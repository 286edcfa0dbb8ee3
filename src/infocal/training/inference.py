"""Running a trained method over a corpus, batch by batch, without padding waste."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from infocal.data.batches import collate, plan_batches
from infocal.data.corpus import Corpus

if TYPE_CHECKING:
    from torch import Tensor

    from infocal.methods.base import Method
    from infocal.types import Batch

__all__ = ["full_text_outputs", "outputs", "token_scores", "view_scores"]

BATCH_TOKENS = 8192
BATCH_DOCUMENTS = 512


@contextmanager
def _inference(method: Method) -> Iterator[None]:
    import torch

    training = method.training
    method.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        method.train(training)


def _batches(corpus: Corpus) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    for rows in plan_batches(corpus.lengths, tokens=BATCH_TOKENS, documents=BATCH_DOCUMENTS, rng=None):
        yield rows, collate(corpus, rows)


def token_scores(method: Method, corpus: Corpus) -> NDArray[np.float32]:
    """What decoders cut: a score of every token of the corpus, (total,)."""
    scores: NDArray[np.float32] = view_scores(method, corpus)[0]
    return scores


def view_scores(method: Method, corpus: Corpus) -> NDArray[np.float32]:
    """(k, total): the same for each of a method's views, every text read once."""
    scores = np.empty((len(method.views()), len(corpus.ids)), dtype=np.float32)
    with _inference(method):
        for rows, batch in _batches(corpus):
            mask = batch.mask.numpy()
            values = method.decoding_scores(batch).numpy().reshape(-1, *mask.shape)
            scores[:, _places(corpus, rows, mask)] = values[:, mask]
    return scores


def outputs(method: Method, corpus: Corpus, selected: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The predictor's output for every document, given the selected tokens, (n, c)."""
    import torch

    def predict(rows: NDArray[np.int64], batch: Batch) -> Tensor:
        mask = batch.mask.numpy()
        chosen = np.zeros(mask.shape, dtype=np.bool_)
        chosen[mask] = selected[_places(corpus, rows, mask)]
        return method.predict(batch, torch.from_numpy(chosen))

    return _collect(method, corpus, predict)


def full_text_outputs(method: Method, corpus: Corpus) -> NDArray[np.float32]:
    """The output of the part that reads every word, (n, c)."""
    return _collect(method, corpus, lambda rows, batch: method.predict_full(batch))


def _collect(
    method: Method, corpus: Corpus, predict: Callable[[NDArray[np.int64], Batch], Tensor]
) -> NDArray[np.float32]:
    result: NDArray[np.float32] | None = None
    with _inference(method):
        for rows, batch in _batches(corpus):
            values = predict(rows, batch).numpy()
            if result is None:
                result = np.empty((len(corpus), values.shape[1]), dtype=np.float32)
            result[rows] = values
    if result is None:
        raise ValueError("the corpus is empty")
    return result


def _places(corpus: Corpus, rows: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where the real tokens of a batch stand in the flat corpus."""
    places = corpus.offsets[rows][:, None] + np.arange(mask.shape[1])
    return np.asarray(places[mask], dtype=np.int64)
