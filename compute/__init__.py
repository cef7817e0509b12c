"""The engine: every lab's computations as a plain Python library, usable without the site."""
