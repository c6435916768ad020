"""Interlock: from a trained robot policy to a guarded robot."""
