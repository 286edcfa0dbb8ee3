"""FLA, TOPJUDGE and MPBFN-WCA: every equation by hand, padding, what gradients reach, and that they learn."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from infocal.config import load_settings
from infocal.data.corpus import Corpus
from infocal.errors import SettingsError
from infocal.legal.articles import fit_retriever
from infocal.methods import build_method
from infocal.methods.base import Conditions
from infocal.methods.fla import missed_attention, stored_articles
from infocal.methods.judges import topology
from infocal.nn.collocation import Collocations, attend_pairs
from infocal.nn.convolution import ConvolutionEncoder
from infocal.nn.embedding import TokenEmbedding
from infocal.nn.hierarchy import ContextAttention, TwoLevelEncoder, find_sentences
from infocal.nn.retrieval import ArticleRetriever, Articles, fold_of
from infocal.tasks import Classification, Joint, Regression
from infocal.training.inference import full_text_outputs
from infocal.training.loop import Trainer
from infocal.types import Batch

METHODS = ["topjudge", "mpbfn", "fla"]
NAMES = ("article", "charge", "term")
SIZE, END = 30, 29
TINY = {
    "text.width": 8,
    "encoder.dropout": 0.0,
    "model.input_dropout": 0.0,
    "model.token_dropout": 0.0,
}
SCHOOL = {
    "text.width": 16,
    "training.batch_documents": 32,
    "training.least_round_steps": 40,
    "training.most_round_steps": 40,
    "training.joint_rounds": 3,
    "training.learning_rate": 0.02,
    "training.averaging": 0.8,
}
OWN = {
    "topjudge": {"topjudge.filters": 4, "topjudge.state_width": 6},
    "mpbfn": {
        "mpbfn.filters": 4,
        "mpbfn.label_width": 5,
        "mpbfn.collocation_width": 6,
    },
    "fla": {
        "fla.articles": 2,
        "fla.article_tokens": 7,
        "fla.sentence_tokens": 3,
        "fla.hidden_width": 4,
        "fla.output_width": 8,
    },
}


def joint(*names, classes=(4, 3, 2)):
    parts = {
        name: Classification(tuple(f"{name}{n}" for n in range(c)))
        for name, c in zip(names, classes, strict=False)
    }
    return Joint(parts)


def law(count=4, seed=0):
    """Articles of one to eight words in one to three sentences, and a retriever with weights at random."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, count)
    lengths[0] = 8
    generator = torch.Generator().manual_seed(seed)
    return Articles(
        ids=torch.from_numpy(rng.integers(20, SIZE, lengths.sum())),
        offsets=torch.from_numpy(np.cumsum([0, *lengths])),
        sentence_ends=(END,),
        retriever=ArticleRetriever(
            places=torch.arange(SIZE),
            inverse_frequency=torch.rand(SIZE, generator=generator) + 1,
            weights=torch.randn(count, SIZE, generator=generator),
            bias=torch.zeros(count),
        ),
    )


def build(method, *, task=None, articles=None, seed=0, **changes):
    named = {name.replace("__", "."): value for name, value in changes.items()}
    settings = load_settings(method, {**TINY, **OWN[method], **named})
    torch.manual_seed(seed)
    embedding = TokenEmbedding(size=SIZE, width=settings.text.width)
    task = task or joint(*NAMES)
    return build_method(settings, embedding=embedding, task=task, articles=articles or law()).eval()


@pytest.fixture
def texts():
    """Four documents, of which one has a single token and one is as long as two sentences."""
    rng = np.random.default_rng(5)
    lengths = torch.tensor([6, 1, 4, 6])
    mask = torch.arange(6) < lengths[:, None]
    ids = torch.from_numpy(rng.integers(1, SIZE - 1, (4, 6))) * mask
    ids[3, 2] = END
    targets = torch.tensor([[0, 1, 1], [3, 2, 0], [1, 0, 1], [2, 2, 0]])
    return Batch(ids=ids, mask=mask, rows=torch.arange(4), targets=targets)


def alone(batch, row):
    length = int(batch.mask[row].sum())
    return Batch(
        ids=batch.ids[row : row + 1, :length], mask=batch.mask[row : row + 1, :length], rows=batch.rows[:1]
    )


def array(tensor):
    return tensor.detach().numpy().astype(np.float64)


def linear(layer, values):
    product = values @ array(layer.weight).T
    return product if layer.bias is None else product + array(layer.bias)


def softmax(values):
    shifted = np.exp(values - values.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def close(tensor, expected):
    np.testing.assert_allclose(array(tensor), expected, atol=1e-5, rtol=1e-4)


# Convolutions


def test_a_filter_answers_on_real_tokens_alone_and_short_texts_have_one_place():
    torch.manual_seed(1)
    encoder = ConvolutionEncoder(input_width=3, widths=(2, 4), filters=5)
    inputs = torch.randn(3, 6, 3)
    lengths = [6, 3, 1]
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    expected = []
    for vectors, length in zip(array(inputs), lengths, strict=True):
        features = []
        for width, layer in zip((2, 4), encoder.convolutions, strict=True):
            own = np.vstack([vectors[:length], np.zeros((max(0, width - length), 3))])
            kernel = array(layer.weight)
            answers = [
                np.einsum("fdw,wd->f", kernel, own[place : place + width]) + array(layer.bias)
                for place in range(len(own) - width + 1)
            ]
            features.append(np.maximum(np.max(answers, axis=0), 0))
        expected.append(np.concatenate(features))
    close(encoder(inputs, mask), np.array(expected))
    assert encoder.output_width == 10


def test_a_batch_that_is_shorter_than_every_filter():
    encoder = ConvolutionEncoder(input_width=3, widths=(4, 5), filters=2)
    inputs, mask = torch.randn(2, 2, 3), torch.tensor([[True, True], [True, False]])
    longer = torch.cat((inputs, torch.randn(2, 7, 3)), dim=1)
    padded = torch.nn.functional.pad(mask, (0, 7))
    torch.testing.assert_close(encoder(inputs, mask), encoder(longer, padded))


# The graph of the tasks


def test_the_usual_graph_of_a_judgement_whatever_the_order_of_the_tasks():
    usual = topology(NAMES, None, setting="x")
    assert usual.order == (0, 1, 2)
    assert usual.parents == ((), (0,), (0, 1))
    assert usual.children == ((1, 2), (2,), ())
    turned = topology(("term", "charge", "article"), None, setting="x")
    assert turned.order == (2, 1, 0)
    assert turned.parents == ((2, 1), (2,), ())


def test_other_tasks_are_told_of_all_before_them_unless_the_setting_says_otherwise():
    assert topology(("a", "b", "c"), None, setting="x").parents == ((), (0,), (0, 1))
    assert topology(("a", "b", "c"), {"c": ("a", "a"), "a": ("b",), "b": ()}, setting="x").parents == (
        (1,),
        (),
        (0,),
    )
    assert topology(("charge", "damages"), {}, setting="x").parents == ((), (0,))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"article": ["term"]}, "topjudge.parents leads in a circle: .*term.*article"),
        ({"charge": ["charge"]}, "in a circle: charge <- charge"),
        ({"charge": ["law"]}, "names the task 'law'; the tasks are article, charge, term"),
        ({"law": []}, "names the task 'law'"),
    ],
)
def test_graphs_that_are_none(parents, message):
    with pytest.raises(SettingsError, match=message):
        build("topjudge", topjudge__parents=parents)


# TOPJUDGE


def lstm(cell, inputs, hidden, state):
    """An LSTM cell as its paper has it; gates stand in the order input, forget, candidate, output."""
    gates = (
        inputs @ array(cell.weight_ih).T
        + array(cell.bias_ih)
        + hidden @ array(cell.weight_hh).T
        + array(cell.bias_hh)
    )
    entering, kept, candidate, leaving = np.split(gates, 4, axis=1)
    state = sigmoid(kept) * state + sigmoid(entering) * np.tanh(candidate)
    return sigmoid(leaving) * np.tanh(state), state


def test_topjudge_hands_states_along_the_graph(texts):
    method = build("topjudge")
    fact = array(method.encoder(method.embedding(texts.ids), texts.mask))
    zero = np.zeros((4, 6))
    article = lstm(method.cells[0], fact, zero, zero)
    charge = lstm(method.cells[1], fact, *np.split(linear(method.links["1"], np.hstack(article)), 2, axis=1))
    map_article, map_charge = np.split(array(method.links["2"].weight), 2, axis=1)
    start = np.hstack(article) @ map_article.T + np.hstack(charge) @ map_charge.T + array(method.links["2"].bias)
    term = lstm(method.cells[2], fact, *np.split(start, 2, axis=1))
    states = (article, charge, term)
    expected = [linear(head, state[0]) for head, state in zip(method.heads, states, strict=True)]
    close(method.predict_full(texts), np.hstack(expected))


def test_topjudge_answers_in_the_order_of_the_tasks_not_of_the_graph(texts):
    task = joint("term", "charge", "article", classes=(2, 3, 4))
    method = build("topjudge", task=task)
    assert method.topology.order == (2, 1, 0)
    assert [head.out_features for head in method.heads] == [2, 3, 4]
    assert method.predict_full(texts).shape == (4, 9)


# MPBFN-WCA


def test_collocations_are_pairs_of_real_words_and_attention_is_over_them():
    torch.manual_seed(2)
    layer = Collocations(input_width=3, output_width=4, distance=2)
    inputs, query = torch.randn(2, 4, 3), torch.randn(2, 4)
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    left, bias = np.split(array(layer.left.weight), 2), np.split(array(layer.left.bias), 2)
    right = np.split(array(layer.right.weight), 2)
    expected = []
    for vectors, length, wanted in zip(array(inputs), (4, 2), array(query), strict=True):
        pairs = np.array(
            [
                np.tanh(left[n - 1] @ vectors[i] + bias[n - 1] + right[n - 1] @ vectors[i + n])
                for n in (1, 2)
                for i in range(length - n)
            ]
        )
        expected.append(softmax(pairs @ wanted) @ pairs)
    close(attend_pairs(*layer(inputs, mask), query), np.array(expected))


def test_a_single_word_has_no_pair_and_no_trouble():
    layer = Collocations(input_width=3, output_width=4, distance=3)
    inputs = torch.randn(1, 1, 3, requires_grad=True)
    found = attend_pairs(*layer(inputs, torch.ones(1, 1, dtype=torch.bool)), torch.ones(1, 4))
    assert torch.equal(found, torch.zeros(1, 4))
    found.sum().backward()
    assert torch.equal(inputs.grad, torch.zeros(1, 1, 3))


def test_mpbfn_multiplies_forward_and_gates_backward(texts):
    method = build("mpbfn")
    vectors = method.embedding(texts.ids)
    fact = array(method.encoder(vectors, texts.mask))
    pairs = method.collocations(vectors, texts.mask)
    features, forward = [], []
    for place, parents in enumerate([(), (0,), (0, 1)]):
        query = torch.tensor(linear(method.queries[place], fact), dtype=torch.float32)
        manner = array(attend_pairs(*pairs, query))
        own = np.maximum(linear(method.joins[place], np.hstack([fact, manner])), 0)
        for parent in parents:
            label = softmax(forward[parent]) @ array(method.labels[parent].weight).T
            own = own * linear(method.forward_links[f"{parent}-{place}"], label)
        features.append(own)
        forward.append(linear(method.heads[place], own))
    final = list(forward)
    for place, children in ((1, (2,)), (0, (1, 2))):
        gate = 1.0
        for child in children:
            label = softmax(final[child]) @ array(method.labels[child].weight).T
            gate = gate * sigmoid(linear(method.backward_links[f"{place}-{child}"], label))
        final[place] = forward[place] + linear(method.verifiers[str(place)], features[place] * gate)
    close(method.predict_full(texts), np.hstack(final))
    assert np.abs(final[0] - forward[0]).max() > 1e-3


def test_a_score_among_the_tasks_is_passed_on_as_its_own_value(texts):
    task = Joint({"severity": Regression(0.0, 5.0, 0.1), "kind": Classification(("a", "b"))})
    method = build("mpbfn", task=task)
    expected = method._expected(0, {0: torch.tensor([[0.3]])})
    torch.testing.assert_close(expected, torch.sigmoid(torch.tensor([[0.3]])) @ method.labels[0].weight.T)
    assert method.predict_full(texts).shape == (4, 3)


# FLA


def test_sentences_end_after_the_last_mark_and_where_they_get_too_long():
    ids = torch.tensor([[1, 9, 9, 2, 3, 4, 5, 6], [9, 1, 0, 0, 0, 0, 0, 0]])
    mask = ids > 0
    found = find_sentences(ids, mask, torch.tensor([9, 8]), longest=3)
    words = [ids.flatten()[row][real].tolist() for row, real in zip(found.words, found.real, strict=True)]
    assert words == [[1, 9, 9], [2, 3, 4], [5, 6], [9], [1]]
    assert [row[real].tolist() for row, real in zip(found.rows, found.present, strict=True)] == [[0, 1, 2], [3, 4]]


def test_texts_without_marks_are_one_sentence():
    ids = torch.tensor([[1, 2, 3], [4, 0, 0]])
    found = find_sentences(ids, ids > 0, torch.tensor([], dtype=torch.int64), longest=50)
    assert found.real.sum(dim=1).tolist() == [3, 1]
    assert found.present.shape == (2, 1)


def attention(layer, states, context):
    """(d,): of states (t, d) by hand."""
    return softmax(np.tanh(linear(layer.key, states)) @ context) @ states


def test_attention_with_a_context():
    torch.manual_seed(3)
    layer = ContextAttention(width=4)
    states, contexts = torch.randn(2, 3, 4), torch.randn(2, 4)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    expected = [attention(layer, array(states[0]), array(contexts[0])), array(states[1, 0])]
    close(layer(states, mask, contexts), np.array(expected))
    shared = layer(states, mask, contexts[0])
    torch.testing.assert_close(shared[0], layer(states, mask, contexts)[0])
    across = layer.across(states, mask, contexts)
    for number in range(2):
        torch.testing.assert_close(across[number], layer(states, mask, contexts[number]))


def read(encoder, vectors, sentences, word, sentence):
    """(2h,): two levels by hand on one text, given the recurrences; ``sentences`` are their lengths."""
    starts = np.cumsum([0, *sentences])
    pooled = []
    for start, end in pairwise(starts):
        states = encoder.words(vectors[None, start:end], torch.ones(1, int(end - start), dtype=torch.bool))[0]
        pooled.append(attention(encoder.word_attention, array(states), word))
    level = torch.tensor(np.array(pooled), dtype=torch.float32)[None]
    states = encoder.sentences(level, torch.ones(1, len(pooled), dtype=torch.bool))[0]
    return attention(encoder.sentence_attention, array(states), sentence)


def test_the_two_level_encoder_reads_sentence_by_sentence():
    torch.manual_seed(4)
    encoder = TwoLevelEncoder(input_width=3, hidden_width=2)
    vectors, word, sentence = torch.randn(2, 5, 3), torch.randn(4), torch.randn(4)
    ids = torch.tensor([[1, 9, 1, 1, 1], [1, 9, 1, 0, 0]])
    layout = find_sentences(ids, ids > 0, torch.tensor([9]), longest=10)
    expected = [
        read(encoder, vectors[0], [2, 3], array(word), array(sentence)),
        read(encoder, vectors[1], [2, 1], array(word), array(sentence)),
    ]
    close(encoder(vectors, layout, word, sentence), np.array(expected))


def test_fla_reads_the_articles_found_in_the_light_of_the_fact(texts):
    method = build("fla")
    texts = alone(texts, 3)
    assert texts.ids[0, 2] == END
    fact = read(
        method.fact_encoder,
        method.embedding(texts.ids)[0],
        [3, 3],
        array(method.fact_word),
        array(method.fact_sentence),
    )
    word, sentence, whole = np.split(linear(method.contexts, fact), 3)
    scores = method.retriever(texts.ids)[0]
    best = scores.argsort(descending=True)[:2].tolist()
    assert method.retriever.top(texts.ids, 2).tolist() == [best]
    known = []
    for number in best:
        ids = method.article_ids[number][method.article_ids[number] > 0]
        layout = find_sentences(ids[None], ids[None] > 0, torch.tensor([END]), longest=3)
        lengths = layout.real.sum(dim=1).tolist()
        known.append(read(method.article_encoder, method.embedding(ids), lengths, word, sentence))
    level = torch.tensor(np.array(known), dtype=torch.float32)[None]
    states = method.set_encoder(level, torch.ones(1, 2, dtype=torch.bool))[0]
    joined = np.concatenate([fact, attention(method.set_attention, array(states), whole)])
    inner = np.maximum(linear(method.output[0], joined), 0)
    inner = np.maximum(linear(method.output[2], inner), 0)
    close(method.predict_full(texts)[0], linear(method.heads, inner))


def test_fla_learns_which_of_the_articles_found_the_court_named(texts):
    found, scores = torch.tensor([[2, 0], [1, 3], [0, 1]]), torch.tensor([[0.5, 1.5], [2.0, 1.0], [0.0, 0.0]])
    missed = missed_attention(found, scores, torch.tensor([0, 2, 1]))
    weights = softmax(scores.numpy().astype(np.float64))
    close(missed, np.array([-np.log(weights[0, 1]), 0.0, np.log(2)]))  # of the second its article was not found
    method = build("fla").train()
    (player,) = method.players()
    assert player.weights == {"prediction": 1.0, "article_attention": 0.1}
    step = method.step(texts, Conditions("joint", 0.0, torch.Generator()))
    named = (method.retriever.top(texts.ids, 2) == texts.targets[:, :1]).any(dim=1)
    assert 0 < named.sum() < 4
    assert (step.objectives["article_attention"] > 0).tolist() == named.tolist()
    step.objectives["article_attention"].sum().backward()
    assert method.set_attention.key.weight.grad.norm() > 0
    assert method.heads.weight.grad is None


def test_fla_learns_from_articles_that_were_found_without_its_documents(texts):
    """The retriever that has seen a document knows its answer; new documents have only the other kind."""
    own = law(seed=0)
    method = build("fla", articles=replace(own, unseen=(law(seed=1).retriever, law(seed=2).retriever)))
    plain = build("fla", articles=own)
    assert method.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(method.predict_full(texts), plain.predict_full(texts))
    folds = fold_of(texts.ids, 2).tolist()
    assert set(folds) == {0, 1}
    expected = [method.unseen[fold].top(alone(texts, row).ids, 2)[0].tolist() for row, fold in enumerate(folds)]
    assert expected != own.retriever.top(texts.ids, 2).tolist()
    named = torch.tensor([target in found for target, found in zip(texts.targets[:, 0], expected, strict=True)])
    step = method.step(texts, Conditions("joint", 0.0, torch.Generator()))
    assert (step.objectives["article_attention"] > 0).tolist() == named.tolist()
    learned = plain.step(texts, Conditions("joint", 0.0, torch.Generator()))
    assert not torch.equal(step.objectives["prediction"], learned.objectives["prediction"])


def test_fla_needs_articles_that_are_the_classes_of_a_task():
    settings = load_settings("fla", {**TINY, **OWN["fla"]})
    embedding = TokenEmbedding(size=SIZE, width=8)
    with pytest.raises(SettingsError, match="reads law articles beside the facts, and none were given"):
        build_method(settings, embedding=embedding, task=joint(*NAMES))
    with pytest.raises(SettingsError, match=r"3 law articles .* but the task article has 4 classes"):
        build_method(settings, embedding=embedding, task=joint(*NAMES), articles=law(3))
    with pytest.raises(SettingsError, match=r"fla\.article_task is 'article'; the tasks are a, b"):
        build_method(settings, embedding=embedding, task=joint("a", "b"), articles=law())


def test_a_saved_fla_brings_its_articles(texts):
    method = build("fla")
    tensors = {name: value.clone() for name, value in method.state_dict().items()}
    again = build("fla", articles=stored_articles(tensors), seed=9)
    assert not torch.equal(again.predict_full(texts), method.predict_full(texts))
    assert {name: value.shape for name, value in again.state_dict().items()} == {
        name: value.shape for name, value in tensors.items()
    }
    again.load_state_dict(tensors)
    assert torch.equal(again.predict_full(texts), method.predict_full(texts))


# All three


@pytest.mark.parametrize("method", METHODS)
def test_a_padded_batch_equals_single_documents(texts, method):
    built = build(method)
    together = built.predict_full(texts)
    for row in range(4):
        torch.testing.assert_close(built.predict_full(alone(texts, row))[0], together[row])


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_is_reached(texts, method):
    built = build(method).train()
    step = built.step(texts, Conditions("joint", 0.0, torch.Generator()))
    own = {"article_attention"} if method == "fla" else set()
    assert set(step.objectives) == {"prediction"} | own
    assert step.objectives["prediction"].shape == (4,)
    assert (step.selected, step.tokens) == (None, 17)
    torch.testing.assert_close(
        step.objectives["prediction"], built.task.loss(built.predict_full(texts), texts.targets)
    )
    step.objectives["prediction"].sum().backward()
    still = {name for name, value in built.named_parameters() if value.grad is None or not value.grad.any()}
    assert still == ({"cells.0.weight_hh"} if method == "topjudge" else set())  # the first task starts from zeros
    (player,) = built.players()
    assert {id(p) for p in player.parameters()} == {id(p) for p in built.parameters()}


@pytest.mark.parametrize("method", METHODS)
def test_only_selected_words_are_read(texts, method):
    built = build(method)
    selected = texts.mask & (torch.arange(6) % 2 == 0)
    other = replace(texts, ids=torch.where(selected | ~texts.mask, texts.ids, END))
    assert not torch.equal(other.ids, texts.ids)
    assert torch.equal(built.predict(texts, selected), built.predict(other, selected))
    assert not torch.equal(built.predict(texts, selected), built.predict_full(texts))
    torch.testing.assert_close(built.predict(texts, texts.mask), built.predict_full(texts))


@pytest.mark.parametrize("method", METHODS)
def test_no_evidence_is_shown_and_single_tasks_are_refused(texts, method):
    built = build(method)
    assert (built.selects, built.judged_by_full_text, built.controlled_share) == (False, True, False)
    with pytest.raises(SettingsError, match=f"the method {method} reads the full text and shows no evidence"):
        built.score_tokens(texts)
    with pytest.raises(SettingsError, match=f"the method {method} answers several named tasks"):
        build(method, task=Classification(("a", "b")))


@pytest.mark.parametrize("method", ["attention", "bernoulli", "hardkuma", "l2x", "invase", "car"])
def test_methods_of_one_task_refuse_several(method):
    embedding = TokenEmbedding(size=SIZE, width=8)
    with pytest.raises(
        SettingsError, match=f"{method} answers one task, .* use one of fla, infocal, mpbfn, topjudge"
    ):
        build_method(load_settings(method), embedding=embedding, task=joint(*NAMES))


@pytest.mark.parametrize("method", ["topjudge", "mpbfn"])
def test_a_single_named_task_and_names_that_python_uses(texts, method):
    for task in (joint("type"), joint("keys", "a.b", "train")):
        built = build(method, task=task).train()
        batch = replace(texts, targets=texts.targets[:, : len(task.tasks)] % 2)
        built.step(batch, Conditions("joint", 0.0, torch.Generator())).objectives["prediction"].sum().backward()
        assert built.predict_full(texts).shape == (4, task.outputs)


# Learning


def judgements(count, seed):
    """Texts whose article and term hang on one word each; the charge follows from the article."""
    rng = np.random.default_rng(seed)
    article, term = rng.integers(0, 4, count), rng.integers(0, 2, count)
    charge = np.minimum(article, 2)
    lengths = rng.integers(5, 9, count)
    documents = []
    for row, length in enumerate(lengths):
        ids = rng.integers(10, SIZE, length)
        places = rng.permutation(length)[:2]
        ids[places] = [1 + article[row], 6 + term[row]]
        documents.append(ids)
    return Corpus(
        ids=np.concatenate(documents).astype(np.int32),
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        lines=np.arange(count, dtype=np.int32),
        targets=np.stack([article, charge, term], axis=1),
    )


@pytest.mark.parametrize("method", METHODS)
def test_three_tasks_are_learned_in_the_loop(method):
    train, dev = judgements(200, 0), judgements(60, 1)
    articles = replace(
        law(),
        retriever=fit_retriever(train, train.targets[:, 0], size=SIZE, articles=4, words=50, documents=500),
    )
    wider = {"topjudge": {"topjudge.filters": 8, "topjudge.state_width": 16}, "mpbfn": {"mpbfn.filters": 8}}
    built = build(method, articles=articles, **SCHOOL, **wider.get(method, {"fla.hidden_width": 12}))
    result = Trainer(built, built.settings, train=train, dev=dev).run()
    assert result.trained
    assert {record["phase"] for record in result.history} == {"joint"}
    for corpus, least in ((train, 0.9), (dev, 0.8)):
        scores = built.task.scores(full_text_outputs(built, corpus), corpus.targets)
        assert min(scores[name]["accuracy"] for name in NAMES) >= least, scores
