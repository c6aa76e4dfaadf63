SELECT
    * EXCEPT (attributes, details){{range .Attributes}},
    toLowCardinality({{.}}) AS {{.}}{{end}}
FROM events
WHERE {{.Campaign}}
