INSERT INTO notes
(
    account_id, website_id, subject, subject_id, experiment_id, note_id, at, by, kind, starts_at,
    ends_at, text, link, withdrawn
)
