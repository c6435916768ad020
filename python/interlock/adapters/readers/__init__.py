"""Readers of checkpoints."""
