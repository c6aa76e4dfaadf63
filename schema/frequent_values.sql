-- One row per value of a facet that lies apart: those that were frequent when the generation was made.
SELECT DISTINCT %s AS value
FROM settled
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet = {facet:String}
