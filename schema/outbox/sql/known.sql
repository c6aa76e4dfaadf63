-- the messages of all accounts without their bodies; of several rows of a message, the first one
SELECT
    account_id,
    message_id,
    event,
    website_id,
    subject,
    subject_id,
    experiment_id,
    state,
    recorded_at,
    '' AS body
FROM messages
ORDER BY recorded_at, message_id
LIMIT 1 BY message_id
