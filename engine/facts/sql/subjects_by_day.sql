-- one row per subject with cells by day
SELECT DISTINCT website_id, toUInt8(subject), subject_id, experiment_id
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
    AND goal_id = 0
