"""The process of one mutant; see `hunt.hunt_one`, which starts it."""

import sys

from wallaby_lab.simulation.mutants.hunt import main

sys.exit(main(sys.argv[1:]))
