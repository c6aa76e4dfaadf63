-- one row: the number of stored events, copies included, that were accepted after a time
SELECT toInt64(count())
FROM {{.Sent}}
WHERE ingested_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')
