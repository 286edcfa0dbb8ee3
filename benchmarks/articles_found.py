"""How often the first article that FLA's retrievers find is the court's, for facts they know and for new ones.

    python benchmarks/articles_found.py DIR/cases-30

DIR/cases-30 are the cases that `python benchmarks/legal.py run --out DIR` prepares. Three figures: training facts
by the retriever that has seen them; the same facts each by one fitted without them (`fla.retriever_folds`),
which is what FLA learns from; held-out facts by the first. No test case is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from infocal.config import load_settings
from infocal.data.corpus import Corpus
from infocal.data.encoded import EncodedFolder
from infocal.legal.articles import build_articles
from infocal.nn.retrieval import top_unseen
from infocal.text.segmentation import segmenter_named

TASK = "article"
BLOCK = 64


def first_is_right(corpus: Corpus, best: Callable[[Tensor], Tensor]) -> float:
    """The share of documents whose article is the first that is found."""
    right = 0
    for start in range(0, len(corpus), BLOCK):
        block = corpus.subset(np.arange(start, min(start + BLOCK, len(corpus))))
        ids, bounds = torch.from_numpy(np.asarray(block.ids, dtype=np.int64)), block.offsets.tolist()
        rows = [ids[one:end] for one, end in pairwise(bounds)]
        found = best(torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))[:, 0]
        right += int((found.numpy() == block.targets).sum())
    return right / len(corpus)


def main(path: str) -> None:
    """Fit the retrievers and print the figures."""
    torch.set_num_threads(1)
    folder, own = EncodedFolder.open(path), load_settings("fla").fla
    train, held_out = folder.part("train", TASK), folder.part("valid", TASK)
    law = build_articles(
        {},
        names=folder.classes(TASK),
        train=train,
        labels=np.asarray(train.targets, dtype=np.int64),
        segmenter=segmenter_named(folder.manifest["segmenter"]),
        vocabulary=folder.vocabulary,
        article_tokens=own.article_tokens,
        retriever_words=own.retriever_words,
        retriever_documents=own.retriever_documents,
        retriever_folds=own.retriever_folds,
    )
    seen = first_is_right(train, lambda ids: law.retriever.top(ids, 1))
    unseen = first_is_right(train, lambda ids: top_unseen(law.unseen, ids, 1))
    new = first_is_right(held_out, lambda ids: law.retriever.top(ids, 1))
    print(f"training facts {seen:.3f}, each by a retriever without it {unseen:.3f}, held-out facts {new:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
