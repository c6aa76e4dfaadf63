-- One row per value of a facet that lies apart: those that were frequent when the generation was made.
SELECT DISTINCT %s AS value
FROM settled
WHERE _partition_id = {partition:String}
    AND facet = {facet:String}
