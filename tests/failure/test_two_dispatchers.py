"""Two dispatchers at once, the lock in Redis gone: a slot is given once, and a job starts once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.stack import ROOT, Stack

SLOTS, JOBS = 30, 80
MAKE = f"""
from playground.accounts.models import User
from playground.jobs.models import Job
owners = [User.objects.create(username=f"s{{n}}") for n in range(4)]
for n in range({JOBS}):
    Job.objects.create(owner=owners[n % 4], kind="pipe.train", queue="training", params={{}},
                       seed=1, deadline_s=60)
"""
HAND_OUT = f"""
import sys, django
django.setup()
from playground.jobs import dispatch
print("ready", flush=True)
sys.stdin.readline()
for slots in range(1, {SLOTS} + 1):  # one more is free each time
    for start in dispatch.hand_out("training", ["cpu"] * slots):
        print(start.id)
"""


@pytest.fixture(params=["sqlite", "mysql"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """Its tables and its Redis; no part of it runs."""
    found = Stack(database=request.param)
    try:
        found.redis.start()
        if found.mariadb is not None:
            found.mariadb.create()
        migrate = found._manage("migrate", "--verbosity", "0")
        said = migrate.communicate()[0]
        assert migrate.returncode == 0, said
        yield found
    finally:
        found.stop()


@pytest.mark.slow
def test_two_dispatchers_never_give_the_same_slot_or_job(stack: Stack) -> None:
    stack.shell(MAKE)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", HAND_OUT],
            env=stack.env,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for one in both:
        assert one.stdout
        assert one.stdout.readline() == "ready\n"
    for one in both:
        assert one.stdin
        one.stdin.write("\n")
        one.stdin.flush()
    given = [one.communicate(timeout=60)[0].split() for one in both]
    assert [one.returncode for one in both] == [0, 0]
    started = [*given[0], *given[1]]
    assert len(started) == len(set(started)) == SLOTS
    owners = stack.shell("""
        from playground.jobs.models import Job
        for job in Job.objects.exclude(dispatched_at=None):
            print(job.owner.username)
    """).split()
    counts = [owners.count(f"s{n}") for n in range(4)]
    assert max(counts) - min(counts) <= 1
