-- One row: the state of a generation, and the number of its inserts.
SELECT
    maxMap(state) AS reached,
    sum(visitors) AS inserts
FROM rollups
WHERE is_cell = 0
    AND bucket = {bucket:UInt16}
    AND generation = {generation:UInt64}
