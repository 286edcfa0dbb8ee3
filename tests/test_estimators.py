import dataclasses
import importlib
import pickle
import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import InputTags, estimator_checks, get_tags
from sklearn.utils.validation import validate_data

import infocal
from infocal.data.toy import toy_reviews, toy_scores
from infocal.errors import MissingExtraError, ModelError
from infocal.estimators import RationaleClassifier, RationaleRegressor, base
from infocal.fitting import StoppedEarlyError
from infocal.methods import METHODS, WITHOUT_EVIDENCE

QUICK = {
    "encoder.hidden_width": 8,
    "text.width": 8,
    "text.max_tokens": 24,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 1,
    "training.settle_steps": 2,
    "training.least_round_steps": 3,
    "training.most_round_steps": 3,
}
REVIEWS = toy_reviews(150)
TEXTS = [review.text for review in REVIEWS]
LABELS = [review.label for review in REVIEWS]
SPANS = [list(review.rationale) for review in REVIEWS]
FEW = slice(0, 40)

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer than 24 tokens")

classifier = partial(RationaleClassifier, settings=QUICK, random_state=0)
regressor = partial(RationaleRegressor, settings=QUICK, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def scored():
    """Trained on scores in units of 20 to 100."""
    reviews = toy_scores(150)
    return regressor().fit([review.text for review in reviews], [20 * review.label for review in reviews])


# What fit leaves behind


def test_fit_changes_no_parameter():
    settings = dict(QUICK)
    estimator = RationaleClassifier(settings=settings, select=0.3, random_state=5)
    before = estimator.get_params()
    assert estimator.fit(TEXTS[FEW], LABELS[FEW], rationales=SPANS[FEW]) is estimator
    assert estimator.settings is settings
    assert settings == QUICK
    assert estimator.get_params() == before
    assert (estimator.model_.settings.select, estimator.model_.settings.seed) == (0.3, 5)


def test_a_classifier_speaks_of_the_users_classes(fitted):
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert set(fitted.predict(TEXTS)) <= {"bad", "good"}
    assert fitted.score(TEXTS, LABELS) == np.mean(fitted.predict(TEXTS) == np.array(LABELS))
    assert 0.1 < fitted.rate_ < 0.3
    assert not hasattr(fitted, "n_features_in_")


def test_the_best_probability_is_the_prediction(fitted):
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (150, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(TEXTS)).all()


@pytest.mark.parametrize(
    ("good", "bad", "names"),
    [
        (10, 9, {10: "10", 9: "9"}),
        (np.int8(-1), np.int8(2), {-1: "-1", 2: "2"}),
        (True, False, {True: "true", False: "false"}),
        (10.0, 2.0, {10.0: "10", 2.0: "2"}),
        ("10", "9", {"10": "10", "9": "9"}),
        (" good ", "bad", {" good ": "good", "bad": "bad"}),
    ],
)
def test_predictions_are_of_the_labels_type_and_columns_in_their_order(good, bad, names):
    y = np.array([good if label == "good" else bad for label in LABELS[FEW]])
    estimator = classifier().fit(TEXTS[FEW], y)
    assert estimator.classes_.dtype == y.dtype
    assert estimator.predict(TEXTS[FEW]).dtype == y.dtype
    assert estimator.classes_.tolist() == sorted([good, bad])
    explanations = estimator.explain(TEXTS[FEW])
    expected = [
        [item.probabilities[names[value]] for value in estimator.classes_.tolist()] for item in explanations
    ]
    np.testing.assert_allclose(estimator.predict_proba(TEXTS[FEW]), expected)
    predictions = [names[value] for value in estimator.predict(TEXTS[FEW]).tolist()]
    assert predictions == [item.prediction for item in explanations]


def test_labels_in_an_object_array_keep_their_type():
    estimator = classifier().fit(TEXTS[FEW], np.array(LABELS[FEW], dtype=object))
    assert estimator.classes_.dtype == object
    assert estimator.predict(TEXTS[:3]).dtype == object


def test_a_regressor_answers_in_the_users_units(scored):
    predictions = scored.predict(TEXTS)
    assert predictions.shape == (150,)
    assert predictions.dtype == np.float64
    assert predictions.min() >= 20
    assert predictions.max() <= 100
    assert predictions.mean() == pytest.approx(60, abs=15)
    assert [item.prediction for item in scored.explain(TEXTS)] == predictions.tolist()
    assert not hasattr(scored, "predict_proba")


def test_whole_numbers_are_scores_to_a_regressor():
    stars = [5 if label == "good" else 1 for label in LABELS[FEW]]
    assert regressor().fit(TEXTS[FEW], stars).model_.task.kind == "regress"


def test_explain_passes_choices_on_and_takes_one_text(fitted):
    (explanation,) = fitted.explain(TEXTS[0], decoder="equal", share=0.5, full_text=True)
    assert explanation.share == pytest.approx(0.5, abs=0.05)
    assert explanation.full_text_prediction in {"bad", "good"}
    assert fitted.explain(TEXTS[:4]) == fitted.model_.explain(TEXTS[:4])


def test_the_decoder_decides_predictions_and_explanations(fitted):
    equal = RationaleClassifier.from_model(fitted.model_).set_params(decoder="equal")
    assert equal.explain(TEXTS[:9]) == fitted.explain(TEXTS[:9], decoder="equal")
    assert not np.array_equal(equal.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_no_texts_give_no_predictions(fitted):
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict_proba([]).shape == (0, 2)


# Randomness


def test_the_same_random_state_gives_the_same_model(fitted):
    again = classifier().fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    other = classifier(random_state=1).fit(TEXTS, LABELS)
    assert not np.array_equal(other.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_a_random_state_object_and_none_draw_seeds():
    def seed(random_state):
        return classifier(random_state=random_state).fit(TEXTS[FEW], LABELS[FEW]).model_.settings.seed

    assert seed(np.random.RandomState(3)) == np.random.RandomState(3).randint(2**31 - 1)
    assert seed(None) != seed(None)


def test_texts_that_are_cut_are_a_warning():
    with pytest.warns(UserWarning, match="40 texts are longer than 24 tokens; the model reads"):
        classifier().fit(TEXTS[FEW], LABELS[FEW])


@pytest.mark.parametrize("method", sorted(METHODS.keys() - WITHOUT_EVIDENCE))
def test_models_of_every_method_load_with_their_parameters(tmp_path, method):
    estimator = classifier(method=method).fit(TEXTS[FEW], LABELS[FEW])
    estimator.save(tmp_path / "model")
    again = RationaleClassifier.load(tmp_path / "model")
    assert again.method == method
    assert again.predict(TEXTS[FEW]).tolist() == estimator.predict(TEXTS[FEW]).tolist()
    ours, theirs = (one._settings(supervised=False).model_dump(exclude={"loss"}) for one in (estimator, again))
    assert ours == theirs


def test_fit_and_load_leave_global_state_alone(tmp_path, fitted):
    torch.manual_seed(7)
    before, numbers, threads = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()
    estimator = classifier().fit(TEXTS[FEW], LABELS[FEW])
    estimator.predict(TEXTS[FEW])
    estimator.save(tmp_path / "model")
    RationaleClassifier.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numbers)
    assert torch.get_num_threads() == threads


# What X and y may be


@pytest.mark.parametrize(
    "wrap",
    [
        tuple,
        np.array,
        partial(np.array, dtype=object),
        lambda texts: np.array(texts, dtype=object)[:, None],
        partial(pd.Series, index=range(1000, 850, -1)),
        lambda texts: pd.DataFrame({"text": texts}, index=range(150, 0, -1)),
        pa.array,
        lambda texts: pa.chunked_array([texts[:70], texts[70:]]),
        lambda texts: pa.table({"text": texts}),
    ],
    ids=["tuple", "U array", "objects", "(n, 1)", "Series", "DataFrame", "Arrow", "chunked Arrow", "Arrow table"],
)
def test_texts_may_come_in_many_containers(fitted, wrap):
    expected = fitted.predict_proba(TEXTS)
    np.testing.assert_array_equal(fitted.predict_proba(wrap(TEXTS)), expected)


@pytest.mark.parametrize(
    ("texts", "labels", "spans"),
    [
        (partial(pd.Series, index=range(40, 0, -1)), partial(pd.Series, index=range(40)), pd.Series),
        (pa.array, pa.array, pa.array),
        (np.array, lambda values: pd.Series(values, dtype="category"), tuple),
    ],
    ids=["pandas", "Arrow", "mixed"],
)
def test_rows_stay_aligned_whatever_their_container(texts, labels, spans):
    plain = classifier().fit(TEXTS[FEW], LABELS[FEW], rationales=SPANS[FEW])
    wrapped = classifier().fit(texts(TEXTS[FEW]), labels(LABELS[FEW]), rationales=spans(SPANS[FEW]))
    np.testing.assert_array_equal(wrapped.predict_proba(TEXTS), plain.predict_proba(TEXTS))


def test_nullable_integers_are_classes():
    y = pd.Series([1 if label == "good" else 0 for label in LABELS[FEW]], dtype="Int64")
    assert classifier().fit(TEXTS[FEW], y).predict(TEXTS[:9]).dtype.kind == "i"


def test_rationales_are_learned_from_unless_their_weight_is_given():
    fit = partial(RationaleClassifier.fit, X=TEXTS[FEW], y=LABELS[FEW], rationales=SPANS[FEW])
    assert fit(classifier()).model_.settings.loss.rationale_supervision == 1.0
    own = classifier(settings={**QUICK, "loss.rationale_supervision": 0.5})
    assert fit(own).model_.settings.loss.rationale_supervision == 0.5
    assert fit(classifier()).model_.record["data"]["annotated_rows"] == 36


def test_held_out_rows_may_be_given_or_their_share():
    given = classifier().fit(TEXTS[FEW], LABELS[FEW], dev=(TEXTS[40:70], LABELS[40:70]))
    assert given.model_.record["data"]["training_rows"] == 40
    assert given.model_.record["data"]["held_out_rows"] == 30
    split = classifier(dev_share=0.25).fit(TEXTS[FEW], LABELS[FEW])
    assert split.model_.record["data"]["held_out_rows"] == 10


def test_a_segmenter_may_be_a_function_or_a_name():
    def halves(text):
        return [(0, len(text) // 2), (len(text) // 2, len(text))]

    own = classifier(segmenter=halves).fit(TEXTS[FEW], LABELS[FEW])
    assert len(own.explain(TEXTS[0])[0].tokens) == 2
    characters = classifier(segmenter="characters").fit(TEXTS[FEW], LABELS[FEW])
    assert characters.explain(TEXTS[0])[0].tokens[:2] == ((0, 1), (1, 2))


def test_verbose_tells_on_the_error_stream(capsys):
    classifier(verbose=True).fit(TEXTS[FEW], LABELS[FEW])
    out, err = capsys.readouterr()
    assert out == ""
    assert "held out" in err
    assert "round 1" in err


# What is refused


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[:-1], "150 texts but 149 labels"),
        ([], [], "empty"),
        ([*TEXTS[:3], 5], LABELS[:4], "row 3: the text is 5"),
        ([*TEXTS[:3], None], LABELS[:4], "row 3: the text is None"),
        ([*TEXTS[:3], "  "], LABELS[:4], "row 3: the text is empty"),
        ("one text", LABELS[:4], "a list, array, Series or Arrow column"),
        (np.zeros((4, 3)), LABELS[:4], "3 columns"),
        (np.zeros((4, 1)), LABELS[:4], "the text is 0.0"),
        (TEXTS, None, "requires y"),
        (TEXTS, ["good"] * 150, "only one class"),
        (TEXTS[:4], ["good", "bad", "odd", "good"], "no other row"),
        (TEXTS[:4], ["good", None, "bad", "good"], "row 1: the label is None"),
        (TEXTS[:4], ["good", np.nan, "bad", "good"], "nan"),
        (TEXTS[:4], [0.0, np.nan, 1.0, 1.0], "NaN"),
        (TEXTS[:4], [0.1, 0.2, 0.1, 0.3], "continuous"),
        (TEXTS[:4], ["a", "a ", "a", "a "], "white space"),
        (TEXTS[:4], [["a", "b"]] * 4, "1d array"),
    ],
)
def test_a_classifier_refuses_what_it_cannot_learn_from(texts, labels, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(texts, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1.0, np.nan, 2.0, 3.0], "NaN"), ([1.0, np.inf, 2.0, 3.0], "infinity"), ([2, 2, 2, 2], "every label is 2")],
)
def test_a_regressor_refuses_what_are_no_scores(labels, message):
    with pytest.raises(ValueError, match=message):
        regressor().fit(TEXTS[:4], labels)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"select": 1.5}, "select is 1.5"),
        ({"method": "lime"}, "method"),
        ({"recipe": "nothing"}, "there is no recipe 'nothing'"),
        ({"settings": {"encoder.knd": "gru"}}, "did you mean 'kind'"),
        ({"settings": {"select": 0.3}}, "parameter 'select'"),
        ({"settings": {"training.dev_share": 0.3}}, "parameter 'dev_share'"),
        ({"decoder": "best"}, "average"),
        ({"segmenter": "lines"}, "there is no segmenter 'lines'"),
        ({"random_state": -1}, "seed is -1"),
    ],
)
def test_fit_names_the_parameter_that_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(TEXTS[FEW], LABELS[FEW])


@pytest.mark.parametrize("dev", [TEXTS, (TEXTS, LABELS, SPANS), (TEXTS[:2], ["good", "odd"])])
def test_held_out_rows_must_be_a_pair_of_known_classes(dev):
    with pytest.raises(ValueError, match=r"a pair|'odd'"):
        classifier().fit(TEXTS[FEW], LABELS[FEW], dev=dev)


def test_a_column_of_labels_is_flattened_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning) as caught:
        classifier().fit(TEXTS[FEW], np.array(LABELS[FEW])[:, None])
    assert sum(issubclass(warning.category, DataConversionWarning) for warning in caught) == 1


@pytest.mark.parametrize("method", ["predict", "predict_proba", "explain", "save"])
def test_nothing_works_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(classifier(), method)(TEXTS)


def test_a_regressor_does_not_work_before_fit():
    with pytest.raises(NotFittedError):
        regressor().predict(TEXTS)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("infocal.estimators")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"infocal\[sklearn\]"):
        importlib.import_module("infocal.estimators")


# Stopping


def test_a_run_stopped_before_there_is_a_model_is_a_keyboard_interrupt(monkeypatch):
    def stopped(*args, **keywords):
        raise StoppedEarlyError("stopped")

    monkeypatch.setattr(base, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(TEXTS[FEW], LABELS[FEW])


def test_a_run_stopped_later_keeps_its_model_and_warns(monkeypatch, fitted):
    record = {**fitted.model_.record, "training": {"interrupted": True}}
    monkeypatch.setattr(base, "fit", lambda *args, **keywords: dataclasses.replace(fitted.model_, record=record))
    with pytest.warns(ConvergenceWarning, match="stopped by the user") as caught:
        stopped = classifier().fit(TEXTS[FEW], LABELS[FEW])
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(stopped.predict(TEXTS), fitted.predict(TEXTS))


# Models on disk


@pytest.mark.parametrize("value", [1, True, 2.0, "1"])
def test_a_saved_classifier_comes_back_with_its_labels_type(tmp_path, value):
    y = [value if label == "good" else type(value)(0) for label in LABELS[FEW]]
    estimator = classifier(select=0.35).fit(TEXTS[FEW], y)
    estimator.save(tmp_path / "model")
    again = RationaleClassifier.load(tmp_path / "model")
    assert again.classes_.tolist() == estimator.classes_.tolist()
    assert again.predict(TEXTS).tolist() == estimator.predict(TEXTS).tolist()
    np.testing.assert_array_equal(again.predict_proba(TEXTS), estimator.predict_proba(TEXTS))


def test_an_estimator_from_a_model_trains_as_the_model_was_trained(fitted):
    again = RationaleClassifier.from_model(fitted.model_)
    assert again.random_state == 0
    retrained = clone(again).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(retrained.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_a_model_trained_elsewhere_has_classes_as_text():
    documents = [infocal.Document(text, int(label == "good")) for text, label in zip(TEXTS, LABELS, strict=True)]
    model = infocal.fit(documents, infocal.config.load_settings(changes=QUICK))
    estimator = RationaleClassifier.from_model(model)
    assert estimator.predict(TEXTS).tolist() == model.predict(TEXTS)
    assert estimator.classes_.tolist() == ["0", "1"]


def test_a_model_of_the_other_task_is_refused(fitted, scored):
    with pytest.raises(ModelError, match="use RationaleRegressor"):
        RationaleClassifier.from_model(scored.model_)
    with pytest.raises(ModelError, match="use RationaleClassifier"):
        RationaleRegressor.from_model(fitted.model_)
    assert RationaleRegressor.from_model(scored.model_).predict(TEXTS).tolist() == scored.predict(TEXTS).tolist()


def test_pickle_copies_an_estimator_for_worker_processes(fitted, scored):
    for estimator in (fitted, scored):
        copy = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(copy.predict(TEXTS), estimator.predict(TEXTS))


# scikit-learn's own tools


def test_a_pipeline_ends_in_an_estimator(fitted):
    lower = FunctionTransformer(lambda texts: [text.replace("\t", " ") for text in texts])
    pipeline = make_pipeline(lower, classifier()).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(pipeline.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_a_grid_search_reaches_parameters_and_rationales():
    search = GridSearchCV(classifier(), {"select": [0.1, 0.4]}, cv=2, error_score="raise", scoring="roc_auc")
    search.fit(TEXTS[:60], [label == "good" for label in LABELS[:60]], rationales=SPANS[:60])
    assert search.best_estimator_.model_.settings.select in {0.1, 0.4}
    assert search.best_estimator_.model_.settings.loss.rationale_supervision == 1.0
    assert search.predict(pa.array(TEXTS[:5])).dtype == bool


@pytest.mark.slow
def test_parallel_cross_validation_gives_what_the_serial_one_gives():
    serial = cross_val_score(classifier(), TEXTS[:60], LABELS[:60], cv=2, error_score="raise")
    parallel = cross_val_score(classifier(), TEXTS[:60], LABELS[:60], cv=2, n_jobs=2, error_score="raise")
    np.testing.assert_array_equal(serial, parallel)


def test_tags_say_texts_and_what_is_predicted():
    tags = get_tags(classifier())
    assert (tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (
        True,
        True,
        False,
    )
    assert (tags.estimator_type, tags.target_tags.required, tags.non_deterministic) == ("classifier", True, False)
    assert get_tags(regressor()).estimator_type == "regressor"


# scikit-learn's checks. It runs none of them by itself on estimators of texts, because they feed numbers in two
# dimensions. Those that feed nothing run on the estimators as they are; those that train run on a subclass that
# writes each row of numbers as a text. What is left out checks how arrays of numbers are validated (NaN, sparse
# matrices, complex numbers, data types, number of features, one dimension instead of two, column names), which
# for texts is tested above; sample weights and class weights, which the estimators do not take; or that easy
# numbers are learned well, which a run of a few steps does not.

WITHOUT_DATA = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_estimators_unfitted",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_requires_y_none",
]
TRAINING = [
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_estimators_pickle",
    "check_pipeline_consistency",
    "check_supervised_y_2d",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
]


def written(numbers):
    return [" ".join(f"{column}{round(10 * number)}" for column, number in enumerate(row)) for row in numbers]


class Numbers:
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags()
        return tags


class NumbersClassifier(Numbers, RationaleClassifier):
    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        return super().fit(written(X), y)

    def predict(self, X):
        return super().predict(written(validate_data(self, X, reset=False)))

    def predict_proba(self, X):
        return super().predict_proba(written(validate_data(self, X, reset=False)))


class NumbersRegressor(Numbers, RationaleRegressor):
    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        return super().fit(written(X), y)

    def predict(self, X):
        return super().predict(written(validate_data(self, X, reset=False)))


def run(check, estimator):
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


@pytest.mark.parametrize("check", WITHOUT_DATA)
@pytest.mark.parametrize("kind", [RationaleClassifier, RationaleRegressor])
def test_scikit_learns_checks_of_parameters(kind, check):
    run(check, kind())


@pytest.mark.parametrize("check", TRAINING)
@pytest.mark.parametrize("kind", [NumbersClassifier, NumbersRegressor])
def test_scikit_learns_checks_of_training(kind, check):
    run(check, kind(settings=QUICK, random_state=0))
