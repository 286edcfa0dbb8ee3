"""Hard choices with a known probability, for selectors that learn by the score function."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

__all__ = ["ChoiceLayer", "choose", "uniform_draws"]


def uniform_draws(mask: Tensor, *, generator: Generator | None) -> Tensor:
    """(b, t) float: one number in [0, 1) per token of ``mask`` (b, t)."""
    return torch.rand(mask.shape, generator=generator, device=mask.device)


def choose(logits: Tensor, draws: Tensor) -> Tensor:
    """Select each token whose draw is below its probability; no gradient flows through a choice.

    Args:
        logits: (b, t), log-odds of selecting.
        draws: (b, t), uniform in [0, 1) to sample; 1/2 everywhere takes the likelier choice.

    Returns:
        (b, t), exactly 0 or 1.
    """
    return (draws < torch.sigmoid(logits)).to(logits.dtype)


class ChoiceLayer(nn.Module):
    """The z-layer of Lei et al. (2016): every choice sees the choices before it.

    With h_i the selector's states, s_i its scores and z_i the choices, a small state q walks along the text:

        log-odds of z_i = s_i + v' q_{i-1}
        f_i = sigmoid(W_f h_i + z_i u_f + U q_{i-1} + b_f)
        c_i = f_i c_{i-1} + (1 - f_i) (W h_i + z_i u + b),   q_i = tanh(c_i)

    Args:
        input_width: d of the selector's states.
        state_width: of q.
    """

    def __init__(self, *, input_width: int, state_width: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(input_width, 2 * state_width)
        self.choice = nn.Linear(1, 2 * state_width, bias=False)
        self.recurrent = nn.Linear(state_width, state_width, bias=False)
        self.score = nn.Linear(state_width, 1, bias=False)

    def forward(self, scores: Tensor, states: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Choose token by token, for all documents at once.

        Args:
            scores: (b, t), the selector's log-odds were there no other choices.
            states: (b, t, d), the selector's states.
            draws: (b, t), as `choose` takes them.

        Returns:
            (b, t), the log-odds that each choice was made with, and (b, t), the choices, 0 or 1. Padding comes
            last in a document, so what it holds reaches no real token.
        """
        memory = scores.new_zeros(len(scores), self.recurrent.in_features)
        state, effect = memory, self.choice.weight.squeeze(1)
        logits: list[Tensor] = []
        choices: list[Tensor] = []
        steps = (scores.unbind(1), self.inputs(states).unbind(1), draws.unbind(1))
        for own, projected, draw in zip(*steps, strict=True):
            logits.append(own + self.score(state).squeeze(1))
            choices.append(choose(logits[-1], draw))
            gate, candidate = torch.addcmul(projected, choices[-1].unsqueeze(1), effect).chunk(2, 1)
            memory = torch.lerp(candidate, memory, torch.sigmoid(gate + self.recurrent(state)))
            state = torch.tanh(memory)
        return torch.stack(logits, 1), torch.stack(choices, 1)
