"""Hosts on this machine: network namespaces with addresses and cables, so that what crosses a network can fail."""
