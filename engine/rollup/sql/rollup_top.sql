-- one row per value of the dimension, by visitors in descending order
SELECT
    any({{.Dimension}}) AS value,
    sum(visitors)       AS of_value
FROM rollups
WHERE bucket = {bucket:UInt16}
    AND is_cell = 1
    AND generation = {generation:UInt64}
    AND cube_name = {cube:String}
    AND event = 'view'
GROUP BY goal_id
HAVING of_value > 0
ORDER BY of_value DESC
LIMIT {most:UInt32}
