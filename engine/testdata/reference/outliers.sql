WITH
    {{template "visitors.sql" .}}
-- one row: sums of the counted goal values over all variations
SELECT
    toInt64(sum(length(c.goals)))                                                          AS goals_reached,
    sum(arraySum(goal -> goal.3, c.goals))                                                 AS value,
    sum(arraySum(goal -> toInt256(goal.3) * goal.3, c.goals))                              AS value_squares
FROM counted AS c
WHERE NOT c.exposed_before
    AND (NOT c.multi_exposed OR {with_multi_exposed:Bool})
    AND c.variation_id IN {variation_ids:Array(Int64)}
