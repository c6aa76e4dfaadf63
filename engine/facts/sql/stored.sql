-- one row per stored row of some sections, cancelled ones included: those of each visitor together, and then the cells
SELECT
    {{template "row_columns.sql" .}},
    sign, sums
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND {{.Where}}
ORDER BY
    of_grain IN (3, 4), -- cells
    website_id, visitor_id, kind, subject_id, experiment_id, variation != '', of_grain, goal_id, number
SETTINGS max_bytes_before_external_sort = 536870912 -- the rest is sorted on disk
