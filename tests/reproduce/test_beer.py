"""The beer protocol from end to end, on small files in the very formats of the release."""

import csv
import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from infocal.cli import main
from infocal.cli import reproduce as verb
from infocal.data.beer import ANNOTATIONS, ASPECTS, VECTORS, review_file
from infocal.errors import SettingsError
from infocal.reproduce import figures
from infocal.reproduce.beer import DEFAULT_ROWS, ROWS, SELECT, Plan
from infocal.reproduce.cases import Case, Reading, cases_page, choose_cases
from infocal.reproduce.reviews import LeiReviews, RatedReviews
from infocal.reproduce.runs import is_finished
from infocal.reproduce.scoring import RunResult
from infocal.types import Document

GOOD = {"appearance": "clear golden colour", "smell": "fresh floral hops", "palate": "creamy full body"}
BAD = {"appearance": "murky dull colour", "smell": "stale sour cardboard", "palate": "thin watery body"}
REST = ["i", "had", "this", "one", "<b>again</b>", "with", "my", "brother", "and", "we", "talked", "for", "hours"]
SIZES = {
    "encoder.hidden_width": 8,
    "model.feature_width": 8,
    "model.discriminator_width": 8,
    "language_model.hidden_width": 8,
    "training.warm_up_rounds": 1,
    "training.joint_rounds": 2,
    "training.settle_steps": 2,
    "training.least_round_steps": 2,
    "training.most_round_steps": 4,
}
TINY = ["--threads", "1", *(word for name, value in SIZES.items() for word in ("--set", f"{name}={value}"))]


def run(*words):
    return CliRunner().invoke(main, ["reproduce", "beer", *(str(word) for word in words)])


def review(rng):
    """Tokens, five ratings, and where the words of each aspect stand."""
    ratings = {aspect: round(float(rng.choice([0.2, 0.5, 0.9])), 1) for aspect in ASPECTS}
    tokens, marks = list(REST[: int(rng.integers(4, len(REST)))]), {}
    for aspect in rng.permutation(ASPECTS):
        words = (GOOD if ratings[aspect] > 0.4 else BAD)[str(aspect)].split()
        marks[str(aspect)] = [[len(tokens), len(tokens) + len(words)]]
        tokens += [*words, "."]
    return tokens, [*ratings.values(), 0.5, 0.6], marks


def write_release(folder, *, train=60, heldout=24, annotated=16):
    rng = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for aspect in ASPECTS:
        for part, count in (("train", train), ("heldout", heldout)):
            lines = []
            for _ in range(count):
                tokens, ratings, _ = review(rng)
                lines.append(" ".join(f"{rating:.2f}" for rating in ratings) + "\t" + " ".join(tokens) + "\n")
            (folder / review_file(aspect, part)).write_bytes(gzip.compress("".join(lines).encode()))
    records = []
    for _ in range(annotated):
        tokens, ratings, marks = review(rng)
        spans = {str(number): marks[aspect] for number, aspect in enumerate(ASPECTS)}
        records.append({"raw": " ".join(tokens), "x": tokens, "y": ratings, **spans, "3": [], "4": []})
    records[0]["1"] = []
    (folder / ANNOTATIONS).write_text("".join(json.dumps(record) + "\n" for record in records))
    words = sorted({word for text in (*GOOD.values(), *BAD.values()) for word in text.split()} | {*REST, "."})
    rows = (f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=200))}\n" for word in words)
    (folder / VECTORS).write_bytes(gzip.compress("".join(rows).encode()))
    return folder


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("beer") / "files")


@pytest.fixture(scope="module")
def done(release, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "beer"
    result = run("--data", release, "--out", out, "--methods", "infocal,infocal-paper", "--cases", 2, *TINY)
    assert result.exit_code == 0, result.output
    return out, result


class TestWithLeisFiles:
    def test_prints_a_table_per_aspect_with_the_published_figures(self, done):
        out, result = done
        for aspect, published in (("appearance", "(73.2)"), ("smell", "(45.6)"), ("palate", "(59.8)")):
            assert f"{aspect}, scored as lei, in %; in brackets as published" in result.stdout
            assert published in result.stdout
        assert str(out / "table.md") in result.stdout
        assert "1 of 6: appearance, infocal, seed 0" in result.stderr

    def test_results_have_both_scorings_and_keep_the_identity_of_micro_recall(self, done):
        out, _ = done
        results = json.loads((out / "results.json").read_text())
        assert [(r["aspect"], r["row"]) for r in results] == [
            (aspect, row) for aspect in ASPECTS for row in ("infocal", "infocal-paper")
        ]
        for result in results:
            for scoring in ("lei", "car"):
                figures = result["agreement"][scoring]
                implied = figures["precision"] * figures["selected_share"] / figures["gold_share"]
                assert figures["recall"] == pytest.approx(implied)
            assert [point["share"] for point in result["by_share"]] == sorted(
                p["share"] for p in result["by_share"]
            )
            assert 0 < result["mse"] < 1
            assert [record["round"] for record in result["rounds"]] == [1, 2]

    def test_csv_has_a_row_per_method_source_scoring_and_aspect(self, done):
        out, _ = done
        with (out / "table.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == 2 * 2 * 2 * 3
        printed = [r for r in rows if (r["source"], r["scoring"], r["aspect"]) == ("published", "car", "smell")]
        assert (printed[0]["precision"], printed[0]["f1"], printed[0]["mse"]) == ("95.6", "61.7", "")

    def test_markdown_and_latex_have_the_papers_columns(self, done):
        out, _ = done
        page = (out / "table.md").read_text()
        assert "| method | appearance P | appearance R | appearance F | appearance % selected | smell P |" in page
        assert "| InfoCal, as published | 98.5 | 73.2" in page
        assert page.index("Lei et al.") < page.index("Chang et al.")
        assert "## Predictions on the test reviews" in page
        tex = (out / "table.tex").read_text()
        assert tex.count(r"\begin{tabular}{lrrrrrrrrrrrr}") == 2
        assert r"\multicolumn{4}{c}{Smell}" in tex
        assert all(line.count("&") == 12 for line in tex.splitlines() if line.startswith("InfoCal"))

    def test_figures_are_drawn(self, done):
        out, _ = done
        for name in ("error-by-share", "agreement-by-round"):
            assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")

    @pytest.mark.parametrize(
        ("rows", "line"),
        [
            (("hardkuma", "infocal-paper"), "full text (InfoCal, the paper's weights)"),
            (("bernoulli", "hardkuma", "infocal-paper-no-adv"), None),
        ],
    )
    def test_the_full_text_line_is_that_of_a_row_that_learned_to_read_it(self, rows, line, tmp_path, monkeypatch):
        shown = []
        monkeypatch.setattr(figures, "_save", lambda figure, panels, stem: shown.extend(panels) or [])
        results = [RunResult(row, "smell", 0, {}, mse=0.02, full_text_mse=0.01, selected=0.07) for row in rows]
        figures.draw_error_by_share(results, ["smell"], tmp_path)
        labels = [label for axes in shown for label in axes.get_legend_handles_labels()[1]]
        assert [label for label in labels if label.startswith("full text")] == ([] if line is None else [line])

    def test_cases_show_human_and_methods_in_three_colours(self, done):
        source = (done[0] / "cases.html").read_text(encoding="utf-8")
        rows = re.findall(r'<th scope="row">([^<]*)', source)
        assert rows == ["Human", "InfoCal", "InfoCal, the paper&#x27;s weights"] * 2
        assert {f"for-{aspect}" for aspect in ASPECTS} <= set(re.findall(r'<mark class="([^"]*)"', source))
        assert "&lt;b&gt;" in source
        assert "<b>" not in source

    def test_is_not_trained_again(self, release, done, monkeypatch):
        out, _ = done
        before = {path: path.stat().st_mtime_ns for path in out.rglob("weights.safetensors")}
        monkeypatch.setattr("infocal.reproduce.runs.train_prepared", lambda *args, **options: 1 / 0)
        words = ("--data", release, "--out", out, "--methods", "infocal", "--scoring", "car", "--aspects", "smell")
        result = run(*words, *TINY)
        assert result.exit_code == 0, result.output
        assert "trained already" in result.stderr
        assert "scored as car" in result.stdout
        assert before == {path: path.stat().st_mtime_ns for path in out.rglob("weights.safetensors")}

    def test_other_settings_or_data_are_refused(self, release, done, tmp_path):
        out, _ = done
        words = ("--out", out, "--methods", "infocal", "--aspects", "smell")
        other = run("--data", release, *words, *TINY, "--set", "encoder.hidden_width=9")
        assert other.exit_code == 2
        assert "encoder.hidden_width" in other.stderr
        moved = Path(shutil.copytree(release, tmp_path / "moved"))
        assert run("--data", moved, *words, *TINY).exit_code == 0
        (moved / ANNOTATIONS).write_text((moved / ANNOTATIONS).read_text().split("\n", 1)[1])
        changed = run("--data", moved, *words, *TINY)
        assert changed.exit_code == 2
        assert ANNOTATIONS in changed.stderr
        assert run("--data", release, *words, *TINY, "--limit", 5).exit_code == 2

    def test_killed_run_goes_on_and_ends_as_if_it_had_not_been(self, release, done, tmp_path, monkeypatch):
        from infocal.training.loop import Trainer

        def die(self):
            save(self)
            if self.state.phase == "joint" and self.state.round == 1:
                raise MemoryError("killed")

        save = Trainer._save
        monkeypatch.setattr(Trainer, "_save", die)
        words = ("--data", release, "--out", tmp_path / "out", "--methods", "infocal", "--aspects", "smell", *TINY)
        assert run(*words).exit_code == 70
        monkeypatch.setattr(Trainer, "_save", save)
        result = run(*words)
        assert result.exit_code == 0, result.output
        (again,) = json.loads((tmp_path / "out" / "results.json").read_text())
        place = Path("runs") / "smell" / "infocal" / "seed0"
        whole, resumed = (
            folder / place / "model" / "weights.safetensors" for folder in (done[0], tmp_path / "out")
        )
        assert whole.read_bytes() == resumed.read_bytes()
        assert [record["round"] for record in again["rounds"]] == [1, 2]
        assert not list((tmp_path / "out").rglob("checkpoint.safetensors"))

    def test_broken_lines_stop_it_or_are_left_out(self, release, tmp_path):
        broken = Path(shutil.copytree(release, tmp_path / "files"))
        path = broken / review_file("smell", "train")
        path.write_bytes(path.read_bytes() + gzip.compress(b"1 2 3\tbeer\n"))
        words = ("--data", broken, "--methods", "infocal", "--aspects", "smell", *TINY, "--out", tmp_path / "out")
        stopped = run(*words)
        assert stopped.exit_code == 3
        assert f"{path}, line 61: the rating is '2'" in stopped.stderr
        skipped = run(*words, "--skip-bad")
        assert skipped.exit_code == 0, skipped.output
        assert "1 bad row left out" in skipped.stderr

    def test_broken_lines_are_told_of_the_aspect_whose_they_are(self, release, tmp_path):
        broken = Path(shutil.copytree(release, tmp_path / "files"))
        path = broken / review_file("smell", "train")
        path.write_bytes(path.read_bytes() + gzip.compress(b"1 2 3\tbeer\n"))
        words = ("--data", broken, "--methods", "infocal", "--aspects", "smell,palate", *TINY)
        result = run(*words, "--skip-bad", "--out", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert "smell: 1 bad row left out" in result.stderr
        assert "palate: 1 bad row" not in result.stderr

    def test_mended_files_may_follow_broken_ones(self, release, tmp_path):
        files = Path(shutil.copytree(release, tmp_path / "files"))
        path, words = files / review_file("smell", "train"), ("--aspects", "smell", "--methods", "infocal", *TINY)
        whole = path.read_bytes()
        path.write_bytes(whole + gzip.compress(b"no tab\n"))
        assert run("--data", files, "--out", tmp_path / "out", *words).exit_code == 3
        path.write_bytes(whole)
        assert run("--data", files, "--out", tmp_path / "out", *words).exit_code == 0


def test_finds_the_words_of_its_aspect(tmp_path):
    release = write_release(tmp_path / "files", train=300, heldout=60, annotated=40)
    changes = {
        "encoder.hidden_width": 16,
        "encoder.dropout": 0.1,
        "model.feature_width": 16,
        "training.learning_rate": 0.005,
        "training.batch_documents": 32,
        "training.most_round_steps": 25,
        "training.warm_up_rounds": 4,
        "training.joint_rounds": 3,
        "training.settle_steps": 10,
        "training.least_round_steps": 25,
    }
    words = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    out = tmp_path / "out"
    result = run("--data", release, "--out", out, "--methods", "infocal", "--aspects", "smell", *words)
    assert result.exit_code == 0, result.output
    (found,) = json.loads((out / "results.json").read_text())
    assert found["agreement"]["lei"]["precision"] > 0.8
    assert found["agreement"]["lei"]["selected_share"] == pytest.approx(0.07, abs=0.02)
    assert found["mse"] < np.var([0.2, 0.5, 0.9]) / 2


class TestWithoutThem:
    @pytest.mark.parametrize("option", ["none", "folder"])
    def test_says_what_to_bring_and_exits_with_3(self, tmp_path, option):
        words = [] if option == "none" else ["--data", tmp_path]
        result = run("--out", tmp_path / "out", *words)
        assert result.exit_code == 3
        assert "withdrawn" in result.stderr
        for name in ("reviews.aspect0.train.txt.gz", "annotations.json", VECTORS, "--reviews"):
            assert name in result.stderr
        assert result.stderr.splitlines()[-1].startswith("error: ")
        assert not (tmp_path / "out").exists()

    def test_only_files_of_the_asked_aspects_are_needed(self, release, tmp_path):
        partial = Path(shutil.copytree(release, tmp_path / "files"))
        (partial / review_file("palate", "train")).unlink()
        LeiReviews(partial, partial / VECTORS).check(["smell"])
        result = run("--data", partial, "--out", tmp_path / "out")
        assert result.exit_code == 3
        assert "there is no reviews.aspect2.train.txt.gz" in result.stderr

    def test_rated_reviews_give_errors_and_cases_but_no_agreement(self, tmp_path):
        rng = np.random.default_rng(1)
        rows = []
        for _ in range(120):
            tokens, ratings, _ = review(rng)
            rows.append({"body": " ".join(tokens), **dict(zip(ASPECTS, ratings, strict=False))})
        data = tmp_path / "rated.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        out = tmp_path / "out"
        words = ("--reviews", data, "--text", "body", "--out", out, "--methods", "infocal", "--seeds", 2)
        result = run(*words, *TINY, "--aspects", "smell,palate")
        assert result.exit_code == 0, result.output
        assert "MSE" in result.stdout
        assert "published" not in result.stdout
        assert sorted(path.name for path in out.iterdir()) == [
            "cases.html",
            "data.json",
            "error-by-share.pdf",
            "error-by-share.png",
            "results.json",
            "runs",
            "table.csv",
            "table.md",
        ]
        page = (out / "table.md").read_text()
        assert "±" in page
        assert "do not go together" not in page
        assert "Human" not in (out / "cases.html").read_text()

    def test_parts_of_rated_reviews_are_the_same_for_every_aspect(self, tmp_path):
        data = tmp_path / "rated.csv"
        lines = [f"beer number {n},0.5,{n / 200},1" for n in range(200)]
        data.write_text("text,appearance,smell,palate\n" + "\n".join(lines) + "\n")
        reviews = RatedReviews(data)
        texts = {
            (part, aspect): [document.text for document in reviews.read(part, aspect)]
            for part in ("train", "dev", "test")
            for aspect in ASPECTS
        }
        for part in ("train", "dev", "test"):
            assert texts[part, "appearance"] == texts[part, "smell"] == texts[part, "palate"]
        together = [text for part in ("train", "dev", "test") for text in texts[part, "smell"]]
        assert len(together) == len(set(together)) == 200
        assert min(len(texts[part, "smell"]) for part in ("dev", "test")) > 5

    def test_both_ways_in_or_an_unknown_name_are_usage_errors(self, tmp_path):
        assert run("--data", tmp_path, "--reviews", tmp_path / "x.csv", "--out", tmp_path / "o").exit_code == 2
        result = run("--data", tmp_path, "--out", tmp_path / "o", "--methods", "infocal,magic")
        assert result.exit_code == 2
        assert "'magic' is none of attention" in result.stderr


class TestPlan:
    def test_settings_are_the_protocol_for_every_row(self, release):
        reviews = LeiReviews(release, release / VECTORS)
        for name in ROWS:
            for aspect in ASPECTS:
                settings = Plan(aspects=ASPECTS, rows=(name,)).settings(name, aspect, 3, reviews)
                assert (settings.task, settings.select, settings.seed) == ("regress", SELECT[aspect], 3)
                assert (settings.encoder.kind, settings.encoder.hidden_width) == ("rcnn", 200)
                assert settings.text.segmenter == "whitespace"
                assert settings.text.vectors == str(release / VECTORS)
                assert not settings.text.train_vectors
                assert not settings.loss.rationale_supervision

    def test_paper_rows_have_the_published_weights(self, release):
        reviews = LeiReviews(release, release / VECTORS)
        plan = Plan(aspects=ASPECTS, epochs=50)
        loss = plan.settings("infocal-paper", "smell", 0, reviews).loss
        weights = (loss.selection_information, loss.imitation, loss.guider_information, loss.fluency)
        assert weights == (0.0003, 1.0, 0.1, 0.005)
        assert loss.selection_prior == 0.001
        assert plan.settings("infocal-paper-no-lm", "smell", 0, reviews).loss.fluency == 0
        assert plan.settings("infocal-paper-no-adv", "smell", 0, reviews).loss.imitation == 0
        training = plan.settings("infocal", "smell", 0, reviews).training
        assert (training.joint_rounds, training.joint_patience) == (50, 50)

    def test_a_setting_of_one_method_goes_to_its_rows_only(self, release):
        reviews = LeiReviews(release, release / VECTORS)
        plan = Plan(aspects=ASPECTS, rows=("infocal", "hardkuma-paper"), changes=("hardkuma.stretch=0.3",))
        assert plan.settings("infocal", "smell", 0, reviews).hardkuma is None
        assert plan.settings("hardkuma-paper", "smell", 0, reviews).hardkuma.stretch == 0.3
        with pytest.raises(SettingsError, match="add hardkuma to --methods"):
            Plan(aspects=ASPECTS, rows=("infocal",), changes=plan.changes).settings("infocal", "smell", 0, reviews)

    def test_command_line_names_what_the_library_has(self):
        assert tuple(ROWS) == verb.ROWS
        assert ROWS.keys() >= set(DEFAULT_ROWS)
        assert verb.ROWS[:4] == DEFAULT_ROWS
        assert verb.ASPECTS == ASPECTS

    def test_a_foreign_folder_is_left_alone(self, release, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        result = run("--data", release, "--out", tmp_path, *TINY)
        assert result.exit_code == 2
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    @pytest.mark.parametrize("change", ["select=0.5", "loss.calibration_window=7"])
    def test_a_model_of_other_settings_is_an_error(self, release, done, change):
        out, _ = done
        settings = Plan(aspects=ASPECTS, changes=(change,)).settings(
            "infocal", "smell", 0, LeiReviews(release, release / VECTORS)
        )
        with pytest.raises(SettingsError, match="trained with another"):
            is_finished(out / "runs" / "smell" / "infocal" / "seed0", settings)

    def test_reference_names_every_option(self):
        text = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
        for parameter in verb.reproduce.commands["beer"].params:
            assert f"`{parameter.opts[0]}" in text, parameter.opts


class TestCases:
    TEXT = "a & b <i> c d"

    def case(self, **spans):
        documents = {a: Document(self.TEXT, 0.5, spans.get(a, ((0, 1),)), 7) for a in ASPECTS}
        return Case(documents)

    def test_text_is_whole_and_escaped_and_overlaps_are_told_apart(self):
        case = self.case(appearance=((0, 5),), smell=((4, 9),), palate=((10, 13),))
        case.add("InfoCal", "smell", Reading(((2, 5),), 0.25, 0.1))
        source = cases_page([case], ASPECTS, title="Cases")
        cells = re.findall(r"<td[^>]*>(.*?)</td>", source)
        plain = [re.sub(r"<[^>]*>", "", cell) for cell in cells]
        assert plain == ["a &amp; b &lt;i&gt; c d"] * 2
        assert re.findall(r'class="(for-[^"]*)"', cells[0]) == [
            "for-appearance",
            "for-appearance-smell",
            "for-smell",
            "for-palate",
        ]
        assert "smell 0.25 from 10 %" in source
        assert "<script" not in source
        assert not re.search(r"(src|href)=|https?://", source)

    def test_chosen_texts_are_marked_for_every_aspect_and_of_a_good_length(self):
        def text(words, *, marked=True):
            documents = {aspect: Document(" ".join(["w"] * words), 0.5, ((0, 1),)) for aspect in ASPECTS}
            if not marked:
                documents["smell"] = Document(documents["smell"].text, 0.5, ())
            return documents

        chosen = choose_cases([text(300), text(90, marked=False), text(95), text(10), text(80)], 2)
        assert [len(case.text.split()) for case in chosen] == [95, 80]
        assert choose_cases([], 3) == []


def test_weights_are_searched_by_the_held_out_error(release, tmp_path):
    words = ["--data", release, "--out", tmp_path / "o", "--methods", "infocal-search", "--trials", 2, *TINY]
    result = run(*words, "--aspects", "palate", "--cases", 0)
    assert result.exit_code == 0, result.output
    assert "palate, infocal-search, seed 0, trial 2 of 2" in result.stderr
    assert "the held-out error is least with loss.selection_information" in " ".join(result.stderr.split())
    errors = [
        json.loads(path.read_text())["record"]["results"]["selection"]["mse"]
        for path in sorted((tmp_path / "o").glob("runs/palate/infocal-search/seed0/trial*/model/model.json"))
    ]
    assert len(errors) == 2
    assert errors[0] != errors[1]
    again = run(*words, "--aspects", "palate", "--cases", 0)
    assert again.stderr.count("trained already") == 2
