"""The simulated world: processes, wires, a store, a clock, and how effects are performed and faults strike there."""
