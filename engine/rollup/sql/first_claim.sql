-- One row: the process that claimed a number first.
SELECT argMin(claimant, _block_number)
FROM rollup_claims
WHERE number = {number:UInt64}
