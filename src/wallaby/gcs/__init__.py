"""The GCS: the transactional control store that holds the only truth about a query's execution.

`interface` names the whole protocol actions, `memory` performs them in one process, `redis` as one script
each in a Redis server; one contract suite holds the two to the same answers.
"""
