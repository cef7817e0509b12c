"""Whose is it: every row has an owner. Local mode has exactly one."""
