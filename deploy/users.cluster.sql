-- The same as users.sql for the cluster lift: replace lift by the name of yours.
CREATE DATABASE IF NOT EXISTS lifthouse ON CLUSTER lift;

CREATE USER IF NOT EXISTS lifthouse ON CLUSTER lift DEFAULT DATABASE lifthouse;

ALTER USER lifthouse ON CLUSTER lift IDENTIFIED WITH sha256_password BY {serving_password:String};

GRANT ON CLUSTER lift SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON lifthouse.*, TRUNCATE ON lifthouse.facts_local TO lifthouse;

GRANT ON CLUSTER lift SELECT ON system.tables, SELECT ON system.parts, SELECT ON system.detached_parts, SELECT ON system.build_options TO lifthouse;

CREATE USER IF NOT EXISTS lifthouse_migrating ON CLUSTER lift DEFAULT DATABASE lifthouse;

ALTER USER lifthouse_migrating ON CLUSTER lift IDENTIFIED WITH sha256_password BY {migrating_password:String};

GRANT ON CLUSTER lift SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON lifthouse.* TO lifthouse_migrating;

GRANT ON CLUSTER lift TABLE ENGINE ON Distributed, TABLE ENGINE ON ReplicatedMergeTree, TABLE ENGINE ON ReplicatedReplacingMergeTree, TABLE ENGINE ON ReplicatedCollapsingMergeTree TO lifthouse_migrating;

GRANT ON CLUSTER lift SELECT ON system.tables TO lifthouse_migrating;

GRANT ON CLUSTER lift SELECT ON system.mutations TO lifthouse, lifthouse_migrating;

-- Commands wait for the latest rows of other replicas when they open the store.
GRANT ON CLUSTER lift SYSTEM SYNC REPLICA ON lifthouse.* TO lifthouse, lifthouse_migrating;

-- Statements on a cluster are forwarded from server to server.
GRANT ON CLUSTER lift CLUSTER, REMOTE ON *.* TO lifthouse, lifthouse_migrating;

GRANT ON CLUSTER lift SELECT ON system.clusters, SELECT ON system.one TO lifthouse, lifthouse_migrating;
