-- one row: the latest acceptance time after a time, in milliseconds since 1970; 0: none is later
SELECT toUnixTimestamp64Milli(max(ingested_at))
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
