"""A decoder-only Transformer, written to be read.

Vaswani et al. 2017, "Attention Is All You Need" (post-LN, sinusoidal positions); Radford et al.
2019, GPT-2 (pre-LN, learned positions, GELU, the initialisation below).

Every module has one forward pass. Given a `record` function it spells each stage out and hands over
every tensor by name; without one it takes torch's fused kernels. Tests hold the two paths together.

Shapes: B batch, T tokens, C d_model, h heads, d_k = C / h, F d_ff, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from compute.transformer.config import Config

Record = Callable[[str, Tensor], None]


def scoped(record: Record | None, prefix: str) -> Record | None:
    """The same recorder, with a prefix before every name."""
    if record is None:
        return None
    return lambda name, tensor: record(prefix + name, tensor)


def sinusoids(block: int, c: int) -> Tensor:
    """Position table of the 2017 paper, section 3.5: sin in even columns, cos in odd ones."""
    position = torch.arange(block, dtype=torch.float64)[:, None]  # (block, 1)
    rate = torch.exp(torch.arange(0, c, 2, dtype=torch.float64) * (-math.log(10_000.0) / c))
    table = torch.zeros(block, c, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : c // 2]
    return table.float()  # (block, C)


class Embedding(nn.Module):
    """Token vector + position vector."""

    table: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab, config.d_model)
        self.position: nn.Embedding | None = None
        if config.positions == "learned":
            self.position = nn.Embedding(config.block, config.d_model)
        else:
            fixed = sinusoids(config.block, config.d_model)
            self.register_buffer("table", fixed, persistent=False)  # not a weight: never saved
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, record: Record | None = None) -> Tensor:  # (B, T)
        token = self.token(ids)  # (B, T, C)
        table = self.table if self.position is None else self.position.weight
        position = table[: ids.shape[1]]  # (T, C)
        x: Tensor = self.dropout(token + position)  # (B, T, C)
        if record:
            record("embed.token", token)
            record("embed.position", position.expand_as(token))
            record("blocks.0.in", x)
        return x


class Norm(nn.LayerNorm):
    """Layer normalisation over C (Ba, Kiros and Hinton 2016)."""

    def forward(self, x: Tensor, record: Record | None = None) -> Tensor:  # (B, T, C)
        if record is None:
            return super().forward(x)
        mean = x.mean(-1)  # (B, T)
        var = x.var(-1, unbiased=False)  # (B, T)
        out = (x - mean[..., None]) / torch.sqrt(var[..., None] + self.eps)
        out = out * self.weight + self.bias  # (B, T, C)
        record("mean", mean)
        record("var", var)
        record("out", out)
        return out


def masked_softmax(scores: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over the visible keys of each row; returns (masked scores, weights).

    `visible` is boolean and broadcasts to `scores` (…, T, T). A row that sees no key gets
    weights of 0, where the plain formula gives 0 / 0, and its gradient stays 0 too.
    """
    masked = scores.masked_fill(~visible, -math.inf)
    blind = ~visible.any(-1, keepdim=True)  # rows that see nothing
    weights = torch.softmax(masked.masked_fill(blind, 0.0), dim=-1)
    return masked, weights.masked_fill(~visible, 0.0)


class Attention(nn.Module):
    """Multi-head self-attention: softmax(Q Kᵀ / √d_k) V for each head, concatenated, times W_O."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.d_k = config.heads, config.d_k
        self.q = nn.Linear(config.d_model, config.d_model)
        self.k = nn.Linear(config.d_model, config.d_model)
        self.v = nn.Linear(config.d_model, config.d_model)
        self.o = nn.Linear(config.d_model, config.d_model)
        self.dropout = config.dropout

    def split(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, h, T, d_k)
        return x.view(x.shape[0], x.shape[1], self.heads, self.d_k).transpose(1, 2)

    def forward(
        self, x: Tensor, visible: Tensor | None = None, record: Record | None = None
    ) -> Tensor:
        """x (B, T, C) -> (B, T, C). `visible` (…, T, T) says which key each query may see; None
        means causal: a token sees itself and what came before."""
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))  # (B,h,T,d_k)
        drop = self.dropout if self.training else 0.0
        if record is None:
            mix = F.scaled_dot_product_attention(
                q, k, v, attn_mask=visible, dropout_p=drop, is_causal=visible is None
            )  # (B, h, T, d_k)
        else:
            if visible is None:
                visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
                visible = visible.tril()  # (T, T)
            scores = q @ k.transpose(-2, -1)  # (B, h, T, T)
            scaled = scores / math.sqrt(self.d_k)
            masked, weights = masked_softmax(scaled, visible)
            mix = F.dropout(weights, drop) @ v  # (B, h, T, d_k)
            record("q", q)
            record("k", k)
            record("v", v)
            record("scores", scores)
            record("scaled", scaled)
            record("masked", masked)
            record("weights", weights)
            record("mix", mix)
        concat = mix.transpose(1, 2).reshape(x.shape)  # (B, T, C)
        out: Tensor = self.o(concat)
        if record:
            record("concat", concat)
            record("out", out)
        return out


class FeedForward(nn.Module):
    """Two linear layers with a GELU between, the same for every position."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor, record: Record | None = None) -> Tensor:  # (B, T, C)
        pre = self.up(x)  # (B, T, F)
        act = F.gelu(pre)  # x Φ(x), with the exact normal distribution
        out: Tensor = self.down(act)  # (B, T, C)
        if record:
            record("pre", pre)
            record("act", act)
            record("out", out)
        return out


class Block(nn.Module):
    """Attention, then feed-forward, each with a residual connection and a normalisation."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm1 = Norm(config.d_model, eps=config.eps)
        self.attn = Attention(config)
        self.norm2 = Norm(config.d_model, eps=config.eps)
        self.ffn = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, visible: Tensor | None = None, record: Record | None = None
    ) -> Tensor:  # (B, T, C)
        norm1, norm2 = scoped(record, "norm1."), scoped(record, "norm2.")
        attn, ffn = scoped(record, "attn."), scoped(record, "ffn.")
        if self.pre:
            a = self.attn(self.norm1(x, norm1), visible, attn)
            resid1 = x + self.dropout(a)
            f = self.ffn(self.norm2(resid1, norm2), ffn)
            resid2 = resid1 + self.dropout(f)
            out: Tensor = resid2
        else:
            a = self.attn(x, visible, attn)
            resid1 = x + self.dropout(a)
            middle = self.norm1(resid1, norm1)
            f = self.ffn(middle, ffn)
            resid2 = middle + self.dropout(f)
            out = self.norm2(resid2, norm2)
        if record:
            record("resid1", resid1)
            record("resid2", resid2)
            record("out", out)
        return out


class Transformer(nn.Module):
    """Embedding, L blocks, a last normalisation (pre-LN only), one logit for each character."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = Embedding(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = Norm(config.d_model, eps=config.eps) if config.norm == "pre" else None
        self.unembed = nn.Linear(config.d_model, config.vocab)
        self.initialise()

    def initialise(self) -> None:
        """Small normal weights, as GPT-2: the first predictions are near uniform, loss near ln V.

        The two layers that write into the residual stream start smaller by √(2L), so that the
        stream's size does not grow with depth. Queries and keys start larger (Glorot and Bengio
        2010, as in torch's own attention): rows that are not quite uniform learn sooner where to
        look. Beside fixed sinusoids of size 1, token vectors start at size 1 as well.
        """
        for name, p in self.named_parameters():
            if p.dim() < 2:
                continue
            if name.endswith(("attn.q.weight", "attn.k.weight")):
                nn.init.xavier_normal_(p)
                continue
            std = 0.02
            if name.endswith(("attn.o.weight", "ffn.down.weight")):
                std /= math.sqrt(2 * self.config.layers)
            if name == "embed.token.weight" and self.config.positions == "sinusoidal":
                std = 1.0
            nn.init.normal_(p, std=std)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor, record: Record | None = None) -> Tensor:
        """ids (B, T) -> logits (B, T, V); the logits at t predict the token at t + 1.

        Raises ValueError when T is longer than the block.
        """
        if ids.shape[1] > self.config.block:
            raise ValueError(f"{ids.shape[1]} tokens, but the block holds {self.config.block}")
        x = self.embed(ids, record)  # (B, T, C)
        for i, block in enumerate(self.blocks):
            x = block(x, None, scoped(record, f"blocks.{i}."))
        if self.norm is not None:
            x = self.norm(x, scoped(record, "norm."))
        logits: Tensor = self.unembed(x)  # (B, T, V)
        if record:
            record("logits", logits)
        return logits

    @torch.no_grad()
    def attention(self, ids: Tensor) -> Tensor:
        """Attention weights of every layer and head for one text: ids (T,) -> (L, h, T, T).

        Taken in evaluation mode, so each row sums to 1 even when the model trains with dropout.
        """
        was_training = self.training
        self.eval()
        found: list[Tensor] = []

        def keep(name: str, tensor: Tensor) -> None:
            if name.endswith("attn.weights"):
                found.append(tensor[0])

        self(ids[None], keep)
        self.train(was_training)
        return torch.stack(found)
