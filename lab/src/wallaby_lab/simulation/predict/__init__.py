"""Predictions: the protocol's own code, with task times and sizes of real runs, on clusters that are not there."""
