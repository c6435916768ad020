"""The release flow: freeze, check, build, verify. The steps meet only on disk."""
