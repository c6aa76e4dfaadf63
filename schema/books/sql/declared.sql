-- one row per rate of an account that was ever declared, the latest day first, and of a day the one that counts first
SELECT base, toString(currency) AS of_currency, toInt64(toUInt16(day)) AS on_day, rate, source, rates.declared_at
FROM rates
WHERE account_id = {account:Int64}
    AND {currency:String} IN ('', currency)
ORDER BY on_day DESC, of_currency, rates.declared_at DESC, rate DESC
LIMIT {most:UInt64}
