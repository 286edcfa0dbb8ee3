"""From token vectors to a document's features: the strongest answer of each filter."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ConvolutionEncoder"]


class ConvolutionEncoder(nn.Module):
    """The fact encoder of TOPJUDGE and MPBFN-WCA (after Kim, EMNLP 2014): convolutions, ReLU, maximum over places.

    A filter of width w answers at every place where it lies on real tokens alone. A document that is shorter than
    w has one such place, its beginning, with zeros behind its last token.

    Args:
        input_width: d of the token vectors.
        widths: w, how many tokens the filters see.
        filters: of each width.
    """

    def __init__(self, *, input_width: int, widths: Sequence[int], filters: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(input_width, filters, width) for width in widths)
        self.widths = tuple(widths)
        self.output_width = filters * len(self.widths)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Read a document.

        Args:
            inputs: (b, t, d).
            mask: (b, t), True on real tokens, which come first.

        Returns:
            (b, filters x widths), widths in their order; padding has no influence.
        """
        real = inputs.masked_fill(~mask.unsqueeze(-1), 0.0)
        missing = max(0, max(self.widths) - inputs.shape[1])
        columns = F.pad(real.transpose(1, 2), (0, missing))
        lengths = mask.sum(dim=1, keepdim=True)
        pairs = zip(self.widths, self.convolutions, strict=True)
        return torch.cat([_strongest(layer(columns), lengths - width) for width, layer in pairs], dim=1)


def _strongest(answers: Tensor, last: Tensor) -> Tensor:
    """(b, f): ReLU of the maximum of ``answers`` (b, f, p) over the places up to ``last`` (b, 1), or the first."""
    places = torch.arange(answers.shape[2], device=answers.device)
    outside = places > last.clamp(min=0)
    return torch.relu(answers.masked_fill(outside.unsqueeze(1), float("-inf")).amax(dim=2))
