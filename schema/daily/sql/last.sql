-- the last row of each subject and website
SELECT
    toString(kind), website_id, subject, subject_id, experiment_id, version, day, basis, body
FROM daily
ORDER BY kind, website_id, subject, subject_id, experiment_id, version DESC, day DESC, basis, body
LIMIT 1 BY kind, website_id, subject, subject_id, experiment_id
