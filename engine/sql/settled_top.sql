-- one row per value, by its hash, that may be among the most visited, the most visited first
SELECT
    goal_id       AS hash,
    sum(visitors) AS of_value
FROM settled
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet = {facet:String}
    AND event = 'view'
GROUP BY hash
ORDER BY of_value DESC
LIMIT {most:UInt32} WITH TIES
