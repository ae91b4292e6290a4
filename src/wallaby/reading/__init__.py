"""Reading: Catalyst's optimized plan in, a relation out, or the reasons why Spark has to run it."""
