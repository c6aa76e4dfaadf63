-- The table of visitors in DuckDB. One row is a variation and a value of the dimension.
SELECT
    CAST(variation_id AS VARCHAR) AS variation,
    {{.Dimension}} AS dimension,
    count(*) AS visitors,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}coalesce(sum(CAST({{.Column}} AS DOUBLE)), 0){{end}}] AS totals,
    [{{range $i, $m := .Metrics}}{{if $i}}, {{end}}coalesce(sum(CAST({{.Column}} AS DOUBLE) * CAST({{.Column}} AS DOUBLE)), 0){{end}}] AS squares
FROM visitors
WHERE NOT multiple
    AND {{.Filter}}
GROUP BY variation_id, {{.Dimension}}
ORDER BY variation, dimension
