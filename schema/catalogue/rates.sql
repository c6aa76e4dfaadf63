-- Adds to the audit log that rates of an account were imported.
INSERT INTO audit (account_id, changed_at, changed_by, kind, id, version, archived, body)
SELECT
    {account:Int64}, now64(3) AS at, {author:String}, 'rates', {account:Int64}, toUnixTimestamp64Milli(at), false,
    {body:String}
