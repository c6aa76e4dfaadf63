-- Writes the parts of the campaign's events that the questions need to a Parquet file. One row is an event.
INSERT INTO FUNCTION file({{.Param "file" "String"}}, 'Parquet')
SELECT
    visitor_id,
    toUnixTimestamp64Milli(time) AS time,
    variation_id,
    toString(event) AS event,
    goal_id,
    value,
    profit,
    extra_value{{range .Attributes}},
    toString({{.}}) AS {{.}}{{end}}
FROM events
WHERE {{.Campaign}}
