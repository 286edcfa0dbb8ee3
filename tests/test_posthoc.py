"""Post-hoc attributions: by hand on autograd, and on a linear network, where every method must give w . x."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from infocal.data.corpus import Corpus
from infocal.errors import ModelError, SettingsError
from infocal.tasks import Classification, Regression

PATH = Path(__file__).parents[1] / "benchmarks" / "posthoc.py"


@pytest.fixture(scope="module")
def posthoc():
    spec = importlib.util.spec_from_file_location("posthoc", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["posthoc"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["posthoc"]


@pytest.fixture
def corpus():
    """Three texts of 5, 1 and 8 tokens."""
    ids = np.random.default_rng(0).integers(1, 20, size=14).astype(np.int32)
    return Corpus(ids=ids, offsets=np.array([0, 5, 6, 14]), lines=np.arange(3, dtype=np.int32))


TABLE = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
WEIGHT = torch.tensor([1.0, -2.0, 0.5, 3.0])


def linear(posthoc, *, scores=False):
    """Its log-odds of class "b" are the sum of w . x over the words."""

    def read(vectors, mask):
        total = (vectors @ WEIGHT * mask).sum(dim=1)
        return total[:, None] if scores else torch.stack((torch.zeros_like(total), total), dim=1)

    task = Regression(0.0, 1.0, 0.1) if scores else Classification(("a", "b"))
    return posthoc.FullText(embed=lambda ids: TABLE[ids], read=read, task=task)


def by_hand(corpus):
    """(total,): each word's w . x, in the direction of its text's answer."""
    values = (TABLE[torch.from_numpy(corpus.ids).long()] @ WEIGHT).numpy()
    for start, end in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        values[start:end] *= 1 if values[start:end].sum() > 0 else -1
    return values


def network(posthoc):
    """A small network that is not linear."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)).double()

    def read(vectors, mask):
        return layers((vectors * mask.unsqueeze(-1)).cumsum(dim=1).tanh().sum(dim=1))

    return posthoc.FullText(lambda ids: TABLE[ids].double(), read, Classification(("a", "b", "c")))


def one_text(corpus, row):
    start, end = corpus.offsets[row], corpus.offsets[row + 1]
    ids = torch.from_numpy(corpus.ids[start:end]).long()[None]
    return slice(start, end), ids, torch.ones(ids.shape, dtype=torch.bool)


def test_gradients_are_those_of_autograd_text_by_text(posthoc, corpus):
    text = network(posthoc)
    norms = posthoc.attribute(text, corpus, posthoc.gradient_norm)
    products = posthoc.attribute(text, corpus, posthoc.gradient_times_input)
    for row in range(len(corpus)):
        places, ids, mask = one_text(corpus, row)
        vectors = text.embed(ids).requires_grad_(True)
        log_probabilities = torch.log_softmax(text.read(vectors, mask)[0], dim=0)
        best = log_probabilities.max()
        log_odds = best - torch.log1p(-best.exp())
        log_odds.backward()
        np.testing.assert_allclose(norms[places], vectors.grad[0].norm(dim=-1).numpy())
        np.testing.assert_allclose(products[places], (vectors.grad * vectors)[0].sum(-1).detach().numpy())


def test_in_a_linear_network_gradients_are_the_weights(posthoc, corpus):
    text = linear(posthoc)
    norms = posthoc.attribute(text, corpus, posthoc.gradient_norm)
    np.testing.assert_allclose(norms, float(WEIGHT.norm()), rtol=1e-6)
    products = posthoc.attribute(text, corpus, posthoc.gradient_times_input)
    np.testing.assert_allclose(products, by_hand(corpus), rtol=1e-5)


def test_for_scores_words_count_by_how_far_they_move_them(posthoc, corpus):
    found = posthoc.attribute(linear(posthoc, scores=True), corpus, posthoc.gradient_times_input)
    np.testing.assert_allclose(found, np.abs(by_hand(corpus)), rtol=1e-5)


def test_integrated_gradients_add_up_to_what_the_words_bring(posthoc, corpus):
    pytest.importorskip("captum")
    linear_found = posthoc.attribute(linear(posthoc), corpus, posthoc.integrated_gradients)
    np.testing.assert_allclose(linear_found, by_hand(corpus), rtol=1e-4, atol=1e-5)
    text = network(posthoc)
    found = posthoc.attribute(text, corpus, posthoc.integrated_gradients)
    for row in range(len(corpus)):
        places, ids, mask = one_text(corpus, row)
        vectors = text.embed(ids)
        answers = text.answers(vectors, mask)
        gain = text.log_odds(vectors, mask, answers) - text.log_odds(torch.zeros_like(vectors), mask, answers)
        assert found[places].sum() == pytest.approx(gain.item(), rel=1e-3, abs=1e-4)


def test_lime_finds_the_weights_of_a_linear_network(posthoc, corpus):
    pytest.importorskip("lime")
    text = linear(posthoc)
    found, again = (posthoc.attribute(text, corpus, posthoc.lime_weights, seed=3) for _ in range(2))
    np.testing.assert_array_equal(found, again)
    longest = slice(6, 14)  # its ridge shrinks weights, the more the fewer the words
    np.testing.assert_allclose(found[longest], by_hand(corpus)[longest], rtol=0.1, atol=0.05)


@pytest.mark.filterwarnings("ignore")  # of the imports of shap
def test_shapley_values_of_a_linear_network_are_exact(posthoc, corpus):
    pytest.importorskip("shap")
    text = linear(posthoc)
    found, again = (posthoc.attribute(text, corpus, posthoc.shapley_values, seed=3) for _ in range(2))
    np.testing.assert_array_equal(found, again)
    np.testing.assert_allclose(found, by_hand(corpus), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_shapley_values_add_up_and_long_texts_get_one_permutation(posthoc):
    pytest.importorskip("shap")
    length = posthoc.EVALUATIONS
    ids = np.random.default_rng(0).integers(1, 20, size=length).astype(np.int32)
    corpus = Corpus(ids=ids, offsets=np.array([0, length]), lines=np.zeros(1, dtype=np.int32))
    text = network(posthoc)
    found = posthoc.attribute(text, corpus, posthoc.shapley_values)
    _, batch_ids, _ = one_text(corpus, 0)
    vectors = text.embed(batch_ids)
    answer = text.answers(vectors, torch.ones(1, length, dtype=torch.bool))[0]
    both = text.without(vectors[0], answer, np.stack([np.ones(length), np.zeros(length)]))
    assert found.sum() == pytest.approx(both[0] - both[1], rel=1e-3, abs=1e-4)


def test_a_word_taken_away_is_a_zero_vector(posthoc, corpus):
    text = network(posthoc)
    _, ids, mask = one_text(corpus, 2)
    vectors = text.embed(ids)
    answers = text.answers(vectors, mask)
    kept = np.array([[1, 0, 1, 1, 0, 0, 1, 1], [1] * 8])
    found = text.without(vectors[0], answers[0], kept)
    cut = vectors.clone()
    cut[0, [1, 4, 5]] = 0.0
    expected = [text.log_odds(values, mask, answers).item() for values in (cut, vectors)]
    np.testing.assert_allclose(found, expected)


def test_both_cuts_keep_the_share(posthoc, corpus):
    scores = np.random.default_rng(2).normal(size=14)
    chosen = posthoc.cuts(scores, corpus, 0.4)
    assert np.add.reduceat(chosen["equal"], corpus.offsets[:-1]).tolist() == [2, 1, 3]
    assert chosen["average"].sum() == pytest.approx(0.4 * 14, abs=0.5)


def test_a_missing_package_and_a_wrong_number_of_rows_are_told(posthoc, monkeypatch):
    monkeypatch.setitem(posthoc.METHODS, "lime", (posthoc.lime_weights, "no-such-package"))
    with pytest.raises(SettingsError, match="pip install"):
        posthoc.check(["lime"], None)
    with pytest.raises(SettingsError, match="--rows is 0"):
        posthoc.check([], 0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A hardly trained model and its data, on disk; of another method too."""
    from infocal.config import load_settings
    from infocal.data.toy import toy_reviews, write_toy
    from infocal.fitting import fit

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("posthoc")
    changes = {
        "text.width": 8,
        "encoder.hidden_width": 6,
        "training.warm_up_rounds": 1,
        "training.joint_rounds": 1,
        "training.settle_steps": 2,
        "training.least_round_steps": 2,
        "training.most_round_steps": 3,
    }
    documents = toy_reviews(60)
    write_toy(folder / "data.jsonl", documents)
    for method in ("infocal", "attention"):
        fit(documents, load_settings(None, changes, method=method)).save(folder / method)
    return folder


def test_the_command_compares_on_the_same_texts(posthoc, trained, capsys, tmp_path):
    arguments = argparse.Namespace(
        model=trained / "infocal",
        data=trained / "data.jsonl",
        label="label",
        share=0.25,
        methods=["gradient-norm", "gradient-x-input"],
        rows=12,
        seed=0,
        threads=1,
        json=tmp_path / "out.json",
    )
    posthoc.run(arguments)
    shown = capsys.readouterr().out
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["documents"] == 12
    assert list(record["results"]) == ["infocal", "gradient-norm", "gradient-x-input"]
    assert all(name in shown for name in record["results"])
    for result in record["results"].values():
        assert result["equal"]["selected"] == pytest.approx(0.25, abs=0.03)
        assert result["average"]["selected"] == pytest.approx(0.25, abs=0.03)
        assert 0 <= result["equal"]["rationale"]["f1"] <= 1
        assert result["documents_per_second"] > 0


def test_gradient_norm_and_input_are_what_the_selector_is_calibrated_against(posthoc, trained):
    from infocal.data.batches import collate
    from infocal.data.readers import BadRows, read_documents
    from infocal.loading import load_one as load
    from infocal.training.preparation import encode_labelled

    model = load(trained / "infocal")
    documents = list(read_documents(trained / "data.jsonl", bad_rows=BadRows(skip=False)))[:6]
    parts = {"segmenter": model.segmenter, "vocabulary": model.vocabulary, "task": model.task}
    corpus = encode_labelled(documents, **parts, max_tokens=99, source="x", bad_rows=BadRows(skip=False))
    batch = collate(corpus, np.arange(6))
    expected = model.method.attribution(batch)
    guider = posthoc.guider_of(model)
    norm = posthoc.gradient_norm(guider, batch, 0) * model.method.embedding(batch.ids).norm(dim=-1)
    change = posthoc.gradient_times_input(guider, batch, 0).abs()
    for row, mask in enumerate(batch.mask):
        one, two = norm[row][mask].detach(), change[row][mask].detach()
        torch.testing.assert_close(
            expected[row][mask], one / one.mean() + 0.5 * two / two.mean(), rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("signed", [False, True])
def test_how_sure_the_network_is_of_a_text_does_not_decide_how_much_of_it_is_shown(posthoc, signed):
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 30, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    scores = rng.normal(size=offsets[-1]) if signed else rng.random(offsets[-1]) ** 3
    corpus = Corpus(np.zeros(offsets[-1], np.int32), offsets, np.zeros(40, np.int32))
    louder = scores * np.repeat(10.0 ** rng.integers(-3, 3, 40), lengths)
    one, two = (posthoc.cuts(values, corpus, 0.2) for values in (scores, louder))
    for name, chosen in one.items():
        assert (chosen == two[name]).all()
        assert chosen.mean() == pytest.approx(0.2, abs=0.02)


def test_a_model_without_a_guider_is_refused(posthoc, trained):
    from infocal.loading import load_one as load

    with pytest.raises(ModelError, match="only infocal has a guider"):
        posthoc.guider_of(load(trained / "attention"))
