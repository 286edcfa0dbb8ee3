"""Train on generated reviews with the Python API, score, explain: `python examples/train_and_explain.py`."""

from infocal import fit
from infocal.config import load_settings
from infocal.data.toy import toy_reviews


def main() -> None:
    settings = load_settings("demo", select=0.15)
    model = fit(toy_reviews(2400), settings, dev=toy_reviews(300, seed=1), tell=print)
    scores = model.evaluate(toy_reviews(300, seed=2), decoder="spans")
    print(f"accuracy {scores['accuracy']:.3f}, token F1 {scores['rationale']['f1']:.3f}")
    for explanation in model.explain(["The battery died at noon, but the screen is superb."], decoder="spans"):
        print(explanation)


if __name__ == "__main__":
    main()
