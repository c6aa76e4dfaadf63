-- One row on a server: its version, its place in the cluster (zeros: not known), and the rows and bytes of its large tables.
SELECT
    hostName()                  AS machine,
    build.value                 AS version,
    place.host, place.port, place.shard, place.replica, parts.events, parts.facts, parts.bytes
FROM
(
    SELECT value
    FROM system.build_options
    WHERE name = 'VERSION_STRING'
) AS build
CROSS JOIN
(
{{- if .Cluster}}
    SELECT
        any(host_name)          AS host,
        any(toUInt32(port))     AS port,
        any(shard_num)          AS shard,
        any(replica_num)        AS replica
    FROM system.clusters
    WHERE cluster = {{.Cluster}} AND is_local
{{- else}}
    SELECT
        ''                      AS host,
        toUInt32(0)             AS port,
        toUInt32(0)             AS shard,
        toUInt32(0)             AS replica
{{- end}}
) AS place
CROSS JOIN
(
    SELECT
        sumIf(rows, table IN ('events', 'events_local'))    AS events,
        sumIf(rows, table IN ('facts', 'facts_local'))      AS facts,
        sum(bytes_on_disk)                                  AS bytes
    FROM system.parts
    WHERE database = {{.Database}} AND active
) AS parts
