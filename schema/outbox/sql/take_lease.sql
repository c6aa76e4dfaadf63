INSERT INTO leases (name, holder, version, until)
SELECT
    {name:String},
    {holder:String},
    {version:UInt64},
    now64(3, 'UTC') + INTERVAL {seconds:UInt32} SECOND
