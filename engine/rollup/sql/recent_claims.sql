-- One row per number that was claimed in the last hour for rows of other subjects than some.
SELECT DISTINCT number
FROM rollup_claims
WHERE kind IN ('rows', 'rebuild')
    AND subject NOT IN {except:Array(String)}
    AND at > now64(3) - INTERVAL 1 HOUR
