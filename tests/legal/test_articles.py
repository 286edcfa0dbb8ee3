"""Law articles: what is read, what is refused and where, and whom the retriever finds."""

import builtins
import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import chi2
from sklearn.svm import LinearSVC

from infocal.data.corpus import Corpus
from infocal.errors import DataError, MissingExtraError
from infocal.legal.articles import build_articles, fit_retriever, read_articles
from infocal.nn.retrieval import fold_of, top_unseen
from infocal.text.segmentation import characters, segmenter_named, words
from infocal.text.vocabulary import Vocabulary

SIZE = 30


@pytest.fixture
def lines(tmp_path):
    """Write lines to a file of articles."""

    def to(*some, name="law.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
        return path

    return to


def corpus_of(documents):
    lengths = [len(document) for document in documents]
    return Corpus(
        ids=np.concatenate(documents).astype(np.int32),
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        lines=np.arange(len(documents), dtype=np.int32),
    )


def cases(count, articles, seed=0):
    """Documents of ids in which every article has a few words of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, articles, count)
    labels[:articles] = np.arange(articles)
    documents = [
        np.concatenate([rng.integers(1, SIZE, rng.integers(3, 9)), rng.integers(1, 4, 2) + 3 * label])
        for label in labels
    ]
    return corpus_of(documents), labels


def padded(corpus):
    table = np.zeros((len(corpus), corpus.lengths.max()), dtype=np.int64)
    table[np.arange(table.shape[1]) < corpus.lengths[:, None]] = corpus.ids
    return torch.from_numpy(table)


class TestReading:
    def test_names_may_be_numbers_and_texts_may_be_missing(self, lines):
        path = lines(
            '{"article": 264, "text": "盗窃公私财物"}',
            "",
            '{"article": " a ", "text": null}',
            '{"article": "b", "text": " "}',
        )
        assert read_articles(path) == {"264": "盗窃公私财物", "a": "", "b": ""}

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ('{"article": "1", "txt": "x"}', r"law.jsonl, line 2: there is no 'text'; there are 'article', 'txt'"),
            ('{"text": "x"}', "line 2: there is no 'article'"),
            ('{"article": "7", "text": "again"}', "line 2: the article '7' stands in line 1 already"),
            ('{"article": 7, "text": "again"}', "line 2: the article '7' stands in line 1 already"),
            ('{"article": "1", "text": 5}', "line 2: the text is 5; allowed: a string"),
            ('{"article": true, "text": "x"}', "line 2: the article is True; allowed: a name or a whole number"),
            ('{"article": " ", "text": "x"}', "line 2: the article is ' '"),
            ('{"article": 1.5, "text": "x"}', "line 2: the article is 1.5"),
            ('{"article": "1", "text": "x"', "line 2: the line is no usable JSON"),
            ("[1]", "line 2: the line is not a JSON object"),
        ],
    )
    def test_bad_lines_are_named(self, lines, bad, message):
        with pytest.raises(DataError, match=message):
            read_articles(lines('{"article": "7", "text": "first"}', bad))

    def test_files_that_are_none(self, lines, tmp_path):
        with pytest.raises(DataError, match="holds no article; allowed: a line such as"):
            read_articles(lines())
        with pytest.raises(DataError, match="no such file"):
            read_articles(tmp_path / "absent.jsonl")
        with pytest.raises(DataError, match=r"by its name; allowed: JSON lines in a file that ends in \.jsonl"):
            read_articles(lines("article,text", name="law.csv"))


class TestRetriever:
    @pytest.mark.parametrize(("articles", "most"), [(5, 100), (5, 12), (2, 100)])
    def test_equals_the_decision_function_of_scikit_learn(self, articles, most):
        corpus, labels = cases(60, articles)
        found = fit_retriever(corpus, labels, size=SIZE, articles=articles, words=most, documents=1000)
        counts = csr_matrix((np.ones(len(corpus.ids)), corpus.ids, corpus.offsets), shape=(60, SIZE)).toarray()
        seen = np.flatnonzero(counts.sum(axis=0))
        if most < len(seen):
            seen = np.sort(seen[np.argsort(-chi2(counts[:, seen], labels)[0], kind="stable")[:most]])
        features = TfidfTransformer().fit_transform(csr_matrix(counts[:, seen]))
        expected = LinearSVC(random_state=0).fit(features, labels).decision_function(features)
        expected = np.stack([-expected, expected], axis=1) if articles == 2 else expected
        scores = found(padded(corpus)).numpy()
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        assert (found.top(padded(corpus), 1)[:, 0].numpy() == expected.argmax(axis=1)).all()

    def test_top_is_in_order_and_never_more_than_there_are(self):
        corpus, labels = cases(40, 4)
        found = fit_retriever(corpus, labels, size=SIZE, articles=4, words=50, documents=1000)
        ids = padded(corpus)
        scores, top = found(ids), found.top(ids, 3)
        assert top.shape == (40, 3)
        assert torch.equal(top, scores.argsort(dim=1, descending=True)[:, :3])
        assert found.top(ids, 9).shape == (40, 4)
        assert (top[:, 0].numpy() == labels).mean() > 0.9

    def test_padding_and_order_do_not_matter_and_unread_texts_have_an_answer(self):
        corpus, labels = cases(40, 4)
        found = fit_retriever(corpus, labels, size=SIZE, articles=4, words=50, documents=1000)
        ids = padded(corpus)
        longer = torch.nn.functional.pad(ids.flip(1), (2, 5))
        torch.testing.assert_close(found(longer), found(ids))
        assert torch.equal(found(torch.zeros(1, 3, dtype=torch.int64))[0], found.bias)

    def test_articles_without_a_case_come_last(self):
        corpus, labels = cases(40, 3)
        found = fit_retriever(corpus, labels, size=SIZE, articles=5, words=50, documents=1000)
        assert found.bias[3:].tolist() == [-1.0, -1.0]
        assert not found.weights[3:].any()

    def test_a_single_article_is_found_always(self):
        corpus, _ = cases(10, 3)
        found = fit_retriever(corpus, np.full(10, 1), size=SIZE, articles=2, words=50, documents=1000)
        assert set(found.top(padded(corpus), 1)[:, 0].tolist()) == {1}

    def test_few_documents_keep_rare_articles(self):
        documents = [np.array([1, 2])] * 50 + [np.array([3, 4])] * 2 + [np.array([5, 6])]
        labels = np.array([0] * 50 + [1] * 2 + [2])
        found = fit_retriever(corpus_of(documents), labels, size=8, articles=3, words=50, documents=6)
        assert found.top(torch.tensor([[1, 2], [3, 4], [5, 6]]), 1)[:, 0].tolist() == [0, 1, 2]

    def test_without_scikit_learn_the_message_names_the_extra(self, monkeypatch):
        imported = builtins.__import__

        def refuse(name, *rest, **more):
            if name.startswith("sklearn"):
                raise ImportError(name)
            return imported(name, *rest, **more)

        corpus, labels = cases(10, 3)
        monkeypatch.setattr(builtins, "__import__", refuse)
        with pytest.raises(MissingExtraError, match=r"infocal\[sklearn\]"):
            fit_retriever(corpus, labels, size=SIZE, articles=3, words=50, documents=1000)


class TestBuilding:
    def build(self, texts, names, segmenter, vocabulary, folds=1, data=None):
        corpus, labels = data or cases(30, len(names))
        return build_articles(
            texts,
            names=names,
            train=corpus,
            labels=labels,
            segmenter=segmenter,
            vocabulary=vocabulary,
            article_tokens=6,
            retriever_words=20,
            retriever_documents=100,
            retriever_folds=folds,
        )

    def test_of_each_fold_articles_are_found_by_a_retriever_that_has_not_seen_it(self):
        vocabulary = Vocabulary(tuple(f"w{n}" for n in range(SIZE - 3)), 2)
        corpus, labels = cases(30, 3)
        law = self.build({}, ["a", "b", "c"], words, vocabulary, folds=3, data=(corpus, labels))
        ids = padded(corpus)
        folds = fold_of(ids, 3)
        assert torch.equal(folds, fold_of(torch.nn.functional.pad(ids.flip(1), (0, 4)), 3))  # by its words alone
        assert len(set(folds.tolist())) == len(law.unseen) == 3
        found = top_unseen(law.unseen, ids, 3)
        for fold, retriever in enumerate(law.unseen):
            others = np.flatnonzero(folds.numpy() != fold)
            alone = fit_retriever(
                corpus.subset(others), labels[others], size=SIZE, articles=3, words=20, documents=100
            )
            torch.testing.assert_close(retriever(ids), alone(ids))
            assert torch.equal(found[folds == fold], alone.top(ids[folds == fold], 3))

    def test_documents_of_a_corpus_fall_into_folds_a_few_at_a_time(self, monkeypatch):
        vocabulary = Vocabulary(tuple(f"w{n}" for n in range(SIZE - 3)), 2)
        whole = self.build({}, ["a", "b", "c"], words, vocabulary, folds=2)
        monkeypatch.setattr("infocal.legal.articles.BLOCK_DOCUMENTS", 7)
        pieces = self.build({}, ["a", "b", "c"], words, vocabulary, folds=2)
        for one, other in zip(whole.unseen, pieces.unseen, strict=True):
            assert torch.equal(one.weights, other.weights)

    def test_where_all_documents_are_of_one_fold_there_is_one_retriever(self):
        vocabulary = Vocabulary(tuple(f"w{n}" for n in range(SIZE - 3)), 2)
        alike = corpus_of([np.array([2, 4])] * 6), np.array([0, 1] * 3)
        assert self.build({}, ["a", "b"], words, vocabulary, folds=3, data=alike).unseen == ()
        assert self.build({}, ["a", "b"], words, vocabulary).unseen == ()

    def test_texts_are_encoded_in_the_order_of_the_classes_and_cut(self):
        vocabulary = Vocabulary((*[f"w{n}" for n in range(SIZE - 6)], "who", "steals", "."), 2)
        law = self.build(
            {"b": "Who steals. Who steals. Who", "a": "Steals", "unused": "who"}, ["a", "b"], words, vocabulary
        )
        assert law.offsets.tolist() == [0, 1, 7]
        expected = vocabulary.ids(["steals", "who", "steals", ".", "who", "steals", "."])
        assert law.ids.tolist() == expected
        assert law.sentence_ends == tuple(vocabulary.ids(["."]))
        assert law.table(longest=2).tolist() == [[expected[0], 0], expected[1:3]]

    def test_an_article_without_a_text_is_known_by_its_name(self):
        vocabulary = Vocabulary(("刑", "法", "第", "条", "2", "6", "4", *[f"w{n}" for n in range(SIZE - 10)]), 2)
        law = self.build({"264": ""}, ["264", "other"], characters, vocabulary)
        assert law.ids.tolist()[:6] == vocabulary.ids("刑法第264条")[:6]

    def test_articles_without_texts_are_told_apart(self):
        pytest.importorskip("rjieba")
        chinese = segmenter_named("chinese")
        vocabulary = Vocabulary(("刑法", "第", "条", *"0123456789", *[f"w{n}" for n in range(SIZE - 16)]), 2)
        names = ["134", "213", "224", "236", "338"]
        law = self.build({}, names, chinese, vocabulary)
        ids, ends = law.ids.tolist(), law.offsets.tolist()
        assert len({tuple(ids[start:end]) for start, end in pairwise(ends)}) == len(names)

    def test_names_in_another_language_are_words(self):
        vocabulary = Vocabulary(tuple(f"w{n}" for n in range(SIZE - 3)), 2)
        plain = self.build({}, ["264", "other"], words, vocabulary)
        assert plain.ids.tolist() == vocabulary.ids(["264", "other"])


def test_file_to_articles(lines):
    rows = [{"article": name, "text": f"{name} is forbidden."} for name in ("264", "133", "234")]
    path = lines(*(json.dumps(row) for row in rows))
    vocabulary = Vocabulary(("is", "forbidden", ".", *[f"w{n}" for n in range(SIZE - 6)]), 2)
    law = TestBuilding().build(read_articles(path), ["133", "234", "264"], words, vocabulary)
    assert law.offsets.tolist() == [0, 4, 8, 12]
    assert len(law.retriever.bias) == 3
