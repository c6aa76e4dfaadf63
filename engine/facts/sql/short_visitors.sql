-- one row per visitor whose facts of a generation were made of more events of a subject than those of the next one
SELECT DISTINCT website_id, visitor_id
FROM (
    SELECT website_id, visitor_id
    FROM {{.Facts}}
    WHERE (section BETWEEN {first_section:UInt64} AND {last_section:UInt64}
            OR section BETWEEN {first_built:UInt64} AND {last_built:UInt64})
        AND visitor_id BETWEEN {first:UInt64} AND {last:UInt64}
    GROUP BY website_id, visitor_id, subject, subject_id, experiment_id
    HAVING sum(if(section <= {last_section:UInt64} AND section >= {first_section:UInt64}, 1, -1) * toInt64(sign) * seen) > 0
)
ORDER BY website_id, visitor_id
