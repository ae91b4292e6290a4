"""What a seed draws: queries, faults, pressure on windows, and schedules that are aimed at somebody."""
