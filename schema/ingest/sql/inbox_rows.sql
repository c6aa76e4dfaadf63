-- The rows of some parts of events_inbox, or of a range of one part, as text. Unset values are empty.
SELECT
    toString(row_id)                                                         AS row_id,
    event_id,
    if(time = toDateTime64(0, 3, 'UTC'), '', toString(time, 'UTC'))           AS time_text,
    toString(website_id)                                                     AS website,
    campaign_id,
    ifNull(toString(widget_id), '')                                          AS widget,
    ifNull(toString(experiment_id), '')                                      AS experiment,
    variation_id, visitor, event, goal_id,
    value, profit, extra_value, currency, customer, device, browser, os, country, region, city, channel, referrer,
    utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type,
    revision, cancelled, attributes, properties, items
FROM events_inbox
WHERE _part IN {parts:Array(String)}
    AND _part_offset >= {from:UInt64}
    AND _part_offset < {until:UInt64}
ORDER BY indexOf({parts:Array(String)}, _part), _part_offset
