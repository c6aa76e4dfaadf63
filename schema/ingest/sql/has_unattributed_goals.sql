-- one row: how many goals without exposures the website has
SELECT sum(rows)
FROM subject_stats
WHERE website_id = {website_id:Int64}
    AND subject = 'none'
