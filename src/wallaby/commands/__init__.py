"""The commands of the command line, one module each. Only they print; they import what they need when they run."""
