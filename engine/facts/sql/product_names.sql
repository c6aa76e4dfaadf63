WITH
    lines AS (  -- the lines with some products and a name
        SELECT
            toUnixTimestamp64Milli(first_time) + toInt64(since_ms) AS at_ms,
            arrayJoin(arrayFilter(
                line -> line.1 IN {products:Array(String)} AND line.2 != '', arrayZip(item_product, item_name)
            ))                                              AS line
        FROM {{.Facts}}
        WHERE section = {goals:UInt64}
            AND hasAny(item_product, {products:Array(String)})
    )
-- one row per product: its latest name, and when that was
SELECT
    toString(line.1)                                        AS product,
    toString(argMax(line.2, (at_ms, line.2)))               AS name,
    max(at_ms)                                              AS latest_ms
FROM lines
GROUP BY product
{{.Settings}}
