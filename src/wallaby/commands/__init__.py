"""The commands of the command line, a module each. They alone print; what they import, they import when they run."""
