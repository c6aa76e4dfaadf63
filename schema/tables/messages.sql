-- What people and programs outside are notified of: decisions, failed checks, starts and stops. One row per message,
-- written once and never changed. Two servers may write the same message with the same id; the first row counts.
CREATE TABLE IF NOT EXISTS messages{{.On}}
(
    account_id    Int64,
    recorded_at   DateTime64(3, 'UTC'),
    message_id    String                 COMMENT 'hash of the account, the subject and what happened',
    event         LowCardinality(String) COMMENT 'such as decision.changed',
    website_id    Int64,
    subject       LowCardinality(String) COMMENT 'campaign or widget',
    subject_id    Int64,
    experiment_id Int64,
    state         LowCardinality(String) COMMENT 'the decision, or the check',
    body          String                 COMMENT 'JSON, as it is sent'
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, recorded_at, message_id)
