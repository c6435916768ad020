"""Trains the policy of the simulated arm: scripted expert, episodes, behaviour cloning, evaluation."""
