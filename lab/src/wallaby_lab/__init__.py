"""The lab: everything that tests and measures Wallaby, in a separate distribution that users do not install."""
