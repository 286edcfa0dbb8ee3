"""What crosses a layer, defined once.

Shapes are written with these letters everywhere: b documents in a batch, t tokens, d width, c outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infocal.errors import DataError

if TYPE_CHECKING:
    from rich.text import Text
    from torch import Tensor

__all__ = [
    "Batch",
    "Document",
    "Explanation",
    "Features",
    "Label",
    "Output",
    "Selection",
    "Span",
    "joined_spans",
    "merge_spans",
]

Span = tuple[int, int]
"""A half-open range [start, end) of characters of the reader's own text."""


Label = str | int | float
"""A class, or a score (float)."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text with what is known of it.

    Attributes:
        text: the text exactly as the user has it.
        label: a class (str or int) or a score (float), or several of these by name; None where unknown.
        rationale: the human's evidence as spans, put in order and joined where they overlap; None where nobody
            annotated it, () where it has none.
        line: where it stands in its source, for messages.
    """

    text: str
    label: Label | Mapping[str, Label | None] | None = None
    rationale: tuple[Span, ...] | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        if self.rationale:
            length = len(self.text)
            for start, end in self.rationale:
                if not 0 <= start < end <= length:
                    raise DataError(
                        f"the rationale holds ({start}, {end})",
                        allowed=f"0 <= start < end <= {length}, the text's length",
                        line=self.line,
                    )
            object.__setattr__(self, "rationale", joined_spans(self.rationale))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some documents as tensors.

    Attributes:
        ids: (b, t) int64, token ids, 0 where padded.
        mask: (b, t) bool, True on real tokens.
        targets: (b,) int64 classes or float32 scores in [0, 1]; None at inference.
        gold: (b, t) float32, 1 on tokens of the human's rationale; None where no document has one.
        annotated: (b,) bool, which documents have a human rationale; None with ``gold``.
        rows: (b,) int64, the documents' places in their corpus.
    """

    ids: Tensor
    mask: Tensor
    rows: Tensor
    targets: Tensor | None = None
    gold: Tensor | None = None
    annotated: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What the selector says of each token.

    Attributes:
        logits: (b, t), log-odds of being selected.
        probability: (b, t), sigmoid of the logits, 0 on padding.
        mask: (b, t), the mask that the predictor sees: exactly 0 or 1 going forward, 0 on padding.
    """

    logits: Tensor
    probability: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class Features:
    """A document's feature vector as a Gaussian.

    Attributes:
        mean: (b, d).
        deviation: (b, d), positive.
        sample: (b, d), a draw in training, the mean at inference.
    """

    mean: Tensor
    deviation: Tensor
    sample: Tensor


@dataclass(frozen=True, slots=True)
class Output:
    """All that one forward pass gives; losses read it, nothing is kept elsewhere.

    Attributes:
        selection: the selector's words.
        features: the predictor's feature vector, from the selected tokens only.
        logits: (b, c), the predictor's output.
        guide_features: the guider's feature vector, from the full text; None if not asked for.
        guide_logits: (b, c), the guider's output; None if not asked for.
    """

    selection: Selection
    features: Features
    logits: Tensor
    guide_features: Features | None = None
    guide_logits: Tensor | None = None


def joined_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, overlapping ones joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def merge_spans(tokens: Sequence[Span], selected: Sequence[bool]) -> tuple[Span, ...]:
    """Join selected tokens that follow one another into character ranges.

    Args:
        tokens: the spans of all tokens, in order.
        selected: for each token whether it is selected.
    """
    spans: list[Span] = []
    previous = False
    for (start, end), chosen in zip(tokens, selected, strict=True):
        if chosen and previous:
            spans[-1] = (spans[-1][0], end)
        elif chosen:
            spans.append((start, end))
        previous = bool(chosen)
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and the words it was made from; complete by itself.

    Attributes:
        text: the reader's own text.
        prediction: the class, or the score in the user's units.
        probabilities: class -> probability, most likely first; None for a score.
        spans: the selected character ranges, in order; the prediction was computed from these words alone.
        tokens: the character range of every token that the model read.
        scores: for every token its probability of being selected.
        selected: for every token whether it was selected.
        share: selected tokens / tokens.
        read_to: the character up to which the model read; less than len(text) if the text was cut.
        full_text_prediction: what the model's guider says having seen every word.
        label: the true label where it is known.
        gold: the human's spans where they are known.
        line: where the text stands in its source, where that is known.
        task: which of several labels this is about; None in a model of one.
    """

    text: str
    prediction: str | float
    probabilities: dict[str, float] | None
    spans: tuple[Span, ...]
    tokens: tuple[Span, ...]
    scores: tuple[float, ...]
    selected: tuple[bool, ...]
    share: float
    read_to: int
    full_text_prediction: str | float | None = None
    label: str | float | None = None
    gold: tuple[Span, ...] | None = None
    line: int | None = None
    task: str | None = None

    @property
    def rationale(self) -> tuple[str, ...]:
        """The selected phrases."""
        return tuple(self.text[start:end] for start, end in self.spans)

    @property
    def truncated(self) -> bool:
        """Whether words at the end of the text were not read."""
        return bool(self.text[self.read_to :].strip())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        record: dict[str, Any] = {
            "text": self.text,
            "prediction": self.prediction,
            "probabilities": self.probabilities,
            "rationale": list(self.rationale),
            "spans": [list(span) for span in self.spans],
            "share": self.share,
            "tokens": [
                {"start": start, "end": end, "score": score, "selected": selected}
                for (start, end), score, selected in zip(self.tokens, self.scores, self.selected, strict=True)
            ],
            "read_to": self.read_to,
            "truncated": self.truncated,
            "full_text_prediction": self.full_text_prediction,
        }
        if self.task is not None:
            record = {"task": self.task, **record}
        if self.line is not None:
            record["line"] = self.line
        if self.label is not None:
            record["label"] = self.label
        if self.gold is not None:
            record["gold"] = [list(span) for span in self.gold]
        return record

    def to_json(self, *, indent: int | None = None) -> str:
        """The same as one JSON object, with the text's own characters."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def to_html(self) -> str:
        """A fragment of HTML in which everything from the text is escaped."""
        from infocal.markup import explanation_html

        return explanation_html(self)

    def __rich__(self) -> Text:
        from infocal.markup import explanation_text

        return explanation_text(self)

    def __str__(self) -> str:
        from infocal.markup import plain

        return plain(self)

    def _repr_html_(self) -> str:
        return self.to_html()
