"""The coordinator in the Spark driver: who is alive, and freeze, reconcile, resume when somebody is not.

It holds nothing that it could not read again from the GCS: one that restarts at any step, inside the living
driver, starts over and comes to the same plan.
"""
