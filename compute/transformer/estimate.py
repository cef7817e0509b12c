"""What a run will build and leave on disk, before it runs. Formulas only, no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute.transformer import schedule
from compute.transformer.config import Config, parameter_count

if TYPE_CHECKING:
    from compute.transformer.data import Facts
    from compute.transformer.params import TrainParams

FLOAT_BYTES = 4
ADAMW_COPIES = 3  # the weights and AdamW's two moments


def config_of(params: TrainParams, vocab: int) -> Config:
    """The architecture that these params describe, for a vocabulary of that size."""
    return Config(
        vocab=vocab,
        block=params.block,
        layers=params.layers,
        heads=params.heads,
        d_model=params.d_model,
        d_ff=params.d_ff or 4 * params.d_model,
        norm=params.norm,
        positions=params.positions,
        dropout=params.dropout,
        family=params.family,
    )


def snapshots(params: TrainParams, facts: Facts) -> tuple[int, int]:
    """How many attention snapshots a run stores, and the bytes of one: L × h × T² numbers."""
    count = len(schedule.snapshot_steps(params.steps, params.snapshot_every))
    tokens = len(facts.probe)
    return count, params.layers * params.heads * tokens**2 * FLOAT_BYTES


def checkpoints(params: TrainParams, facts: Facts) -> tuple[int, int]:
    """How many checkpoints a run stores, and the bytes of one, optimiser state included."""
    count = -(-params.steps // params.checkpoint_every)
    config = config_of(params, len(facts.vocabulary))
    return count, parameter_count(config) * FLOAT_BYTES * ADAMW_COPIES
