-- one row: the latest acceptance time, in milliseconds since 1970
SELECT toUnixTimestamp64Milli(max(ingested_at))
FROM {{.Sent}}
