-- one row per variation: number, value and profit of the counted goal events in a range of times
SELECT
    variation,
    sum(toInt64(sign))            AS orders,
    sum(toInt128(sign) * value),
    sum(toInt128(sign) * profit)
FROM {{.Facts}}
WHERE {{template "orders_where.sql"}}
GROUP BY variation
