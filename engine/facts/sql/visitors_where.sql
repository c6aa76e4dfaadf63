section = {visitors:UInt64}
    AND ({{.Filters}})
    {{- if .Crossers}}
    AND multi_exposed_at != toDateTime64(0, 3)
    {{- end}}