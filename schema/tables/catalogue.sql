-- The configuration: accounts, tokens, websites, goals, targets, campaigns, widgets and webhooks, one row per change.
-- Definition (what apply declares) and state (active, dates, history of shares) are separate facets. So starting a
-- campaign and changing its text never overwrite each other. The highest version of an (account, kind, id, facet)
-- counts.
-- The salt of an account, with which customers are hashed, is a facet of its own, which neither exports nor the audit have.
-- The writer is part of the key, which keeps rows of two writers with the same version: each writer must see the race.
CREATE TABLE IF NOT EXISTS catalogue{{.On}}
(
    account_id Int64                                          COMMENT 'owner; an account row carries its own id',
    kind       LowCardinality(String)                         COMMENT 'account, token, website, goal, target, campaign, widget or webhook',
    id         Int64                                          COMMENT 'unique within account and kind; websites are unique over all accounts',
    facet      Enum8('definition' = 1, 'state' = 2, 'salt' = 3),
    version    UInt64                                         COMMENT 'highest stands',
    body       String                                         COMMENT 'JSON',
    archived   Bool                                           COMMENT 'true hides the resource; its events stay',
    changed_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    writer     String                                         COMMENT 'process that wrote the row',
    changed_by String                                         COMMENT 'token or command'
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .All}}{{.}}, {{end}}version)
ORDER BY (account_id, kind, id, facet, writer)
