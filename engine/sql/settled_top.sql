-- one row per value, by its hash, that may be among the most visited, the most visited first; and before them one that says how far the sums go
SELECT
    s.facet = 'state'         AS is_state,
    s.goal_id                 AS hash,
    sum(s.visitors)           AS of_value,
    toInt64(sum(s.value))     AS shares_since,
    max(s.through)            AS through,
    max(s.newest)             AS newest
FROM settled AS s
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet IN ('state', {facet:String})
GROUP BY is_state, hash
HAVING is_state OR of_value != 0
ORDER BY is_state DESC, if(is_state, 0, of_value) DESC
LIMIT {most:UInt32} WITH TIES
