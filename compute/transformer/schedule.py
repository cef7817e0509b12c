"""When things happen in a run, and how large a step is. No torch in here."""

from __future__ import annotations

import math

FLOOR = 0.1  # the cosine ends at this share of the peak
EARLY = (0, 1, 2, 5, 10, 20)  # the first steps change most, so look at them closely


def shape(step: int, *, steps: int, warmup: int) -> float:
    """Share of the peak learning rate at update `step` (0-based).

    Linear warm-up, then half a cosine down to a tenth (Loshchilov and Hutter 2017, without
    restarts).

    >>> [round(shape(s, steps=101, warmup=10), 3) for s in (0, 9, 10, 100)]
    [0.1, 1.0, 1.0, 0.1]
    """
    if step < warmup:
        return (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * progress))


def snapshot_steps(steps: int, every: int) -> list[int]:
    """Steps at which attention is stored: a few early ones, each multiple of `every`, the last.

    >>> snapshot_steps(100, 40)
    [0, 1, 2, 5, 10, 20, 40, 80, 100]
    """
    return sorted({s for s in EARLY if s <= steps} | set(range(0, steps + 1, every)) | {steps})


def sample_steps(steps: int, every: int) -> frozenset[int]:
    """Evaluations after which the model writes a sample: the first two, every other one, the last.

    >>> sorted(sample_steps(700, 100))
    [0, 100, 200, 400, 600, 700]
    """
    return frozenset({0, every, *range(0, steps + 1, 2 * every), steps})


def due(step: int, every: int, steps: int) -> bool:
    """Whether something done every so many steps is done after `step`: the last step counts."""
    return step % every == 0 or step == steps
