"""What a seed draws: queries, faults, pressure on windows, and aimed schedules."""
