"""How much memory executors leave to their TaskManagers, on hosts and in pods."""
