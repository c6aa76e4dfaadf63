-- Takes or renews the lease of a process if no process with a lesser name has one; otherwise, ends its own if it has one.
INSERT INTO leases (holder, at, until)
SELECT {holder:String}, now64(3, 'UTC'), now64(3, 'UTC') + INTERVAL if(lesser > 0, 0, {seconds:UInt32}) SECOND
FROM (
    SELECT countIf(holder < {holder:String}) AS lesser, countIf(holder = {holder:String}) AS own
    FROM (
        SELECT holder
        FROM leases
        GROUP BY holder
        HAVING argMax(until, at) > now64(3, 'UTC')
    )
)
WHERE lesser = 0 OR own > 0
