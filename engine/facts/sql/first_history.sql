-- one row: the time of the earliest order of the customers of a website
SELECT min(time)
FROM customers
WHERE website_id = {website:Int64}
