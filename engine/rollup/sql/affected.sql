-- One row per subject that lost events: the number of the last removal.
SELECT
    arrayJoin(subjects) AS subject,
    max(number)         AS removal
FROM rollup_claims
WHERE kind = 'removed'
GROUP BY subject
