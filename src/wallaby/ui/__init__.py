"""The live page: what an engine does, in a browser, while it runs and after; and figures for Prometheus."""
