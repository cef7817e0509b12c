from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from playground.labs import Lab

LAB = Lab(
    slug="transformer",
    title=_("Transformer"),
    summary=_(
        "Train a small language model on a real text, see its attention form while it learns, "
        "then play its forward pass number by number."
    ),
    action=_("Watch a Transformer learn"),
    order=10,
    kinds=(
        "transformer.train",
        "transformer.trace",
        "transformer.generate",
        "transformer.check",
    ),
)
