-- One row per frequent value of a cube. The frequent values are determined when a generation is created.
SELECT DISTINCT %s AS value
FROM rollups
WHERE bucket = {bucket:UInt16}
    AND is_cell = 1
    AND generation = {generation:UInt64}
    AND cube_name = {cube:String}
