-- One row per server of a cluster, as configured on the connected server.
SELECT shard_num AS shard, replica_num AS replica, host_name AS host, toUInt32(port) AS port
FROM system.clusters
WHERE cluster = {cluster:String}
ORDER BY shard, replica
