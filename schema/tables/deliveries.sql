-- The attempts to deliver messages to webhooks, and the requests of people to deliver a message again. The last row of a
-- message and a webhook is its state. Without rows, the message waits for its first attempt.
CREATE TABLE IF NOT EXISTS deliveries{{.On}}
(
    account_id   Int64,
    webhook_id   Int64,
    message_id   String,
    attempted_at DateTime64(3, 'UTC'),
    outcome      Enum8('delivered' = 1, 'retrying' = 2, 'failed' = 3, 'requested' = 4),
    status       UInt16 COMMENT 'HTTP status of the response; 0: no response',
    detail       String COMMENT 'why the attempt failed, or who requested it'
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, webhook_id, message_id, attempted_at)
