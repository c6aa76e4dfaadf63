-- the processes whose lease has not expired
SELECT groupArray(holder)
FROM
(
    SELECT holder
    FROM leases
    GROUP BY holder
    HAVING argMax(until, at) > now64(3, 'UTC')
)
