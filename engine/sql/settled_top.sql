-- one row per value of the dimension, those with the most visitors first
SELECT
    any({{.Dimension}}) AS value,
    sum(visitors)       AS of_value
FROM settled
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet = {facet:String}
    AND event = 'view'
GROUP BY goal_id
HAVING of_value > 0
ORDER BY of_value DESC
LIMIT {most:UInt32}
