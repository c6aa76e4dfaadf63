-- one row: the number of rows of the visitors, cancelled ones included
SELECT count()
FROM {{.Facts}}
WHERE grain IN ('visitor', 'goal')
    AND website_id IN {websites:Array(Int64)}
    AND visitor_id IN {visitors:Array(UInt64)}
