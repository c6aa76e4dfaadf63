-- one row: the number of rates that were ever declared, and when the last of them was, in milliseconds since 1970
SELECT toInt64(count()), toUnixTimestamp64Milli(max(declared_at))
FROM rates
