from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compute.transformer.config import Config, parameter_count
from compute.transformer.model import Attention, Block, Transformer, masked_softmax, sinusoids

VARIANTS: list[dict[str, Any]] = [
    {"norm": norm, "positions": positions}
    for norm in ("pre", "post")
    for positions in ("learned", "sinusoidal")
]


def make(**changes: Any) -> Transformer:
    values = {"vocab": 11, "block": 12, "layers": 2, "heads": 3, "d_model": 24, "d_ff": 40}
    torch.manual_seed(0)
    model = Transformer(Config(**{**values, **changes}))
    for p in model.parameters():  # weights large enough for an error to show
        nn.init.normal_(p, std=0.3)
    return model.eval()


def ignore(name: str, tensor: Tensor) -> None:
    """A recorder that only switches the traced path on."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_traced_path_is_the_fast_path(variant: dict[str, Any]) -> None:
    model = make(**variant)
    ids = torch.randint(11, (3, 12))
    difference = (model(ids) - model(ids, ignore)).abs().max()
    assert difference <= 1e-5


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("record", [None, ignore])
def test_no_logit_knows_a_later_token(variant: dict[str, Any], record: Any) -> None:
    model = make(**variant)
    ids = torch.randint(11, (1, 12))
    before = model(ids, record)
    for t in range(11):
        changed = ids.clone()
        changed[0, t + 1] = (ids[0, t + 1] + 1) % 11
        after = model(changed, record)
        assert torch.equal(after[:, : t + 1], before[:, : t + 1])
        assert not torch.equal(after[:, t + 1], before[:, t + 1])


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("record", [None, ignore])
def test_a_block_is_torchs_encoder_layer(norm: str, record: Any) -> None:
    """Same weights, causal mask: torch.nn.TransformerEncoderLayer is the oracle."""
    block: Any = make(norm=norm).blocks[0]
    assert isinstance(block, Block)
    theirs = nn.TransformerEncoderLayer(
        24, 3, 40, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm == "pre"
    ).eval()
    attn = block.attn
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(
            torch.cat([attn.q.weight, attn.k.weight, attn.v.weight])
        )
        theirs.self_attn.in_proj_bias.copy_(torch.cat([attn.q.bias, attn.k.bias, attn.v.bias]))
    pairs = [
        (theirs.self_attn.out_proj, attn.o),
        (theirs.linear1, block.ffn.up),
        (theirs.linear2, block.ffn.down),
        (theirs.norm1, block.norm1),
        (theirs.norm2, block.norm2),
    ]
    for target, source in pairs:
        target.load_state_dict(source.state_dict())
    x = torch.randn(2, 12, 24)
    mask = nn.Transformer.generate_square_subsequent_mask(12)
    expected = theirs(x, src_mask=mask, is_causal=True)
    assert (block(x, None, record) - expected).abs().max() <= 1e-5


@pytest.mark.parametrize("record", [None, ignore])
def test_a_row_that_sees_nothing_gives_zeros(record: Any) -> None:
    attention = make().blocks[0].attn
    assert isinstance(attention, Attention)
    nn.init.zeros_(attention.o.bias)
    x = torch.randn(2, 5, 24, requires_grad=True)
    visible = torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()
    visible[1, 0, 3] = False  # row 3 of the second example is blind
    out = attention(x, visible, record)
    assert torch.equal(out[1, 3], torch.zeros(24))
    causal = attention(x, None, record)
    others = [(0, t) for t in range(5)] + [(1, t) for t in (0, 1, 2, 4)]
    assert all((out[b, t] - causal[b, t]).abs().max() <= 1e-6 for b, t in others)
    out.sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters())


def test_masked_softmax_against_the_definition() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0], [5.0, 5.0, -1.0], [1.0, 2.0, 3.0]], requires_grad=True)
    visible = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    masked, weights = masked_softmax(scores, visible)
    e = math.e
    first = [1 / (1 + e), e / (1 + e), 0.0]
    total = 2 * e**5 + e**-1
    second = [e**5 / total, e**5 / total, e**-1 / total]
    expected = torch.tensor([first, second, [0.0, 0.0, 0.0]])
    assert torch.allclose(weights, expected, atol=1e-7)
    assert masked[0, 2] == -math.inf and torch.equal(masked[2], torch.full((3,), -math.inf))
    weights.square().sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None and scores.grad.isfinite().all()
    assert torch.equal(scores.grad[2], torch.zeros(3))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_untrained_model_guesses(variant: dict[str, Any]) -> None:
    """Before training the loss is near ln V."""
    torch.manual_seed(0)
    model = Transformer(
        Config(vocab=65, block=32, layers=4, heads=4, d_model=64, d_ff=256, **variant)
    )
    ids = torch.randint(65, (16, 33))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert abs(float(loss.detach()) - math.log(65)) < 0.1


@pytest.mark.parametrize("c", [8, 9])
def test_sinusoids_are_those_of_the_paper(c: int) -> None:
    table = sinusoids(50, c)
    for t in (0, 1, 49):
        for j in range(c):
            angle = t / 10_000 ** ((j - j % 2) / c)
            expected = math.cos(angle) if j % 2 else math.sin(angle)
            assert abs(float(table[t, j]) - expected) < 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d_ff", [16, 40])
def test_the_formula_counts_what_torch_counts(variant: dict[str, Any], d_ff: int) -> None:
    config = Config(vocab=11, block=12, layers=3, heads=3, d_model=24, d_ff=d_ff, **variant)
    assert parameter_count(config) == sum(p.numel() for p in Transformer(config).parameters())


def test_weights_carry_their_public_names() -> None:
    names = set(make(layers=1).state_dict())
    parts = ["norm1", "norm2", "attn.q", "attn.k", "attn.v", "attn.o", "ffn.up", "ffn.down"]
    expected = {f"blocks.0.{part}.{kind}" for part in parts for kind in ("weight", "bias")}
    expected |= {"embed.token.weight", "embed.position.weight", "norm.weight", "norm.bias"}
    assert names == expected | {"unembed.weight", "unembed.bias"}
    post = set(make(layers=1, norm="post", positions="sinusoidal").state_dict())
    assert post == names - {"embed.position.weight", "norm.weight", "norm.bias"}


def test_attention_maps_ignore_dropout_and_leave_the_mode_alone() -> None:
    model = make(dropout=0.5).train()
    maps = model.attention(torch.randint(11, (7,)))
    assert model.training and maps.shape == (2, 3, 7, 7)
    assert torch.allclose(maps.sum(-1), torch.ones(2, 3, 7), atol=1e-6)
    assert maps.triu(1).abs().max() == 0


def test_dropout_acts_in_training_only() -> None:
    model = make(dropout=0.5)
    ids = torch.randint(11, (1, 6))
    assert torch.equal(model(ids), model(ids))
    model.train()
    assert not torch.equal(model(ids), model(ids))


def test_a_text_longer_than_the_block_is_refused() -> None:
    model = make()
    assert model(torch.zeros(1, 12, dtype=torch.long)).shape == (1, 12, 11)
    with pytest.raises(ValueError, match="13 tokens, but the block holds 12"):
        model(torch.zeros(1, 13, dtype=torch.long))
