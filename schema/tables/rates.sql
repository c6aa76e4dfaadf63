-- The rates of accounts: units of a currency for one unit of the base, by the day on which they were published. Rows are
-- only added: of several rates of a currency and day, the latest counts. An account has one base.
--
-- All servers of a cluster have all rows, because each converts the orders of its own visitors. The number of the rows and
-- the latest time are the version of the rates, up to which facts are folded (see facts.Position).
CREATE TABLE IF NOT EXISTS rates{{.On}}
(
    account_id  Int64,
    base        LowCardinality(String) COMMENT 'ISO 4217',
    currency    LowCardinality(String) COMMENT 'ISO 4217',
    day         Date                   COMMENT 'converts the orders of the next days (UTC)',
    rate        String                 COMMENT 'decimal number, as it was imported',
    source      String                 COMMENT 'name of the file, or of the token',
    declared_at DateTime64(3, 'UTC')   COMMENT 'later than that of all rows before'
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, currency, day, declared_at)
