INSERT INTO daily
(
    kind, website_id, subject, subject_id, experiment_id, version, day, basis, body
)
