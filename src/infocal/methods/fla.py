"""FLA (Luo, Feng, Xu, Zhang, Zhao, EMNLP 2017): a fact is read together with the law articles that may apply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from infocal.errors import SettingsError
from infocal.methods.base import Conditions, Player, Step
from infocal.methods.judges import Judge
from infocal.methods.parts import own_settings, targets_of
from infocal.nn.dropout import Dropout
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.encoders import build_encoder
from infocal.nn.hierarchy import ContextAttention, TwoLevelEncoder, find_sentences, weighted_mean
from infocal.nn.retrieval import ArticleRetriever, Articles, top_unseen
from infocal.settings import FlaSettings, Settings
from infocal.tasks import Goal, Joint
from infocal.types import Batch

__all__ = ["Fla", "missed_attention", "stored_articles"]


class Fla(Judge):
    """Fact, articles that a linear classifier finds for it, and answers from both.

    The equations are our reading of the paper. With two-level encoders (words, sentences) whose attention has the
    contexts in brackets, a_1 ... a_k the texts of the k articles found for a fact, the best first, and u learned
    vectors::

        f   = Encoder_fact(fact; u_word, u_sentence)
        z_n = Encoder_article(a_n; W_word f + b_word, W_sentence f + b_sentence)
        z   = attention over GRU(z_1 ... z_k), in both directions, with the context W_set f + b_set
        o   = V relu(U_2 relu(U_1 [f; z])), all tasks' outputs side by side

    The attention over the articles found learns which of them the court named, by its cross-entropy, weighted with
    ``fla.attention_weight``; facts whose article was not found teach it nothing. The authors' full model is said
    to do the same; we had no text of it to check the form and the weight against. In training, articles are found
    by a classifier that was fitted without the fact (``fla.retriever_folds``): one that has seen it knows the
    answer. The authors predict charges and extract articles; here both are tasks, and every task is answered from
    the same vector.

    Args:
        settings: sizes.
        embedding: token ids to vectors, of facts and articles alike.
        task: the tasks; the classes of the one that ``fla.article_task`` names are the articles.
        articles: their texts, and what finds them; both are kept in the network.
    """

    article_ids: Tensor
    sentence_ends: Tensor
    fact_word: nn.Parameter
    fact_sentence: nn.Parameter

    def __init__(
        self, settings: Settings, *, embedding: TokenEmbedding, task: Goal, articles: Articles | None
    ) -> None:
        super().__init__(settings, embedding=embedding, task=task)
        self.own = own_settings(settings.fla, method="fla")
        law = _checked(articles, self.own, self.task)
        self.register_buffer("article_ids", law.table(longest=self.own.article_tokens))
        self.register_buffer("sentence_ends", torch.tensor(law.sentence_ends, dtype=torch.int64))
        self.retriever = law.retriever
        self.unseen = law.unseen  # a tuple: they serve training alone, and are no part of what is saved
        sizes = {"input_width": embedding.width, "hidden_width": self.own.hidden_width}
        self.fact_encoder, self.article_encoder = TwoLevelEncoder(**sizes), TwoLevelEncoder(**sizes)
        width = self.fact_encoder.output_width
        self.fact_word, self.fact_sentence = (nn.Parameter(torch.randn(width) * width**-0.5) for _ in range(2))
        self.contexts = nn.Linear(width, 3 * width)
        self.set_encoder = build_encoder("gru", input_width=width, hidden_width=self.own.hidden_width)
        self.set_attention = ContextAttention(width=width)
        inner = self.own.output_width
        self.dropout = Dropout(settings.encoder.dropout)
        self.output = nn.Sequential(nn.Linear(2 * width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU())
        self.heads = nn.Linear(inner, self.task.outputs)

    def players(self) -> tuple[Player, ...]:
        """One, who also wants the attention on the articles that courts named."""
        (judge,) = super().players()
        return (replace(judge, weights={**judge.weights, "article_attention": self.own.attention_weight}),)

    def step(self, batch: Batch, conditions: Conditions) -> Step:
        """The tasks' loss, and that of the attention over the articles found."""
        found = self._found_in_training(batch.ids)
        logits, scores = self._answer(self.input_dropout(self.embedding(batch.ids)), batch, found)
        named = targets_of(batch)[:, list(self.task.tasks).index(self.own.article_task)].long()
        unit = 1.0 if self.settings.loss.scale == "printed" else math.log(max(2, found.shape[1]))
        losses = {
            "prediction": self.task_loss(logits, batch),
            "article_attention": missed_attention(found, scores, named) / unit,
        }
        return Step(losses, None, int(batch.mask.sum()))

    def answer(self, vectors: Tensor, batch: Batch) -> Tensor:
        """(b, c): fact, articles, answers."""
        return self._answer(vectors, batch, self.retriever.top(batch.ids, self.own.articles))[0]

    def _found_in_training(self, ids: Tensor) -> Tensor:
        """(b, k): the articles found for documents of which the retriever has learned the answer.

        It puts that answer first nearly always, and the network would learn to repeat what it says.
        """
        if self.unseen:
            return top_unseen(self.unseen, ids, self.own.articles)
        return self.retriever.top(ids, self.own.articles)

    def _answer(self, vectors: Tensor, batch: Batch, found: Tensor) -> tuple[Tensor, Tensor]:
        """(b, c), and (b, k): what the softmax of the attention on the articles ``found`` (b, k) is taken of."""
        layout = find_sentences(batch.ids, batch.mask, self.sentence_ends, longest=self.own.sentence_tokens)
        fact = self.fact_encoder(vectors, layout, self.fact_word, self.fact_sentence)
        law, scores = self._read_articles(found, fact)
        joined = self.dropout(torch.cat((fact, law), dim=1))
        logits: Tensor = self.heads(self.dropout(self.output(joined)))
        return logits, scores

    def _read_articles(self, found: Tensor, fact: Tensor) -> tuple[Tensor, Tensor]:
        """(b, 2h), (b, k): the set of the articles ``found`` (b, k), as the facts (b, 2h) see it; their scores."""
        word, sentence, whole = self.contexts(fact).chunk(3, dim=1)
        some, wanted = torch.unique(found, return_inverse=True)  # articles that several facts share are read once
        ids = self.article_ids[some]
        layout = find_sentences(ids, ids > 0, self.sentence_ends, longest=self.own.sentence_tokens)
        vectors = self.input_dropout(self.embedding(ids))
        read = self.article_encoder.for_readers(vectors, layout, wanted, word, sentence)
        every = torch.ones_like(wanted, dtype=torch.bool)
        states = self.set_encoder(read, every)
        scores = self.set_attention.scores(states, every, whole)
        return weighted_mean(scores, states), scores


def missed_attention(found: Tensor, scores: Tensor, named: Tensor) -> Tensor:
    """(b,): minus the logarithm of the attention on the article that the court named; 0 where it was not found.

    Args:
        found: (b, k) int64, articles.
        scores: (b, k), what the softmax of the attention is taken of.
        named: (b,) int64, the court's article.
    """
    logarithms = torch.log_softmax(scores, dim=1)
    return -logarithms.masked_fill(found != named.unsqueeze(1), 0.0).sum(dim=1)


def stored_articles(tensors: Mapping[str, Tensor]) -> Articles:
    """The articles of a network whose tensors, by name, were saved."""
    ids = tensors["article_ids"]
    offsets = torch.cat((ids.new_zeros(1), (ids > 0).sum(dim=1).cumsum(0)))
    names = ("places", "inverse_frequency", "weights", "bias")
    retriever = ArticleRetriever(**{name: tensors[f"retriever.{name}"] for name in names})
    return Articles(ids[ids > 0], offsets, tuple(tensors["sentence_ends"].tolist()), retriever)


def _checked(articles: Articles | None, own: FlaSettings, task: Joint) -> Articles:
    if own.article_task not in task.tasks:
        raise SettingsError(
            f"fla.article_task is {own.article_task!r}; the tasks are {', '.join(task.tasks)}: name the one "
            "whose classes are the law articles"
        )
    if articles is None:
        raise SettingsError("the method fla reads law articles beside the facts, and none were given")
    known, wanted = len(articles.offsets) - 1, task.tasks[own.article_task].outputs
    if known != wanted or len(articles.retriever.bias) != wanted:
        raise SettingsError(
            f"there are {known} law articles and a retriever for {len(articles.retriever.bias)}, but the task "
            f"{own.article_task} has {wanted} classes; give one article per class, in their order"
        )
    return articles
