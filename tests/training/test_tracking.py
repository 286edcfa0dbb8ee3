"""Who hears of the progress."""

import io

from rich.console import Console

from infocal.training.tracking import ProgressBar

RECORD = {"phase": "warm_up", "round": 1, "rate": 0.2, "seconds": 3, "dev": {"guide": {"accuracy": 0.75}}}


def drawn(*, terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    bar = ProgressBar(console)
    bar.start(total_steps=10, step=0, history=[])
    for step in range(1, 6):
        bar.advance(step=step, phase="warm_up", tokens=500)
    if bar._progress is not None:
        bar._progress.refresh()
    bar.round(RECORD)
    bar.finish()
    return console.file.getvalue()


def test_a_terminal_sees_a_bar_with_rate_and_time_left():
    seen = drawn(terminal=True)
    for part in ("warm-up", "50%", "k words/s", "at most", "left"):
        assert part in seen
    assert "full text accuracy 0.750" in seen


def test_elsewhere_there_is_no_bar():
    assert drawn(terminal=False) == "warm-up  round 1:  full text accuracy 0.750  (3 s)\n"
