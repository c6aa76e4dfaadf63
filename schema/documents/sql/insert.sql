INSERT INTO documents
(
    account_id, website_id, subject, subject_id, experiment_id, document_id, kind, look, ended_at, made_at,
    made_by, media_type, summary, digest, size, body, withdrawn_at, withdrawn_by
)
