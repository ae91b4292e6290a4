"""The GCS: the transactional control store that holds the only truth about a query's execution.

`interface` names the protocol actions; `memory` performs them in one process, and `redis` as one script each in a Redis
server. One contract suite checks that both give the same answers.
"""
