WITH
    {{template "exact.sql" .}},
    cells AS (  -- one row per variation, dimension value, and standing of the visitor in the report
        SELECT
            c.variation_id                                     AS variation_id,
            c.dimension                                        AS dimension,
            c.earlier                                          AS earlier,
            c.crossover                                        AS crossover,
{{- template "sums.sql" .}}        FROM counted AS c
        GROUP BY variation_id, dimension, earlier, crossover
    )
SELECT *
FROM cells
ORDER BY variation_id, dimension, earlier, crossover
