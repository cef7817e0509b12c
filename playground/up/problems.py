"""Why the playground can't start, in words."""

from __future__ import annotations


class CannotStart(Exception):
    """The playground can't start; the message is one sentence that says what to do."""
