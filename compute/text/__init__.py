"""Tokenisers and real texts that several labs share. Standard library only."""
