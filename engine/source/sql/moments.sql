WITH
    {{template "reference_visitors.sql" .}},
    cells AS (  -- one row per variation, dimension value and segment
        SELECT
            c.variation_id                                     AS variation_id,
            c.dimension                                        AS dimension,
            c.exposed_before                                          AS exposed_before,
            c.multi_exposed                                        AS multi_exposed,
{{- template "sums.sql" .}}        FROM counted AS c
        GROUP BY variation_id, dimension, exposed_before, multi_exposed
    )
SELECT *
FROM cells
ORDER BY variation_id, dimension, exposed_before, multi_exposed
