"""Speed and memory, as ratios measured in one run.

    python benchmarks/speed.py [--data ../shared/data] [--only rcnn fill explain memory]

Without the real data the same is measured on generated reviews of mixed length.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NAMES = {"hatexplain": "train.jsonl", "hotel": "train.jsonl.gz"}


def corpus_lengths(path: Path, *, most: int = 30_000) -> np.ndarray:
    """Tokens per document of a real file."""
    from infocal.data.readers import BadRows, read_documents
    from infocal.text.segmentation import words

    documents = read_documents(path, label=None, bad_rows=BadRows(skip=True), require_label=False)
    return np.array([min(len(words(d.text)), 1000) for d, _ in zip(documents, range(most), strict=False)])


def fill_of(name: str, lengths: np.ndarray) -> None:
    """Real tokens per padded position of the default training batches."""
    from infocal.config import load_settings
    from infocal.data.batches import fill, plan_batches

    training = load_settings().training
    plan = plan_batches(
        lengths,
        tokens=training.batch_tokens,
        documents=training.batch_documents,
        rng=np.random.default_rng(0),
    )
    naive = np.array_split(np.random.default_rng(0).permutation(len(lengths)), len(plan))
    print(
        f"  {name:12} {fill(plan, lengths):.3f} real tokens per padded position in {len(plan)} batches "
        f"(the same batches without bucketing: {fill(naive, lengths):.3f})"
    )


def measure_fill(data: Path) -> None:
    """Section 8: no batch is mostly padding."""
    print("training batches (>= 0.95 wanted)")
    for name, file in NAMES.items():
        if (data / name / file).exists():
            fill_of(name, corpus_lengths(data / name / file))
    mixed = np.random.default_rng(0).lognormal(4, 1, size=20_000).astype(int).clip(3, 1000)
    fill_of("log-normal", mixed)


def untrained(documents: list) -> object:
    """A model with the default sizes; speed does not depend on what it learned."""
    from infocal.config import load_settings
    from infocal.fitting import fit

    changes = {"training.warm_up_rounds": 1, "training.joint_rounds": 1, "training.least_round_steps": 1}
    return fit(documents[:200], load_settings("infocal", {**changes, "training.most_round_steps": 2}))


def measure_explain(data: Path, *, repeats: int = 5) -> None:
    """What explaining costs over the plain full-text classifier of the same encoder."""
    from infocal.data.toy import toy_reviews
    from infocal.training.inference import full_text_outputs

    documents = toy_reviews(2000)
    model = untrained(documents)
    texts = [document.text for document in documents]

    def plain() -> None:
        for _, corpus in model._chunks(iter(documents), None, "texts"):
            full_text_outputs(model.method, corpus)

    times: dict[str, list[float]] = {"explain": [], "predict": [], "plain": []}
    for _ in range(repeats):
        for name, work in (
            ("explain", lambda: model.explain(texts)),
            ("predict", lambda: model.predict(texts)),
            ("plain", plain),
        ):
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    found = {name: statistics.median(values) for name, values in times.items()}
    print("explaining 2,000 reviews of about 60 tokens (<= 2.3x the full-text classifier wanted)")
    for name, seconds in found.items():
        ratio = seconds / found["plain"]
        print(f"  {name:12} {len(texts) / seconds:8.0f} documents/s  {ratio:.2f}x the plain cost")


def measure_memory() -> None:
    """Peak memory while training at three corpus sizes with the same held-out rows, each in its own process."""
    print("peak memory while training, rows and megabytes beyond what importing takes")
    script = (
        "import resource,sys,json\n"
        "from infocal.data.toy import toy_reviews\n"
        "from infocal.config import load_settings\n"
        "from infocal.data.readers import BadRows\n"
        "from infocal.training.preparation import prepare\n"
        "from infocal.fitting import train_prepared\n"
        "import torch; torch.set_num_threads(1)\n"
        "rows=int(sys.argv[1])\n"
        "settings=load_settings('infocal',{'training.warm_up_rounds':1,'training.joint_rounds':1,"
        "'training.least_round_steps':20,'training.most_round_steps':20})\n"
        "base=toy_reviews(2000)\n"
        "stream=(base[i%2000] for i in range(rows))\n"
        "prepared=prepare(stream,base[:500],settings,bad_rows=BadRows(skip=False))\n"
        "c=prepared.train\n"
        "size=sum(a.nbytes for a in (c.ids,c.offsets,c.lines,c.targets,c.gold,c.annotated))\n"
        "before=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "train_prepared(prepared,settings)\n"
        "after=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps({'rows':rows,'corpus':size/1e6,'prepared':before/1e3,'trained':after/1e3}))\n"
    )
    found = []
    for rows in (2_000, 20_000, 100_000):
        output = subprocess.run(
            [sys.executable, "-c", script, str(rows)], check=True, capture_output=True, text=True
        )
        found.append(json.loads(output.stdout))
        print("  {rows:8,} rows: encoded corpus {corpus:6.1f} MB, peak {trained:7.1f} MB".format(**found[-1]))
    for first, last in itertools.pairwise(found):
        growth, corpus = (last[name] - first[name] for name in ("trained", "corpus"))
        print(
            f"  from {first['rows']:,} to {last['rows']:,} rows the peak grew by {growth:.0f} MB, "
            f"the encoded corpus by {corpus:.0f} MB"
        )


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="+", default=["rcnn", "fill", "explain", "memory"])
    options = parser.parse_args()
    if "rcnn" in options.only:
        subprocess.run([sys.executable, str(HERE / "rcnn.py"), "--threads", "2"], check=True)
    if "fill" in options.only:
        measure_fill(options.data)
    if "explain" in options.only:
        measure_explain(options.data)
    if "memory" in options.only:
        measure_memory()


if __name__ == "__main__":
    main()
