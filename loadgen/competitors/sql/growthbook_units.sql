-- GrowthBook's units table of an incremental refresh, with the attributes of the first exposure. One row is a visitor.
CREATE TABLE loadgen_growthbook_units
ENGINE = MergeTree
ORDER BY visitor_id
AS SELECT
    visitor_id,
    if(uniqExact(variation_id) > 1, '__multiple__', argMin(toString(variation_id), time)) AS variation,
    min(time) AS first_exposure{{range .Attributes}},
    argMin({{.}}, time) AS {{.}}{{end}}
FROM events
WHERE {{.Campaign}}
    AND event = 'view'
GROUP BY visitor_id
