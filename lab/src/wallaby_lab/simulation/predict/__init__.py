"""Predictions: the protocol's own code, with task times and sizes of real runs, on simulated clusters."""
