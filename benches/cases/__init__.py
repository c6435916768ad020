"""One benchmark per file; each registers itself, see `benches.registry`."""
