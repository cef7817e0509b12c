"""What this web process has done since it started, and has open now. Plain numbers, counted in the
event loop; whoever wants to know reads them (`playground.operations`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    sockets: int = 0  # open now
    followers: int = 0  # readers of a job's events now: sockets' topics, SSE, waits
    events_read: int = 0  # from the streams, once for all readers
    events_delivered: int = 0  # handed to readers, live and from the log
    catch_ups: int = 0  # times that a reader went to the log: at its start, and after an overflow
    overflows: int = 0  # readers so slow that their queue was given up
    gaps: int = 0  # readers told that earlier events are gone


counts = Counts()
