-- One row: when a process last claimed a number for rows of rollups, and which; of the removals of events that have not
-- ended: their number, when the first began, and which process began it.
WITH unfinished AS
(
    SELECT at, claimant
    FROM rollup_claims
    WHERE kind = 'removal'
        AND claimant NOT IN (SELECT removal FROM rollup_claims WHERE kind = 'removed')
)
SELECT
    maxIf(at, kind IN ('rows', 'rebuild'))                  AS last_at,
    argMaxIf(claimant, at, kind IN ('rows', 'rebuild'))     AS last_claimant,
    (SELECT count() FROM unfinished)                        AS removals,
    (SELECT min(at) FROM unfinished)                        AS first_at,
    (SELECT argMin(claimant, at) FROM unfinished)           AS first_claimant
FROM rollup_claims
