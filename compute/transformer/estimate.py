"""What a run will cost, before it runs. Formulas only, no torch: forms and checks call this."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from compute.transformer import data, schedule
from compute.transformer.config import Config, parameter_count, parameters_by_part

if TYPE_CHECKING:
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


def snapshots(params: TrainParams) -> tuple[int, int]:
    """How many attention snapshots a run stores, and the bytes of one: L × h × T² numbers."""
    count = len(schedule.snapshot_steps(params.steps, params.snapshot_every))
    tokens = len(data.probe_of(params))
    return count, params.layers * params.heads * tokens**2 * FLOAT_BYTES


def checkpoints(params: TrainParams) -> tuple[int, int]:
    """How many checkpoints a run stores, and the bytes of one, optimiser state included."""
    count = -(-params.steps // params.checkpoint_every)
    config = config_of(params, len(data.vocabulary_of(params)))
    return count, parameter_count(config) * FLOAT_BYTES * ADAMW_COPIES


def estimate(params: TrainParams) -> dict[str, Any]:
    """Parameters by part, tokens seen, and bytes of what the run leaves behind.

    `passes` says how often the run sees each training token.
    """
    vocabulary = data.vocabulary_of(params)
    config = config_of(params, len(vocabulary))
    tokens = data.length_of(params)
    per_step = params.batch * params.block
    train_tokens = data.split_at(tokens, params.block)
    return {
        "parameters": parameter_count(config),
        "parts": parameters_by_part(config),
        "vocab": len(vocabulary),
        "tokens": tokens,
        "tokens_per_step": per_step,
        "tokens_seen": per_step * params.steps,
        "passes": per_step * params.steps / max(1, train_tokens),
        "snapshot_bytes": math.prod(snapshots(params)),
        "checkpoint_bytes": math.prod(checkpoints(params)),
    }
