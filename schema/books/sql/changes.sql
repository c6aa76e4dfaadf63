-- one row per account, currency and day whose rate was declared since a time and is another one than before; before is
-- empty if there was none
SELECT
    account_id, currency,
    toInt64(toUInt16(day))                                  AS on_day,
    argMaxIf(rate, (declared_at, rate), toUnixTimestamp64Milli(declared_at) <= {through:Int64}) AS before,
    argMax(rate, (declared_at, rate))                       AS now
FROM rates
GROUP BY account_id, currency, day
HAVING max(toUnixTimestamp64Milli(declared_at)) > {through:Int64}
    AND before != now
ORDER BY account_id, currency, on_day
