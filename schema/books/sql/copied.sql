-- all rates of some accounts, as they were declared
SELECT account_id, base, toString(currency), toInt64(toUInt16(day)), rate, source, rates.declared_at
FROM rates
WHERE account_id IN {accounts:Array(Int64)}
ORDER BY rates.declared_at
