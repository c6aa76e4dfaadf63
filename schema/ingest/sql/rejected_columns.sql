-- One row is a rejected line. A WHERE clause follows.
SELECT
    rejected_at,
    website_id,
    way,
    file,
    line,
    reason,
    text
FROM rejects
