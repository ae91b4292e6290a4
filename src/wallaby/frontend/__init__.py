"""From a DataFrame to stages: read its plan, leave to Spark what only Spark can run, and plan the rest."""
