SELECT
    * EXCEPT attributes{{range .Attributes}},
    toLowCardinality({{.}}) AS {{.}}{{end}}
FROM events
WHERE {{.Campaign}}
