-- one row per automated visitor of some sections, by the limit in force
SELECT website_id, visitor_id
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND section IN {sections:Array(UInt64)}
    AND endsWith(variation, '!')
    AND number = {most:UInt32}
GROUP BY website_id, visitor_id
HAVING sum(toInt64(sign)) > 0
