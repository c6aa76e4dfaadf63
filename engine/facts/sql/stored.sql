-- one row per stored row of some sections, cancelled ones included: those of each visitor together, and then the cells
SELECT
    website_id, visitor_id, toUInt8(subject) AS kind, subject_id, experiment_id, toUInt8(grain) AS of_grain, goal_id,
    variation,
    concatWithSeparator('\0', {{.Attributes}})              AS attributes,
    toUnixTimestamp64Milli(first_time)                      AS first_ms,
    since_ms, number,
    toUnixTimestamp64Milli(multi_exposed_at)                AS multi_exposed_ms,
    seen, digest, views, clicks, submits, completions, conversions, contacts, later_ms, later_kinds,
    value, profit, extra_value, value_before, profit_before, extra_value_before, marks, foreign_currency,
    sign, sums
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND {{.Where}}
ORDER BY
    of_grain IN (3, 4), -- cells
    website_id, visitor_id, kind, subject_id, experiment_id, variation != '', of_grain, goal_id, number
SETTINGS max_bytes_before_external_sort = 536870912 -- the rest is sorted on disk
