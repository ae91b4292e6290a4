"""How Catalyst's expressions are read: the entries of the registry, a file per family."""
