-- one row per currency of an account: its days with rates, and the latest of these
SELECT
    any(rates.base)                                         AS of_base,
    toString(currency)                                      AS of_currency,
    toInt64(uniqExact(day))                                 AS days,
    toInt64(toUInt16(min(day)))                             AS first_day,
    toInt64(toUInt16(max(day)))                             AS last_day,
    argMax(rate, (day, rates.declared_at, rate))            AS last_rate,
    argMax(source, (day, rates.declared_at, rate))          AS last_source,
    max(rates.declared_at)                                  AS last_declared
FROM rates
WHERE account_id = {account:Int64}
GROUP BY currency
ORDER BY of_currency
