-- the rows of a lease with the highest version
SELECT
    holder,
    version,
    until > now64(3, 'UTC') AS unexpired
FROM leases
WHERE name = {name:String}
    AND version =
    (
        SELECT max(version)
        FROM leases
        WHERE name = {name:String}
    )
GROUP BY holder, version, until
ORDER BY holder
