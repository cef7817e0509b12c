"""Where a job computes: the device, the number of threads, and the seeds."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compute.core.errors import UserError
from compute.core.texts import Text

_NO_CUDA = Text(
    "This machine has no usable CUDA device. Choose the device cpu.",
    "这台机器没有可用的 CUDA 设备，请选择 cpu。",
)
_NO_SUCH_DEVICE = Text(
    'There is no device "{device}". Use cpu, cuda, cuda:0, or auto.',
    "没有名为“{device}”的设备，请用 cpu、cuda、cuda:0 或 auto。",
)


def choose_device(wanted: str = "auto") -> str:
    """ "cpu", "cuda" or "cuda:N"; "auto" takes CUDA where torch finds it.

    Imports torch only when the answer depends on it. Raises UserError for an absent device.
    """
    if wanted == "cpu":
        return "cpu"
    name, _, index = wanted.partition(":")
    if name not in ("auto", "cuda") or (index and not index.isdecimal()):
        raise UserError(_NO_SUCH_DEVICE.format(device=wanted[:40]))
    import torch

    available = torch.cuda.is_available()
    if wanted == "auto":
        return "cuda" if available else "cpu"
    if not available or int(index or 0) >= torch.cuda.device_count():
        raise UserError(_NO_CUDA)
    return wanted


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_environment(threads: int) -> dict[str, str]:
    """What the environment of a process has to say before numeric libraries are imported.

    Idle OpenMP threads sleep rather than spin: two processes that spin on shared cores slow each
    other down more than tenfold.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {name: str(threads) for name in names} | {"OMP_WAIT_POLICY": "PASSIVE"}


def set_threads(threads: int) -> None:
    """Tell torch, if it is loaded, how many threads one operation may use.

    OMP_NUM_THREADS and its kin are read at import, so whoever spawns the process sets them.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def seed_all(seed: int) -> None:
    """Seed Python's, numpy's and torch's global generators, the last two only if loaded."""
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed % 2**63)  # every CUDA device too


@contextlib.contextmanager
def own_randomness() -> Iterator[None]:
    """Give the global generators back as they were: a notebook's, or an outer job's."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    torch_state = torch.get_rng_state() if torch is not None else None
    cuda_states = None
    if torch is not None and torch.cuda.is_initialized():
        cuda_states = torch.cuda.get_rng_state_all()
    try:
        yield
    finally:
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
        if torch is not None:
            torch.set_rng_state(torch_state)
        if cuda_states is not None and torch is not None:
            torch.cuda.set_rng_state_all(cuda_states)


def collect() -> None:
    """Free what is unreachable, and let the next call look only at what is made after this one.

    Scanning torch's modules again after every job takes longer than a short job itself.
    """
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def tidy_process() -> Iterator[None]:
    """Undo what a job may leave behind in a process that serves the next one."""
    folder = Path.cwd()
    environment = dict(os.environ)
    try:
        yield
    finally:
        os.chdir(folder)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
        collect()
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def rss_mb() -> float:
    """Resident memory of this process in MB (10^6 bytes)."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        pages = int(statm.read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    import resource  # elsewhere only the peak is at hand without a library

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)
