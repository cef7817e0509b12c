"""What one update works on: windows of text, their loss, and the optimiser."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from compute.transformer.model import Transformer

BETAS = (0.9, 0.99)  # a short memory for squares: batches are small and the run is short


def make_optimizer(model: Transformer, weight_decay: float) -> torch.optim.AdamW:
    """AdamW in two groups: weights of linear layers decay; biases, norms and embeddings don't."""
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, p in model.named_parameters():
        matrix = p.dim() == 2 and not name.startswith("embed.")
        (decayed if matrix else free).append(p)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=BETAS, fused=True)


def windows(ids: Tensor, starts: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets (B, T) of the windows at `starts` (B,); targets are one token ahead."""
    rows = ids[starts[:, None] + torch.arange(block + 1, device=ids.device)]  # (B, T + 1)
    return rows[:, :-1], rows[:, 1:]


def loss_of(model: Transformer, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy in nats a token: x, y (B, T) -> scalar."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())
