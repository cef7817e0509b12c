"""A forward pass told as steps: what each stage takes, makes, and says with this run's numbers."""

from __future__ import annotations

import math
from typing import Any

from compute.core.texts import Text
from compute.text.chars import visible
from compute.transformer import sampling, words
from compute.transformer.teller import Teller, quoted
from compute.transformer.words import number


class Story(Teller):
    """One pass from embedding to draw, in the order in which it is computed."""

    def tell(self) -> None:
        """Add every step."""
        self.embedding()
        for layer in range(self.config.layers):
            self.block(layer)
        last = f"blocks.{self.config.layers - 1}.out"
        if self.config.norm == "pre":
            self.norm("norm", last, stage="final_norm", says=words.FINAL_NORM)
            last = "norm.out"
        self.answer(last)

    # Parts

    def embedding(self) -> None:
        t, i = self.t, self.i
        learned = self.config.positions == "learned"
        self.step(
            "embed.token",
            words.EMBED_TOKEN,
            op="embed",
            outputs=["embed.token"],
            attrs={"table": "embed.token.weight", "ids": self.seen.ids},
        )
        self.step(
            "embed.position",
            words.POSITION_LEARNED if learned else words.POSITION_SINUSOIDAL,
            op="position",
            outputs=["embed.position"],
            attrs={
                "table": "embed.position.weight" if learned else None,
                "kind": self.config.positions,
            },
            a=number(float(t["embed.position"][i, 0])),
            b=number(float(t["embed.position"][i, 1])),
        )
        self.add("embed.sum", "embed.token", "embed.position", ["blocks.0.in"], words.EMBED_SUM)

    def block(self, layer: int) -> None:
        b = f"blocks.{layer}."
        pre = self.config.norm == "pre"
        x = "blocks.0.in" if layer == 0 else f"blocks.{layer - 1}.out"
        out = f"{b}out"
        if pre:
            self.norm(f"{b}norm1", x)
            self.attention(layer, f"{b}norm1.out")
            self.add(f"{b}residual1", x, f"{b}attn.out", [f"{b}resid1"])
            self.norm(f"{b}norm2", f"{b}resid1")
            self.feed_forward(b, f"{b}norm2.out")
            self.add(f"{b}residual2", f"{b}resid1", f"{b}ffn.out", [f"{b}resid2", out])
        else:
            self.attention(layer, x)
            self.add(f"{b}residual1", x, f"{b}attn.out", [f"{b}resid1"])
            self.norm(f"{b}norm1", f"{b}resid1")
            self.feed_forward(b, f"{b}norm1.out")
            self.add(f"{b}residual2", f"{b}norm1.out", f"{b}ffn.out", [f"{b}resid2"])
            self.norm(f"{b}norm2", f"{b}resid2", also=[out])

    def attention(self, layer: int, x: str) -> None:
        a, config = f"blocks.{layer}.attn.", self.config
        head, j = self.striking(self.t[f"{a}weights"])
        projections = [
            {"out": a + n, "weight": f"{a}{n}.weight", "bias": f"{a}{n}.bias"} for n in "qkv"
        ]
        self.step(
            f"{a}qkv",
            words.QKV,
            op="project",
            inputs=[x],
            outputs=[f"{a}q", f"{a}k", f"{a}v"],
            attrs={"x": x, "heads": config.heads, "d_k": config.d_k, "projections": projections},
        )
        self.matching(a, head, j)
        self.mixing(a, head)

    def matching(self, a: str, head: int, j: int) -> None:
        """From queries and keys to weights; sentences speak about one head and the key at j."""
        t, i = self.t, self.i
        root = math.sqrt(self.config.d_k)
        told: dict[str, Any] = {"head": head + 1, "k": quoted(self.seen.tokens[j]), "j": j}
        score, scaled = float(t[f"{a}scores"][head, i, j]), float(t[f"{a}scaled"][head, i, j])
        self.step(
            f"{a}scores",
            words.SCORES,
            op="matmul",
            inputs=[f"{a}q", f"{a}k"],
            outputs=[f"{a}scores"],
            attrs={"q": f"{a}q", "k": f"{a}k"},
            value=number(score),
            rank=words.RANK_BEST if i else words.RANK_ALONE,
            **told,
        )
        self.step(
            f"{a}scale",
            words.SCALE,
            op="scale",
            inputs=[f"{a}scores"],
            outputs=[f"{a}scaled"],
            attrs={"x": f"{a}scores", "divisor": root},
            before=number(score),
            after=number(scaled),
            divisor=number(root),
        )
        tokens = i + 1
        self.step(
            f"{a}mask",
            words.MASK,
            op="mask",
            inputs=[f"{a}scaled"],
            outputs=[f"{a}masked"],
            attrs={"x": f"{a}scaled", "mask": "causal"},
            hidden=tokens * (tokens - 1) // 2,
            all=tokens**2,
        )
        row = t[f"{a}weights"][head, i].double()
        self.step(
            f"{a}softmax",
            words.SOFTMAX,
            op="softmax",
            inputs=[f"{a}masked"],
            outputs=[f"{a}weights"],
            attrs={"x": f"{a}masked"},
            value=number(float(row[j])),
            entropy=number(sampling.entropy(row)),
            visible=tokens,
            uniform=number(math.log(tokens)),
            **told,
        )

    def mixing(self, a: str, head: int) -> None:
        """From weights and values to the layer's output."""
        t, i = self.t, self.i
        self.step(
            f"{a}weighted",
            words.WEIGHTED,
            op="weighted",
            inputs=[f"{a}weights", f"{a}v"],
            outputs=[f"{a}mix"],
            attrs={"weights": f"{a}weights", "v": f"{a}v"},
            head=head + 1,
            mixture=self.mixture(t[f"{a}weights"][head, i]),
            value=number(float(t[f"{a}mix"][head, i, 0])),
        )
        self.step(
            f"{a}concat",
            words.CONCAT,
            op="concat",
            inputs=[f"{a}mix"],
            outputs=[f"{a}concat"],
            attrs={"x": f"{a}mix", "heads": self.config.heads},
        )
        self.project(f"{a}project", f"{a}concat", f"{a}o", f"{a}out", words.PROJECT)

    def feed_forward(self, b: str, x: str) -> None:
        pre = self.t[f"{b}ffn.pre"][self.i]
        self.project(
            f"{b}ffn.up",
            x,
            f"{b}ffn.up",
            f"{b}ffn.pre",
            words.FFN_UP,
            low=number(float(pre.min())),
            high=number(float(pre.max())),
        )
        self.step(
            f"{b}ffn.act",
            words.FFN_ACT,
            op="gelu",
            inputs=[f"{b}ffn.pre"],
            outputs=[f"{b}ffn.act"],
            attrs={"x": f"{b}ffn.pre", "approximate": "none"},
            positive=int((pre > 0).sum()),
        )
        self.project(f"{b}ffn.down", f"{b}ffn.act", f"{b}ffn.down", f"{b}ffn.out", words.FFN_DOWN)

    def answer(self, x: str) -> None:
        """From the last vectors to one drawn token."""
        t = self.t
        logits, probs = t["logits"][self.i], t["probs"][self.i]
        best = int(logits.argmax())
        self.project(
            "logits",
            x,
            "unembed",
            "logits",
            words.LOGITS,
            value=number(float(logits[best])),
            best=self.char(best),
        )
        listed = [
            f"“{visible(self.vocabulary[v])}” ({number(p)})"
            for v, p in sampling.likeliest(probs, 3)
        ]
        self.step(
            "probabilities",
            words.PROBABILITIES,
            op="softmax",
            inputs=["logits"],
            outputs=["probs"],
            attrs={"x": "logits"},
            listed=Text(", ".join(listed), "、".join(listed)),
            even=number(1 / self.config.vocab),
        )
        self.sampling(best)

    def sampling(self, best: int) -> None:
        t, params, seen = self.t, self.params, self.seen
        greedy = params.temperature == 0
        special = {0.0: words.TEMPERATURE_ZERO, 1.0: words.TEMPERATURE_ONE}
        says = special.get(params.temperature, words.TEMPERATURE)
        kept = int(t["sample.kept"].sum())
        how = {"top_k": params.top_k, "top_p": params.top_p, "kept": kept}
        self.step(
            "temperature",
            says,
            op="temperature",
            inputs=["logits"],
            outputs=["sample.logits", "sample.scaled"],
            attrs={"x": "sample.logits", "temperature": params.temperature},
            temperature=number(params.temperature),
            before=number(float(t["sample.logits"][best])),
            after=number(float(t["sample.scaled"][best])),
        )
        self.step(
            "filter",
            words.FILTER,
            op="filter",
            inputs=["sample.scaled"],
            outputs=["sample.kept", "sample.probs"],
            attrs={"x": "sample.scaled", "temperature": params.temperature, **how},
            kept=kept,
            rule=self.rule(),
        )
        likeliest = int(t["sample.probs"].argmax())
        self.step(
            "sample",
            words.SAMPLE_GREEDY if greedy else words.SAMPLE,
            op="sample",
            inputs=["sample.probs"],
            attrs={
                "x": "sample.probs",
                "temperature": params.temperature,
                "seed": params.seed,
                "draw": seen.u,
                "chosen": seen.chosen,
                **how,
            },
            chosen=self.char(seen.chosen),
            seed=params.seed,
            u=number(seen.u),
            p=number(float(t["sample.probs"][seen.chosen])),
            best=self.char(likeliest),
            best_p=number(float(t["sample.probs"][likeliest])),
        )
