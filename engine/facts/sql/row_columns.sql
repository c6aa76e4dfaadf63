{{/* the columns of a row of a visitor or a goal event, in the order of scanTargets */ -}}
website_id, visitor_id, toUInt8(subject) AS kind, subject_id, experiment_id, toUInt8(grain) AS of_grain, goal_id,
    variation,
    concatWithSeparator('\0', {{.Attributes}})              AS attributes,
    toUnixTimestamp64Milli(first_time)                      AS first_ms,
    since_ms, number,
    toUnixTimestamp64Milli(multi_exposed_at)                AS multi_exposed_ms,
    seen, digest, views, clicks, submits, completions, conversions, contacts, later_ms, later_kinds,
    value, profit, extra_value, value_before, profit_before, extra_value_before, marks, foreign_currency,
    custom, properties, item_product, item_variant, item_category, item_brand, item_name, item_quantity, item_revenue, item_profit