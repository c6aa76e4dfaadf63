-- One row: the last number that was claimed, 0 if there is none.
SELECT max(number)
FROM rollup_claims
