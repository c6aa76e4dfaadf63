-- What campaigns, variations, goals, own attributes and properties are called in events: the key cannot be computed from
-- its id. The values of own attributes are here, too, because their number is limited.
-- A name is stored before the first event that uses it.
CREATE TABLE IF NOT EXISTS names{{.On}}
(
    website_id  Int64,
    kind        Enum8('campaign' = 1, 'variation' = 2, 'goal' = 3, 'attribute' = 4, 'property' = 5, 'number' = 6),
    campaign_id Int64                COMMENT 'of a variation; otherwise 0',
    id          Int64,
    key         String               COMMENT 'as sent; empty: only the id was sent; of a value of an attribute: name=value',
    source      String               COMMENT 'that sent it first: name of the token, or of the file',
    first_at    DateTime64(3, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree{{with .All}}({{.}}){{end}}
ORDER BY (website_id, kind, campaign_id, id, key)
