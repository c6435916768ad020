"""What a policy promises, what a robot is, and the two joined by name. Text in, objects out; no file is read here."""
