from __future__ import annotations

import math

import torch

from compute.transformer.schedule import FLOOR, due, sample_steps, shape, snapshot_steps


def test_the_cosine_is_torchs() -> None:
    """torch.optim.lr_scheduler.CosineAnnealingLR is the oracle after the warm-up."""
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=39, eta_min=FLOOR)
    for step in range(10, 50):
        assert math.isclose(shape(step, steps=50, warmup=10), cosine.get_last_lr()[0])
        optimizer.step()
        cosine.step()


def test_the_warm_up_is_a_line_from_almost_nothing() -> None:
    assert [shape(s, steps=50, warmup=4) for s in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert shape(0, steps=1, warmup=0) == 1.0
    assert shape(3, steps=4, warmup=100) == 0.04  # a run shorter than its warm-up


def test_snapshots_are_dense_early_and_end_with_the_last_step() -> None:
    assert snapshot_steps(1500, 40)[:8] == [0, 1, 2, 5, 10, 20, 40, 80]
    assert snapshot_steps(1500, 40)[-2:] == [1480, 1500]
    assert 40 <= len(snapshot_steps(1500, 40)) <= 45
    assert snapshot_steps(1, 40) == [0, 1]


def test_samples_come_early_and_last() -> None:
    assert sorted(sample_steps(1500, 100))[:4] == [0, 100, 200, 400]
    assert 1500 in sample_steps(1500, 100)


def test_the_last_step_is_always_due() -> None:
    assert [s for s in range(1, 8) if due(s, 3, 7)] == [3, 6, 7]
