"""Trains the policy of the simulated arm: scripted expert, episodes, behaviour cloning, evaluation."""

import os

# Threads that spin while they wait for each other are several times slower when something else wants the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
