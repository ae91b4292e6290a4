"""The coordinator in the Spark driver: it watches the workers, and freezes, reconciles and resumes after a loss.

It holds nothing that it could not read again from the GCS: if it restarts at any step, inside the live driver, it
starts over and makes the same plan.
"""
