-- one row per account and currency: the rates that count, by day
SELECT
    account_id,
    any(of_base)                                            AS base,
    currency,
    groupArray(toInt64(toUInt16(day)))                      AS days,
    groupArray(latest)                                      AS all_rates
FROM (
    SELECT
        account_id, currency, day,
        any(rates.base)                                     AS of_base,
        argMax(rate, (declared_at, rate))                   AS latest
    FROM rates
    WHERE {account:Int64} IN (0, account_id)
    GROUP BY account_id, currency, day
    ORDER BY account_id, currency, day
)
GROUP BY account_id, currency
