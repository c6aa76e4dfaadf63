-- One row: when the last event or order of a customer was accepted, and the time now.
SELECT greatest((SELECT max(ingested_at) FROM events), (SELECT max(ingested_at) FROM customers)), now64(3)
