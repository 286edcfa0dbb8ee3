"""What is kept of a trained model, against the model's own evaluation."""

import json
from dataclasses import replace

import numpy as np
import pytest

from infocal.comparison.ngram import BigramModel
from infocal.comparison.plan import Run, Sources
from infocal.comparison.scoring import Trial
from infocal.comparison.worker import Job, run_job
from infocal.config import load_settings
from infocal.data.readers import BadRows
from infocal.data.toy import toy_reviews, toy_scores, write_toy
from infocal.decoding import DECODERS
from infocal.evaluation.decoding import run_statistics
from infocal.fitting import fit
from infocal.loading import load_one as load
from infocal.types import Document

TINY = {
    "text.width": 12,
    "encoder.hidden_width": 10,
    "model.feature_width": 8,
    "model.discriminator_width": 8,
    "training.least_round_steps": 4,
    "training.most_round_steps": 6,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 2,
    "training.settle_steps": 2,
    "training.batch_documents": 16,
}


@pytest.fixture(scope="module", params=["classes", "scores"])
def trial(request):
    make = toy_scores if request.param == "scores" else toy_reviews
    model = fit(make(80, seed=1), load_settings("infocal", TINY), dev=make(20, seed=2))
    documents = [
        row if number % 3 else Document(row.text, row.label, None, row.line)
        for number, row in enumerate(make(30, seed=3))
    ]
    counts = BigramModel.fit(np.array([1, 2]), np.array([0, 2]), size=len(model.vocabulary))
    trial = Trial.of(model, documents, language_model=counts, bad_rows=BadRows(), source="test")
    return trial, documents


def test_figures_are_those_of_the_model(trial):
    trial, documents = trial
    report = trial.report([0.1, 0.5])
    for decoder in DECODERS:
        expected = trial.model.evaluate(documents, decoder=decoder)
        found = report["scores"][decoder]
        assert {name: found[name] for name in found if name != "fluency"} == {
            name: expected[name] for name in found if name != "fluency"
        }
        for entry in report["sweep"][decoder]:
            expected = trial.model.evaluate(documents, decoder=decoder, share=entry["share"])
            assert entry == {name: expected.get(name, entry["share"]) for name in entry}


def test_parts_of_the_documents_add_up(trial):
    trial, documents = trial
    report = json.loads(json.dumps(trial.report([])))
    assert report["lines"] == [document.line for document in documents]
    for decoder in DECODERS:
        parts, scores = report["documents"][decoder], report["scores"][decoder]
        assert np.mean(parts["outcome"]) == pytest.approx(scores.get("accuracy", scores.get("mse")))
        assert parts["rows"] == [n for n, document in enumerate(documents) if document.rationale is not None]
        total = {name: sum(parts[name]) for name in ("hits", "selected", "gold")}
        f1 = 2 * total["hits"] / (total["selected"] + total["gold"])
        assert f1 == pytest.approx(scores["rationale"]["f1"])
        selected = trial.select(decoder)
        assert scores["fluency"]["mean_run"] == run_statistics(selected, trial.corpus.offsets).mean_run
    assert report["human"]["selected"] == pytest.approx(scores["rationale"]["gold_share"])


@pytest.mark.parametrize("gold", [True, False])
def test_a_run_keeps_rounds_seconds_and_cases(tmp_path, gold):
    paths = {}
    for part, seed, count in (("train", 1, 60), ("dev", 2, 16), ("test", 3, 12)):
        paths[part] = tmp_path / f"{part}.jsonl"
        rows = toy_reviews(count, seed=seed)
        write_toy(paths[part], rows if gold else [Document(row.text, row.label) for row in rows])
    run = Run(contender="mine", settings=load_settings("infocal", TINY), identity="i", path=tmp_path / "run.json")
    run = replace(run, path=tmp_path / "runs" / "mine-0.json")
    job = Job(run=run, sources=Sources(**paths), shares=(0.3,), cases=(2, 5), threads=1, keep_model=gold)
    assert Job.from_json(job.to_json()) == job
    record = json.loads(json.dumps(run_job(job)))
    assert (record["state"], record["identity"], record["seed"]) == ("done", "i", 0)
    assert record["seconds"]["training"] > 0
    assert record["seconds"]["processor"] > 0
    assert [entry["phase"] for entry in record["rounds"]] == ["warm_up", "joint", "joint", "settle"]
    assert set(record["cases"]["spans"]) == {"2", "5"}
    assert (tmp_path / "models" / "mine-0").is_dir() is gold
    if gold:
        with paths["test"].open(encoding="utf-8") as stream:
            texts = [json.loads(line)["text"] for line in stream]
        shown = load(tmp_path / "models" / "mine-0").explain(texts, decoder="spans")
        kept = record["cases"]["spans"]["2"]
        assert [list(span) for span in shown[1].spans] == kept["spans"]
    agreement = [entry["dev"].get("rationale") for entry in record["rounds"]]
    assert agreement[0] is agreement[3] is None  # no selection yet, none that changes any more
    if gold:
        assert all(0 <= entry["precision"] <= 1 for entry in agreement[1:3])
    else:
        assert agreement == [None, None, None, None]
        assert record["human"] is None
        assert record["scores"]["average"]["rationale"] is None
        assert set(record["documents"]["average"]) == {"outcome"}
