"""Judges in addition to the invariants: what an attentive reader of the protocol would require of a run."""
