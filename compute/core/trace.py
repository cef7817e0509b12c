"""Traces: a computation as named steps, each with its tensors, a sentence and a formula.

A trace is two artifacts. `steps.json` holds the steps and the shape and axes of every tensor;
`tensors.safetensors` holds the numbers as float32, so that a reader fetches only what it draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from compute.core.texts import Text

if TYPE_CHECKING:
    import numpy as np
    import torch

    from compute.core.context import Context

VERSION = 1
STEPS, TENSORS = "steps.json", "tensors.safetensors"


class Trace:
    """Collects steps and tensors of one job and writes them with `save()`.

    `kind` names what is traced (the kind of the job by default); `meta` is for the page.
    """

    def __init__(
        self, ctx: Context, *, kind: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        self._ctx = ctx
        self.kind = kind if kind is not None else ctx.kind.name
        self.meta = dict(meta or {})
        self._steps: list[dict[str, Any]] = []
        self._names: set[str] = set()
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._tensors: dict[str, dict[str, Any]] = {}

    def step(
        self,
        name: str,
        *,
        stage: str,
        title: Text,
        sentence: Text,
        formula: str = "",
        op: str = "",
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a step. `formula` is TeX; inputs and outputs name tensors of this trace.

        Raises ValueError for a name that is taken.
        """
        if name in self._names:
            raise ValueError(f"two steps are named {name!r}")
        self._names.add(name)
        self._steps.append(
            {
                "name": name,
                "stage": stage,
                "title": title.as_dict(),
                "sentence": sentence.as_dict(),
                "formula": formula,
                "op": op,
                "inputs": list(inputs),
                "outputs": list(outputs),
                "attrs": dict(attrs or {}),
            }
        )

    def tensor(
        self, name: str, value: torch.Tensor | np.ndarray[Any, Any], axes: Sequence[str]
    ) -> None:
        """Keep a copy of `value` as float32 with one axis name a dimension.

        Raises ValueError for a name that is taken or axes that don't fit the shape.
        """
        if name in self._tensors:
            raise ValueError(f"two tensors are named {name!r}")
        array = _float32(value)
        if len(axes) != array.ndim:
            raise ValueError(
                f"tensor {name!r} has shape {array.shape}: expected {array.ndim} axes, "
                f"got {tuple(axes)}"
            )
        self._arrays[name] = array
        self._tensors[name] = {"shape": list(array.shape), "axes": list(axes)}

    def save(self) -> None:
        """Write and announce both artifacts.

        Raises ValueError for a step that names a tensor that is not there, or a bad formula.
        """
        from safetensors.numpy import save_file

        for step in self._steps:
            missing = [n for n in (*step["inputs"], *step["outputs"]) if n not in self._tensors]
            if missing:
                raise ValueError(
                    f"step {step['name']!r} names tensors that are not kept: {missing}"
                )
        steps = [{**step, "mathml": mathml(step["formula"])} for step in self._steps]
        save_file(self._arrays, self._ctx.path(TENSORS), metadata={"kind": self.kind})
        # The steps come last: whoever sees them may fetch the tensors.
        self._ctx.artifact(TENSORS, type="application/vnd.safetensors")
        self._ctx.write_json(
            STEPS,
            {
                "version": VERSION,
                "kind": self.kind,
                "meta": self.meta,
                "steps": steps,
                "tensors": self._tensors,
            },
        )


@lru_cache(maxsize=512)
def mathml(formula: str) -> str:
    r"""TeX as MathML, "" for "". Raises ValueError for TeX that latex2mathml doesn't understand.

    It passes commands it doesn't know through as text, which would show `\foo` in the picture.
    """
    if not formula:
        return ""
    from latex2mathml.converter import convert

    try:
        found: str = convert(formula, display="block")
        root = ElementTree.fromstring(found)  # a stray & leaves no well-formed MathML
    except Exception as error:  # the converter's errors have no common base
        raise ValueError(f"bad TeX {formula!r}: {error or type(error).__name__}") from error
    for element in root.iter():
        wanted = _CHILDREN.get(element.tag.rpartition("}")[2])
        _refuse_markup(element, formula)
        if "\\" in (element.text or "") or (wanted is not None and len(element) != wanted):
            raise ValueError(f"bad TeX {formula!r}: a command is not known or lacks a part")
    return found


# MathML Core's elements with a fixed number of children.
_CHILDREN = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3}
_CHILDREN |= {"munder": 2, "mover": 2, "munderover": 3}
_ELEMENTS = frozenset(_CHILDREN) | frozenset(
    "math mrow mi mn mo mtext mspace ms msqrt mstyle mpadded mphantom menclose merror "
    "mtable mtr mtd mlabeledtr mmultiscripts mprescripts none semantics".split()
)
_ATTRIBUTES = frozenset(
    "display xmlns mathvariant stretchy fence form accent accentunder lspace rspace linebreak "
    "columnalign rowalign columnlines rowlines columnspacing rowspacing separator movablelimits "
    "symmetric minsize maxsize largeop displaystyle scriptlevel width height depth voffset "
    "linethickness notation mathcolor mathbackground mathsize open close".split()
)


def _refuse_markup(element: ElementTree.Element, formula: str) -> None:
    r"""The converter passes what stands in \text{} through unescaped: let no HTML ride along."""
    tag = element.tag.rpartition("}")[2]
    if tag not in _ELEMENTS or not set(element.attrib) <= _ATTRIBUTES:
        raise ValueError(f"bad TeX {formula!r}: it holds markup")


def _float32(value: torch.Tensor | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous copy on the CPU: the original may change after its step."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        import torch

        value = value.detach().to("cpu", torch.float32).numpy()
    return np.array(value, dtype=np.float32, order="C", copy=True)
