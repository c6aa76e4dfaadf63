-- one row per website with lines of orders: the hashes of its products, at most as many as a website may have
SELECT website_id, groupUniqArrayArray(100000)(arrayMap(product -> xxHash64(product), item_product)) AS products
FROM facts
WHERE notEmpty(item_product)
GROUP BY website_id
