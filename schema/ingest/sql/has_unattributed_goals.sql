-- One row: the number of unattributed goals of the website.
SELECT sum(rows)
FROM subject_stats
WHERE website_id = {website_id:Int64}
    AND subject = 'none'
