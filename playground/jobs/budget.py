"""What a job may use up: memory, processor time, and its owner's room for files."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from compute.core import kinds
from playground.jobs import outcomes, quota
from playground.jobs.models import Job
from playground.jobs.outcomes import Outcome
from playground.jobs.runners import Runner

MB = 2**20
# Threads of a job that keeps to its share can use so much in the wall time that it has; the
# deadline on the wall clock, with its better words, comes first then.
CPU_GRACE_S = 5.0


class Budget:
    """Looks at one job's runner from time to time."""

    def __init__(self, job: Job, runner: Runner) -> None:
        self._runner = runner
        self._cpu_limit_s = cpu_limit_s(job)
        self._cpu_before_s: float | None = None  # of jobs that a warm runner has served before

    def start(self) -> None:
        """The job runs from now on: what the runner used until then is not its own."""
        self._cpu_before_s = self._runner.usage().cpu_s

    def exceeded(self) -> Outcome | None:
        """How the job ends if it has used too much of something."""
        used = self._runner.usage()
        if self._runner.out_of_memory():
            return killed_for_memory()
        if used.resident_mb > settings.JOB_MEMORY_MB:
            words = outcomes.OVER_MEMORY.format(
                used=round(used.resident_mb), limit=settings.JOB_MEMORY_MB
            )
            return outcomes.failure("out_of_memory", words)
        if self._cpu_before_s is None:
            return None
        cpu_s = used.cpu_s - self._cpu_before_s
        if cpu_s > self._cpu_limit_s:
            words = outcomes.OVER_CPU.format(used=round(cpu_s), limit=round(self._cpu_limit_s))
            return outcomes.failure("deadline_exceeded", words)
        return None


def cpu_limit_s(job: Job) -> float:
    """Processor seconds of a job, over all its threads and processes: the kind's own limit, or
    what its threads can use before its deadline."""
    own = kinds.get(job.kind).cpu_s
    if own is not None:
        return own
    return (job.deadline_s + CPU_GRACE_S) * settings.THREADS[job.queue]


def killed_for_memory() -> Outcome:
    """The kernel has ended it for going over its limit."""
    words = outcomes.NO_MORE_MEMORY.format(limit=settings.JOB_MEMORY_MB)
    return outcomes.failure("out_of_memory", words)


def over_quota(job: Job, sizes: Sequence[int]) -> Outcome | None:
    """How the job ends if files of these sizes, in bytes, go beyond its owner's quota."""
    left = quota.remaining_bytes(job.owner_id)
    needed = sum(sizes)
    if left is None or needed <= left:
        return None
    words = outcomes.OVER_QUOTA.format(needed=f"{needed / MB:.1f}", left=f"{max(0, left) / MB:.1f}")
    return outcomes.failure("quota_exceeded", words)
