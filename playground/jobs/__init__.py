"""Jobs: rows, queue, supervisor, event log, socket and REST. ARCHITECTURE: "A job's life"."""
