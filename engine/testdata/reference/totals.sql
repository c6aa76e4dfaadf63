WITH
    {{template "visitors.sql" .}}
-- one row: the total values of the converted visitors of all variations
SELECT groupArray(toInt64(arraySum(goal -> goal.3, c.goals))) AS totals
FROM counted AS c
WHERE NOT c.exposed_before
    AND notEmpty(c.goals)
    AND (NOT c.multi_exposed OR {with_multi_exposed:Bool})
    AND c.variation_id IN {variation_ids:Array(Int64)}
