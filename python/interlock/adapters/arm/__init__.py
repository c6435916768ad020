"""The simulated tabletop arm: its scene, plant, robot file and trained policy."""
