"""The kinds of step that a forward pass is made of, and the words that fill their sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from compute.core.texts import Text, joined
from compute.core.trace import Trace
from compute.text.chars import visible
from compute.transformer import words
from compute.transformer.sampling import likeliest
from compute.transformer.words import Words, number

if TYPE_CHECKING:
    from compute.transformer.reading_params import TraceParams
    from compute.transformer.trace import Pass

# Axes of each tensor, by the last parts of its name.
AXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("attn.q", "attn.k", "attn.v", "attn.mix"), ("head", "token", "dim")),
    **dict.fromkeys(
        ("attn.scores", "attn.scaled", "attn.masked", "attn.weights"), ("head", "query", "key")
    ),
    **dict.fromkeys(("ffn.pre", "ffn.act"), ("token", "hidden")),
    **dict.fromkeys(("mean", "var"), ("token",)),
    **dict.fromkeys(("logits", "probs"), ("token", "vocab")),
    **dict.fromkeys(("sample.logits", "sample.scaled", "sample.kept", "sample.probs"), ("vocab",)),
}


def axes_of(name: str) -> tuple[str, ...]:
    """Axis names of a trace's tensor: the longest ending that AXES knows, else (token, dim)."""
    parts = name.split(".")
    for ending in (".".join(parts[-2:]), parts[-1]):
        if ending in AXES:
            return AXES[ending]
    return ("token", "dim")


def quoted(char: str) -> Text:
    """A character inside a sentence, white space made visible."""
    return Text(f"“{visible(char)}”", f"“{visible(char)}”")


class Teller:
    """Adds steps and their tensors to a trace. Sentences speak about the last position."""

    def __init__(self, trace: Trace, seen: Pass, params: TraceParams) -> None:
        self.trace, self.seen, self.params = trace, seen, params
        self.t = seen.tensors
        self.config = seen.loaded.model.config
        self.vocabulary = seen.loaded.tokenizer.vocabulary
        self.i = len(seen.ids) - 1  # the position that sentences speak about
        self.common: dict[str, Any] = {
            "C": self.config.d_model,
            "F": self.config.d_ff,
            "V": self.config.vocab,
            "h": self.config.heads,
            "d_k": self.config.d_k,
            "i": self.i,
            "q": quoted(seen.tokens[self.i]),
            "id": seen.ids[self.i],
        }

    # Kinds of step

    def norm(
        self,
        name: str,
        x: str,
        *,
        stage: str | None = None,
        says: Words = words.NORM,
        also: Sequence[str] = (),
    ) -> None:
        parts = [f"{name}.mean", f"{name}.var", f"{name}.out"]
        self.step(
            name,
            says,
            op="norm",
            stage=stage,
            inputs=[x],
            outputs=[*parts, *also],
            attrs={
                "x": x,
                "mean": parts[0],
                "var": parts[1],
                "weight": f"{name}.weight",
                "bias": f"{name}.bias",
                "eps": self.config.eps,
            },
            mean=number(float(self.t[parts[0]][self.i])),
            var=number(float(self.t[parts[1]][self.i])),
        )

    def add(
        self, name: str, a: str, b: str, outputs: Sequence[str], says: Words = words.RESIDUAL
    ) -> None:
        first = {n: number(float(self.t[x][self.i, 0])) for n, x in (("a", a), ("b", b))}
        first["c"] = number(float(self.t[outputs[0]][self.i, 0]))
        self.step(
            name, says, op="add", inputs=[a, b], outputs=outputs, attrs={"a": a, "b": b}, **first
        )

    def project(self, name: str, x: str, linear: str, out: str, says: Words, **told: Any) -> None:
        attrs = {"x": x, "weight": f"{linear}.weight", "bias": f"{linear}.bias"}
        told.setdefault("value", number(float(self.t[out][self.i, 0])))
        self.step(name, says, op="project", inputs=[x], outputs=[out], attrs=attrs, **told)

    def step(
        self,
        name: str,
        says: Words,
        *,
        op: str,
        stage: str | None = None,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        attrs: dict[str, Any],
        **told: Any,
    ) -> None:
        """Add one step and the tensors it makes. The stage is the name without layer and module."""
        parts = name.split(".")
        layer = int(parts[1]) if parts[0] == "blocks" else None
        inside = ".".join(parts[2:]).removeprefix("attn.") if layer is not None else name
        for out in outputs:
            self.trace.tensor(out, self.t[out], axes_of(out))
        fields = {**self.common, **told}
        self.trace.step(
            name,
            stage=stage or inside,
            title=says.title.format(**fields),
            sentence=says.sentence.format(**fields),
            formula=says.formula,
            op=op,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs if layer is None else {**attrs, "layer": layer},
        )

    # Words

    def char(self, token: int) -> Text:
        return quoted(self.vocabulary[token])

    def striking(self, weights: Tensor) -> tuple[int, int]:
        """The head and the earlier key to which the last position gives most: weights (h, T, T).

        A first token has no earlier one: then the key is its own.
        """
        earlier = weights[:, self.i, : max(1, self.i)]  # (h, i)
        return divmod(int(earlier.argmax()), earlier.shape[1])

    def mixture(self, row: Tensor) -> Text:
        """The largest terms of a weighted sum, in words."""
        terms = [
            words.MIXTURE_TERM.format(w=number(w), k=quoted(self.seen.tokens[j]), j=j)
            for j, w in likeliest(row, 3)
        ]
        if int(torch.count_nonzero(row)) > len(terms):
            terms.append(Text("…", "…"))
        return joined(terms, " + ", " + ")

    def rule(self) -> Text:
        """Which filters the draw goes through, in words."""
        params = self.params
        rules = []
        if params.temperature == 0:
            rules.append(words.RULE_GREEDY)
        if params.top_k:
            rules.append(words.RULE_TOP_K.format(top_k=params.top_k))
        if params.top_p < 1:
            rules.append(words.RULE_TOP_P.format(top_p=number(params.top_p)))
        return joined(rules or [words.RULE_NONE])
