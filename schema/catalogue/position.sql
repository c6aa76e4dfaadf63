-- The position of the stored rows. It reads no bodies.
SELECT count(), sum(version), max(changed_at)
FROM
(
    SELECT max(version) AS version, max(changed_at) AS changed_at
    FROM catalogue
    GROUP BY account_id, kind, id, facet
)
