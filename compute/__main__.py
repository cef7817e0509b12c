"""The shell: `python -m compute` lists the kinds, `python -m compute <kind> --name value` runs one.

Exit status: 0 succeeded, 1 failed, 2 the input is refused, 130 canceled.
"""

from __future__ import annotations

import os
import sys

from compute.core import devices
from compute.core.cli import main

if __name__ == "__main__":
    for name, value in devices.thread_environment(devices.cores()).items():
        os.environ.setdefault(name, value)
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; leave without Python's own last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    sys.exit(status)
