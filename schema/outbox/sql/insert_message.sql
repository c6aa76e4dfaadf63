INSERT INTO messages
(
    account_id, message_id, event, website_id, subject, subject_id, experiment_id, state,
    recorded_at, body
)
