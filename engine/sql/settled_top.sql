-- one row per value of the dimension that is among the most visited, the most visited first; and before them one that says how far the sums go
SELECT
    s.facet = 'state'                            AS is_state,
    if(is_state, '', {{.Dimension}})             AS dimension,
    sum(s.visitors)                              AS visitors,
    toInt64(sum(s.value))                        AS shares_since,
    max(s.through)                               AS through,
    max(s.newest)                                AS newest
FROM settled AS s
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet IN ('state', {facet:String})
GROUP BY is_state, dimension
HAVING is_state OR visitors != 0
ORDER BY is_state DESC, visitors DESC, dimension
LIMIT {most:UInt32}
