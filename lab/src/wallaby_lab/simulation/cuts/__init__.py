"""Coordinated snapshots in the simulation: what they add to a world, and how its queries go on after a roll-back."""
