-- one row: the number of rates that were declared up to a time
SELECT toInt64(count())
FROM rates
WHERE toUnixTimestamp64Milli(declared_at) <= {through:Int64}
