"""The site: who may do what, storing, queueing, streaming and pages. The engine is `compute`."""
