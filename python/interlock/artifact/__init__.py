"""The policy folder on disk: safe readers, hashes, evidence, the cache of steps."""
