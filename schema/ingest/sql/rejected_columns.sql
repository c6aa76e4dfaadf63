-- One row is a rejected line. A WHERE clause follows.
SELECT
    rejected_at, website_id, channel, file, line, reason, text
FROM rejects
