"""What a robot, a sensor or a simulation must offer. Adapters implement these; nothing here imports one."""
