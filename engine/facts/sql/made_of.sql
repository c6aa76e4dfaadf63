-- one row per visitor in touched and subject: what the facts of the visitor are made of
SELECT
    website_id,
    visitor_id,
    toUInt8(subject),
    subject_id,
    experiment_id,
    sum(toInt64(sign) * seen)   AS events,
    groupBitXor(digest)         AS digests
FROM facts
WHERE grain = 'visitor'
    AND website_id IN (SELECT website_id FROM touched)
    AND visitor_id IN (SELECT visitor_id FROM touched)
    AND (website_id, visitor_id) IN touched
GROUP BY website_id, visitor_id, subject, subject_id, experiment_id
HAVING events != 0
ORDER BY website_id, visitor_id
