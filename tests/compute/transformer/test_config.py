from __future__ import annotations

import pytest

from compute.transformer.config import (
    Config,
    nearest_d_model,
    nearest_heads,
    parameter_count,
    parameters_by_part,
)


def test_the_count_of_a_model_small_enough_to_add_up_by_hand() -> None:
    config = Config(vocab=3, block=4, layers=1, heads=1, d_model=2, d_ff=5)
    assert parameters_by_part(config) == {
        "embed.token": 6,
        "embed.position": 8,
        "attention": 4 * (4 + 2),
        "feed_forward": (10 + 5) + (10 + 2),
        "norms": 2 * 4 + 4,
        "unembed": 6 + 3,
    }
    assert parameter_count(config) == 86


def test_gpt2_small_without_tying_its_embeddings() -> None:
    """124,439,808 parameters (Radford et al. 2019, as released), where the output has no weights
    of its own; ours adds V × C + V."""
    gpt2 = Config(vocab=50257, block=1024, layers=12, heads=12, d_model=768, d_ff=3072)
    assert parameter_count(gpt2) - 50257 * 768 - 50257 == 124_439_808


def test_an_impossible_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match="not a multiple"):
        Config(vocab=3, block=4, layers=1, heads=3, d_model=4, d_ff=4)
    with pytest.raises(ValueError, match="unknown norm"):
        Config(vocab=3, block=4, layers=1, heads=1, d_model=4, d_ff=4, norm="middle")


def test_the_nearest_valid_values_lie_on_both_sides() -> None:
    assert nearest_d_model(100, 8, low=16, high=512) == [96, 104]
    assert nearest_heads(100, 8, low=1, high=16) == [5, 10]
    assert nearest_d_model(17, 16, low=16, high=512) == [16, 32]
    assert nearest_d_model(511, 15, low=16, high=512) == [510]
    assert nearest_heads(17, 3, low=1, high=16) == [1]


def test_json_form() -> None:
    config = Config(vocab=3, block=4, layers=1, heads=1, d_model=4, d_ff=4, norm="post")
    assert Config.from_json(config.to_json()) == config
    assert config.d_k == 4
