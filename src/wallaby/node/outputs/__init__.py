"""Outputs and states of a node: stored durably, sent untracked, or released."""
