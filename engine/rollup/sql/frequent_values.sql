-- One row per frequent value of a cube. The frequent values are determined when a generation is created.
SELECT DISTINCT %s AS value
FROM rollups
WHERE _partition_id = {partition:String}
    AND cube_name = {cube:String}
