INSERT INTO deliveries
(
    account_id, webhook_id, message_id, attempted_at, outcome, status, detail
)
