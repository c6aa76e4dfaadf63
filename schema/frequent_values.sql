-- One row per frequent value of a cube: those chosen when the generation was made.
SELECT DISTINCT %s AS value
FROM rollups
WHERE _partition_id = {partition:String}
    AND cube_name = {cube:String}
