INSERT INTO exposures
(
    bucket, generation, refresh, segment, {{.Attributes}},
    first_time, multi_exposed_at, views, clicks, submits, completions, conversions, contacts, later_hours, later_kinds, last_ms
)
WITH
    {{template "first_views.sql" .}},
    exposed AS (  -- the same rows: events from the first view on, without it, in order
        SELECT
            {{template "segment.sql"}}                                                             AS of_segment,
            shown,
            first_at,
            arrayFilter(e -> e.1 >= first_at, events)                                              AS counted,
            arrayMap(e -> e.2, counted)                                                            AS kinds,
            arrayMin(e -> if(e.2 = 1 AND e.3 != variation_id, e.1, 9223372036854775807), counted)  AS multi_exposed_ms,
            arraySort(arrayMap(e -> (e.1 - first_at, e.2), counted))                               AS since_first_view,
            indexOf(since_first_view, (toInt64(0), toUInt8(1)))                                    AS first_view,
            arrayConcat(arraySlice(since_first_view, 1, first_view - 1), arraySlice(since_first_view, first_view + 1)) AS later
        FROM first_views
    )
SELECT
    {bucket:UInt16}, {generation:UInt64}, {refresh:UInt64}, of_segment,
{{- range .Shown}}
    {{.}},
{{- end}}
    fromUnixTimestamp64Milli(first_at, 'UTC'),
    fromUnixTimestamp64Milli(if(multi_exposed_ms = 9223372036854775807, 0, multi_exposed_ms), 'UTC'),
    toUInt32(countEqual(kinds, 1)), toUInt32(countEqual(kinds, 2)), toUInt32(countEqual(kinds, 3)),
    toUInt32(countEqual(kinds, 4)), toUInt32(countEqual(kinds, 5)), toUInt32(countEqual(kinds, 6)),
    arrayMap(e -> toUInt32(intDiv(first_at + e.1, 3600000) - intDiv(first_at, 3600000)), later),
    arrayMap(e -> e.2, later),
    toUInt64(later.1[-1])
FROM exposed
UNION ALL
SELECT
    {bucket:UInt16}, {generation:UInt64}, {refresh:UInt64}, 255,
{{- range .Shown}}
    '',
{{- end}}
    toDateTime64(0, 3, 'UTC'), toDateTime64(0, 3, 'UTC'), 0, 0, 0, 0, 0, 0, [], [], 0
SETTINGS max_insert_threads = 1, min_insert_block_size_rows = 4000000000, min_insert_block_size_bytes = 4000000000000, async_insert = 0
