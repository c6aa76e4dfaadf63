-- Adds to the audit log that a person accepts the loss of stored events of some visitors of a website.
INSERT INTO audit (account_id, changed_at, changed_by, kind, id, version, archived, body)
SELECT
    {account:Int64}, now64(3) AS at, {author:String}, 'facts', {website:Int64}, toUnixTimestamp64Milli(at), false,
    format('{{"lostVisitors":{}, "acceptedAt":"{}"}}',
        toString({visitors:Int64}), formatDateTime(at, '%Y-%m-%dT%H:%i:%SZ', 'UTC'))
