"""The lab: everything that tests and measures Wallaby, in a distribution of its own that users do not install."""
