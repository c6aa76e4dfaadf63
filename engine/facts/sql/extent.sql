-- one row: the last acceptance time of the stored events, in milliseconds since 1970, and their number, copies included
SELECT toUnixTimestamp64Milli(max(ingested_at)), toInt64(count())
FROM {{.Sent}}
