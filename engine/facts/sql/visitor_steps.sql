WITH
    seen AS (  -- one row per counted event other than goals: time, kind, and number among the visitor's events of this kind in the window; 0: outside of it
        SELECT
            {{.Place}}                                      AS of_place,
            sign                                            AS of_sign,
            {{if .Period}}{{.Period}}{{else}}0{{end}}              AS of_period,
            {{if .Crossed}}{{.Crossed}}{{else}}0{{end}}            AS of_crossing,
            {{- if .Widget}}
            arrayJoin(arrayMap(
                (ms, kind, inside, number) -> ({{.StepTime}}, kind, inside * number),
                arrayPushFront(later_ms, 0) AS times,
                arrayPushFront(later_kinds, 1) AS kinds,
                arrayMap((ms, kind) -> {{.InWindow}}, times, kinds) AS insides,
                arrayEnumerateUniq(kinds, insides)
            ))                                              AS e
            {{- else}}
            arrayJoin(arrayMap(
                (ms, number) -> ({{.StepTime}}, 1, number),
                arrayPushFront(arrayFilter((ms, kind) -> kind = 1, later_ms, later_kinds), 0) AS times,
                arrayEnumerate(times)
            ))                                              AS e
            {{- end}}
        FROM {{.Facts}}
        WHERE {{template "visitors_where.sql" .}}
            {{- template "first_view_where.sql" .}}
    )
-- one row per key: the sums that its bucket adds
SELECT
    {{template "keys.sql" .}}sum(of_sign * toInt64(e.2 = 1 AND e.3 = 1))             AS visitors,
    sum(of_sign * toInt64(e.2 = 1))                         AS views
{{- if .Widget}},
    sum(of_sign * toInt64(e.2 = 2))                         AS clicks,
    sum(of_sign * toInt64(e.2 = 3))                         AS submits,
    sum(of_sign * toInt64(e.2 = 4 AND e.3 > 0))             AS completions,
    sum(of_sign * toInt64(e.2 = 5 AND e.3 > 0))             AS conversions,
    sum(of_sign * toInt64(e.2 = 6))                         AS contacts,
    sum(of_sign * toInt64(e.2 = 4 AND e.3 = 1))             AS completed_visitors,
    sum(of_sign * toInt64(e.2 = 5 AND e.3 = 1))             AS conversion_visitors
{{- end}}
FROM seen
WHERE e.2 {{if .Widget}}<= 6{{else}}= 1{{end}}
{{- if .To}}
    AND e.1 < {to_ms:Int64}
{{- end}}
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
