-- One row: whether another process claimed the number of a new generation of the subject in the last seconds.
SELECT count() > 0
FROM rollup_claims
WHERE kind = 'rebuild'
    AND subject = {subject:String}
    AND number > {current:UInt64}
    AND NOT startsWith(claimant, {claimant:String})
    AND at > now64(3) - toIntervalSecond({seconds:UInt64})
