-- Adds to the audit log that the facts of a website changed without new events.
INSERT INTO audit (account_id, changed_at, changed_by, kind, id, version, archived, body)
SELECT
    {account:Int64}, now64(3) AS at, {author:String}, 'facts', {website:Int64}, toUnixTimestamp64Milli(at), false,
    format('{{"change":"{}","at":"{}"}}', {change:String}, formatDateTime(at, '%Y-%m-%dT%H:%i:%SZ', 'UTC'))
