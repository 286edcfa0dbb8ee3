"""How fast the RCNN is: against the cell that calls modules per token, against nn.GRU and nn.LSTM.

    python benchmarks/rcnn.py                 # the paper's size on two threads
    python benchmarks/rcnn.py --small         # the sizes of the defaults on one thread, tokens per second

Repeats are interleaved and the median is shown, so that a busy machine slows all candidates alike; on a busy
machine with ``--threads 1`` add ``--clock cpu``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from stepwise_rcnn import StepwiseRCNN
from torch import Tensor, nn

from infocal.nn.encoders import ENCODERS, build_encoder

Work = Callable[[], object]


class Size(NamedTuple):
    """Documents, tokens each, input width, hidden width per direction."""

    documents: int
    tokens: int
    inputs: int
    hidden: int

    @property
    def rcnn_flops(self) -> float:
        """Of the matrix products forward and backward; each has two gradients of its own cost."""
        per_token = 2 * self.hidden * (3 * self.inputs + self.hidden)
        return 3.0 * 2 * self.documents * self.tokens * per_token


PAPER = Size(256, 150, 200, 200)
SMALL = [Size(documents, tokens, 100, 100) for documents in (64, 256) for tokens in (16, 60, 180)]


def training_step(model: nn.Module, size: Size, *, masked: bool) -> Work:
    """Forward and backward down to the inputs, as the selector's gradient needs it."""
    inputs = torch.randn(size.documents, size.tokens, size.inputs, requires_grad=True)
    outside = torch.randn(size.documents, size.tokens, 2 * size.hidden)
    mask = torch.ones(size.documents, size.tokens, dtype=torch.bool)

    def work() -> Tensor:
        states: Tensor = model(inputs, mask) if masked else model(inputs)
        states.backward(outside)
        return outside

    return work


def candidates(size: Size) -> dict[str, Work]:
    """The encoders of the package."""
    return {
        kind: training_step(
            build_encoder(kind, input_width=size.inputs, hidden_width=size.hidden), size, masked=True
        )
        for kind in ENCODERS
    }


def product(*, edge: int = 2048) -> Work:
    """A square matrix product, the machine's peak in practice."""
    left, right, out = (torch.randn(edge, edge) for _ in range(3))
    return lambda: torch.mm(left, right, out=out)


def medians(works: dict[str, Work], *, repeats: int, clock: Callable[[], float]) -> dict[str, float]:
    """Median seconds of each, the repeats interleaved after two that are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats + 2):
        for name, work in works.items():
            start = clock()
            work()
            if repeat >= 2:
                seconds[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def compare(size: Size, *, repeats: int, clock: Callable[[], float]) -> None:
    """Print the table of the paper's size."""
    stepwise = StepwiseRCNN(input_width=size.inputs, hidden_width=size.hidden)
    works = {
        "rcnn, step by step": training_step(stepwise, size, masked=True),
        "  its bare equations": training_step(stepwise, size, masked=False),
        **candidates(size),
    }
    edge = 2048
    found = medians({**works, "peak": product(edge=edge)}, repeats=repeats, clock=clock)
    peak = 2 * edge**3 / found["peak"]
    print(
        f"batch {size.documents}, {size.tokens} tokens, {size.inputs} inputs, {size.hidden} hidden, two directions"
    )
    print(f"{'forward + backward':22}{'ms':>8}{'speed':>9}{'of peak':>9}")
    for name in works:
        speed = found["rcnn, step by step"] / found[name]
        share = f"{size.rcnn_flops / found[name] / peak:9.0%}" if name not in ("lstm", "gru") else f"{'':9}"
        print(f"{name:22}{found[name] * 1e3:8.0f}{speed:8.2f}x{share}")
    floor = size.rcnn_flops / peak
    print(f"matrix-product peak {peak / 1e9:.0f} GFLOP/s; at that rate the RCNN's products alone take")
    print(f"{floor * 1e3:.0f} ms, so no cell can be more than {found['rcnn, step by step'] / floor:.2f}x faster")
    bare = found["  its bare equations"] / found["rcnn"]
    print(f"against the bare equations, which cannot read padded batches, the RCNN is {bare:.2f}x faster")


def survey(sizes: list[Size], *, repeats: int, clock: Callable[[], float]) -> None:
    """Print tokens per second for small sizes."""
    print(f"{'batch':>6}{'tokens':>8}" + "".join(f"{kind:>8}" for kind in ENCODERS) + "   1,000 tokens/s")
    for size in sizes:
        found = medians(candidates(size), repeats=repeats, clock=clock)
        rates = (size.documents * size.tokens / found[kind] / 1e3 for kind in ENCODERS)
        print(f"{size.documents:6}{size.tokens:8}" + "".join(f"{rate:8.0f}" for rate in rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="2, or 1 with --small")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="the sizes of the defaults")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    torch.set_num_threads(options.threads or (1 if options.small else 2))
    torch.manual_seed(0)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    if options.small:
        survey(SMALL, repeats=options.repeats, clock=clock)
    else:
        compare(PAPER, repeats=options.repeats, clock=clock)


if __name__ == "__main__":
    main()
