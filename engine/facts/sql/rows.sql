-- one row per uncancelled row of the selected visitors, by visitor; copies is 1 unless a row is stored twice
SELECT
    {{template "row_columns.sql" .}},
    sum(toInt64(sign))                                      AS copies
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND {{.Where}}
GROUP BY
    website_id, visitor_id, kind, subject_id, experiment_id, of_grain, goal_id, variation, attributes, first_ms, since_ms, number,
    multi_exposed_ms, seen, digest, views, clicks, submits, completions, conversions, contacts, later_ms, later_kinds,
    value, profit, extra_value, value_before, profit_before, extra_value_before, marks, foreign_currency,
    custom, properties, item_product, item_variant, item_category, item_brand, item_name, item_quantity, item_revenue, item_profit
HAVING copies != 0
ORDER BY website_id, visitor_id, kind, subject_id, experiment_id, variation != '', of_grain, goal_id, number
