"""The shell: `python -m compute` lists the kinds, `python -m compute <kind> --name value` runs one.

Exit status: 0 succeeded, 1 failed, 2 the input is refused, 130 canceled.
"""

from __future__ import annotations

import os
import sys

from compute.core import devices
from compute.core.cli import main

if __name__ == "__main__":
    # What the person has set goes before what we would set.
    os.environ.update(devices.thread_environment(devices.cores()) | dict(os.environ))
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; leave without Python's own last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 1
    sys.exit(status)
