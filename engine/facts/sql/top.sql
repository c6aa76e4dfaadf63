-- one row per value of an attribute, by visitors, in descending order
SELECT
    toString({{.Value}}) AS dimension,
    sum(toInt64(sign)) AS visitors
FROM {{.Facts}}
WHERE {{.Where}}
    AND variation != ''
    AND NOT endsWith(variation, '!')
GROUP BY dimension
HAVING visitors > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
{{.Settings}}
