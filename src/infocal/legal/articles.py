"""Law articles for FLA: the user's file of their texts, and the classifier that finds them for a document."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infocal.data.corpus import Corpus, CorpusBuilder
from infocal.data.readers import checked_text
from infocal.data.records import BadRows, read_records
from infocal.errors import DataError, MissingExtraError
from infocal.text.segmentation import Segmenter
from infocal.text.sources import shown, shown_list
from infocal.text.vocabulary import Vocabulary
from infocal.types import Document

if TYPE_CHECKING:
    from infocal.nn.retrieval import ArticleRetriever, Articles

__all__ = ["build_articles", "fit_retriever", "read_articles"]

NAME, TEXT = "article", "text"
JSON_LINES = (".jsonl", ".ndjson", ".json")
BLOCK_DOCUMENTS = 10_000
EXAMPLE = 'a line such as {"article": "264", "text": "..."}'


def read_articles(path: str | Path) -> dict[str, str]:
    """Read the texts of law articles from JSON lines, ``{"article": "264", "text": "..."}``.

    Args:
        path: the file, also packed as .gz. A text that is null or empty says that there is none.

    Returns:
        name -> text, "" where there is none.

    Raises:
        DataError: a line cannot be used, or names an article a second time; the message says which.
    """
    source, lines = str(path), dict[str, int]()
    if not Path(path).is_dir() and not Path(path).name.lower().removesuffix(".gz").endswith(JSON_LINES):
        allowed = f"JSON lines in a file that ends in {', '.join(JSON_LINES)}, each also with .gz"
        raise DataError("the file is not one of JSON lines by its name", allowed=allowed, source=source)
    texts: dict[str, str] = {}
    for line, record in read_records(path, BadRows(), required=(NAME, TEXT)):
        name, text = _parsed(record, source, line)
        if name in lines:
            found = f"the article {shown(name)} stands in line {lines[name]} already"
            raise DataError(found, allowed="each article once", source=source, line=line)
        texts[name], lines[name] = text, line
    if not texts:
        raise DataError("the file holds no article", allowed=EXAMPLE, source=source)
    return texts


def _parsed(record: Mapping[str, Any], source: str, line: int) -> tuple[str, str]:
    """Name and text of an article, "" where it has none."""
    problem = partial(DataError, source=source, line=line)
    for key in (NAME, TEXT):
        if key not in record:
            raise problem(f"there is no {key!r}; there are {shown_list(list(record))}", allowed=EXAMPLE)
    name, text = record[NAME], record[TEXT]
    if isinstance(name, bool) or not isinstance(name, str | int) or not str(name).strip():
        raise problem(f"the article is {shown(name)}", allowed="a name or a whole number, as in the labels")
    missing = text is None or (isinstance(text, str) and not text.strip())
    return str(name).strip(), "" if missing else checked_text(text, problem)


def build_articles(
    texts: Mapping[str, str],
    *,
    names: Sequence[str],
    train: Corpus,
    labels: NDArray[np.int64],
    segmenter: Segmenter,
    vocabulary: Vocabulary,
    article_tokens: int,
    retriever_words: int,
    retriever_documents: int,
    retriever_folds: int,
) -> Articles:
    """All that FLA knows of the law.

    Args:
        texts: name -> text, as :func:`read_articles` gives them; an article without one is known by its name.
        names: the classes of the task that is the article, in their order; other texts are not used.
        train: the encoded training documents.
        labels: (n,) the number of each document's article.
        segmenter: cuts articles into tokens, as it did documents.
        vocabulary: the ids of tokens.
        article_tokens: longer articles lose their ends.
        retriever_words: see :func:`fit_retriever`.
        retriever_documents: see :func:`fit_retriever`.
        retriever_folds: of so many retrievers that are fitted without a part of the training documents, each
            finds articles for that part; 1 makes none.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        DataError: an article has no token, or no article of the cases has a text although there are texts.
    """
    import torch

    from infocal.nn.retrieval import Articles

    check_names(texts, names)
    builder = CorpusBuilder(segmenter, max_tokens=article_tokens, source="the law articles")
    for name in names:
        text = texts.get(name) or _in_words(name, chinese=segmenter.name in ("chinese", "characters"))
        builder.add(Document(text))
    law = builder.finish(vocabulary)
    fitted = partial(
        fit_retriever,
        train,
        labels,
        size=len(vocabulary),
        articles=len(names),
        words=retriever_words,
        documents=retriever_documents,
    )
    folds = _folds(train, retriever_folds)
    parts = [np.flatnonzero(folds != fold) for fold in range(retriever_folds)] if retriever_folds > 1 else []
    unseen = tuple(fitted(among=rows) for rows in parts) if all(map(len, parts)) else ()
    ids, offsets = (torch.from_numpy(np.asarray(part, dtype=np.int64)) for part in (law.ids, law.offsets))
    return Articles(ids, offsets, tuple(vocabulary.sentence_ends()), fitted(), unseen)


def _folds(corpus: Corpus, count: int) -> NDArray[np.int64]:
    """(n,): what :func:`infocal.nn.retrieval.fold_of` says of each document; a few are read at a time."""
    sums = np.zeros(len(corpus), dtype=np.int64)
    for first in range(0, len(corpus), BLOCK_DOCUMENTS):
        rows = np.arange(first, min(first + BLOCK_DOCUMENTS, len(corpus)))
        block = corpus.subset(rows)
        so_far = np.concatenate([[0], np.cumsum(np.asarray(block.ids), dtype=np.int64)])
        sums[rows] = np.diff(so_far[block.offsets])
    return sums % count


def check_names(texts: Mapping[str, str], names: Sequence[str], *, source: str = "the law articles") -> None:
    """Raise DataError if there are texts, of the file ``source``, and no article of the cases is among them."""
    if texts and not any(name in texts for name in names):
        found = f"the articles are called {shown_list(list(texts))}, and none of the cases' articles is"
        raise DataError(found, allowed=f"names as in the cases: {shown_list(list(names))}", source=source)


def _in_words(name: str, *, chinese: bool) -> str:
    """What stands for an article without a text.

    A number is told digit by digit: as one word it would be a rare one, which shares its vector with others of its
    shape, and articles could not be told apart.
    """
    return f"刑法第{' '.join(name)}条" if chinese and name.isdigit() else name


def fit_retriever(
    corpus: Corpus,
    labels: NDArray[np.int64],
    *,
    size: int,
    articles: int,
    words: int,
    documents: int,
    among: NDArray[np.int64] | None = None,
) -> ArticleRetriever:
    """A linear support vector machine per article on tf-idf of the words that tell articles apart best.

    Args:
        corpus: the training documents.
        labels: (n,) the number of each document's article.
        size: how many token ids there are.
        articles: how many articles there are.
        words: most words to look at, by their chi-square with the articles.
        documents: most documents to learn from; frequent articles give theirs up first.
        among: rows of the documents that may be looked at; None means all.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    import torch

    from infocal.nn.retrieval import ArticleRetriever

    rows = _balanced(labels if among is None else labels[among], most=documents)
    if among is not None:
        rows = among[rows]
    counts, targets = _counts(corpus.subset(rows), size), labels[rows]
    chosen = _telling_words(counts, targets, most=words)
    features, inverse_frequency = _weighted(counts[:, chosen])
    weights, bias = _hyperplanes(features, targets, articles)
    places = np.full(size, len(chosen), dtype=np.int64)
    places[chosen] = np.arange(len(chosen))
    return ArticleRetriever(
        places=torch.from_numpy(places),
        inverse_frequency=torch.from_numpy(inverse_frequency).float(),
        weights=torch.from_numpy(weights).float(),
        bias=torch.from_numpy(bias).float(),
    )


def _sklearn() -> Any:
    try:
        import sklearn.feature_extraction.text
        import sklearn.feature_selection
        import sklearn.svm
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "sklearn", "finding law articles for a document") from error
    return sklearn


def _balanced(labels: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
    """At most so many rows, rising: the first of every article, then the second of every one that has two, ..."""
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    turn = np.empty(len(labels), dtype=np.int64)
    turn[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(np.argsort(turn, kind="stable")[:most])


def _counts(corpus: Corpus, size: int) -> Any:
    """(n, v) sparse: how often each id stands in each document."""
    _sklearn()
    from scipy.sparse import csr_matrix

    ids = np.asarray(corpus.ids)
    counted = csr_matrix((np.ones(len(ids)), ids, corpus.offsets), shape=(len(corpus), size))
    counted.sum_duplicates()
    return counted


def _telling_words(counts: Any, targets: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
    """The ids, rising, whose counts differ most between articles."""
    seen = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel())
    if len(seen) <= most:
        return seen
    scores = np.nan_to_num(_sklearn().feature_selection.chi2(counts[:, seen], targets)[0])
    return np.sort(seen[np.argsort(-scores, kind="stable")[:most]])


def _weighted(counts: Any) -> tuple[Any, NDArray[np.float64]]:
    """Sparse tf-idf of length 1 (n, f), and the inverse frequencies (f,)."""
    transformer = _sklearn().feature_extraction.text.TfidfTransformer()
    return transformer.fit_transform(counts), np.asarray(transformer.idf_)


def _hyperplanes(
    features: Any, targets: NDArray[np.int64], articles: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (m, f) and bias (m,), one article against the rest."""
    weights, bias = np.zeros((articles, features.shape[1])), np.full(articles, -1.0)
    present = np.unique(targets)
    if len(present) < 2:  # one article for all: nothing to tell apart
        bias[present] = 1.0
        return weights, bias
    sklearn = _sklearn()
    machine = sklearn.svm.LinearSVC(random_state=0)
    with warnings.catch_warnings():  # a ranking needs no last digit
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        machine.fit(features, targets)
    signs = np.array([[-1.0], [1.0]]) if len(present) == 2 else 1.0
    weights[present] = signs * machine.coef_
    bias[present] = np.ravel(signs) * machine.intercept_ if len(present) == 2 else machine.intercept_
    return weights, bias
