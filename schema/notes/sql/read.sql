-- The notes of an account or of one of its websites, each with its withdrawal. Of several rows with the same meaning, the
-- first one counts.
SELECT
    account_id, website_id, subject, subject_id, experiment_id, note_id, at, by, toString(kind),
    starts_at, ends_at, text, link, withdrawn
FROM notes
WHERE account_id = {account:Int64}
    AND {website:Int64} IN (0, website_id)
ORDER BY note_id, withdrawn, notes.at
LIMIT 1 BY note_id, withdrawn
