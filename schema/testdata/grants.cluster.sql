-- The database, a serving user and a migrating user. The statements can be run again: existing objects are kept, and the
-- passwords are replaced.
CREATE DATABASE IF NOT EXISTS `lifthouse` ON CLUSTER `lift`;

-- The serving user reads, inserts and deletes rows, and merges facts after visitors are erased. It cannot create or alter
-- tables.
CREATE USER IF NOT EXISTS `o\`dd` ON CLUSTER `lift` DEFAULT DATABASE `lifthouse`;

ALTER USER `o\`dd` ON CLUSTER `lift` IDENTIFIED WITH sha256_hash BY '3272e516b4f1f0de004bb07ba58e82bdfd27a11a77546f1f5caa7cd0587ad4ec';

GRANT ON CLUSTER `lift` SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON `lifthouse`.* TO `o\`dd`;

-- lifthouse facts --rebuild deletes all facts first.
GRANT ON CLUSTER `lift` TRUNCATE ON `lifthouse`.facts_local TO `o\`dd`;

GRANT ON CLUSTER `lift` SELECT ON system.tables TO `o\`dd`;

GRANT ON CLUSTER `lift` SELECT ON system.parts TO `o\`dd`;

GRANT ON CLUSTER `lift` SELECT ON system.detached_parts TO `o\`dd`;

GRANT ON CLUSTER `lift` SELECT ON system.disks TO `o\`dd`;

GRANT ON CLUSTER `lift` SELECT ON system.build_options TO `o\`dd`;

-- The migrating user also creates and alters tables.
CREATE USER IF NOT EXISTS `migrating` ON CLUSTER `lift` DEFAULT DATABASE `lifthouse`;

ALTER USER `migrating` ON CLUSTER `lift` IDENTIFIED WITH sha256_hash BY '4389ade5743404cc7bff4dcc3cbfac681edfa2496fae6bd6ee5e2875f8ff6614';

GRANT ON CLUSTER `lift` SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON `lifthouse`.* TO `migrating`;

GRANT ON CLUSTER `lift` SELECT ON system.tables TO `migrating`;

-- A process that opens the store waits for unfinished deletions of facts.
GRANT ON CLUSTER `lift` SELECT ON system.mutations TO `o\`dd`, `migrating`;

GRANT ON CLUSTER `lift` TABLE ENGINE ON Distributed TO `migrating`;

GRANT ON CLUSTER `lift` TABLE ENGINE ON ReplicatedMergeTree TO `migrating`;

GRANT ON CLUSTER `lift` TABLE ENGINE ON ReplicatedReplacingMergeTree TO `migrating`;

GRANT ON CLUSTER `lift` TABLE ENGINE ON ReplicatedCollapsingMergeTree TO `migrating`;

-- Commands wait for the latest rows of other replicas when they open the store.
GRANT ON CLUSTER `lift` SYSTEM SYNC REPLICA ON `lifthouse`.* TO `o\`dd`, `migrating`;

-- Statements on a cluster are forwarded from server to server.
GRANT ON CLUSTER `lift` CLUSTER, REMOTE ON *.* TO `o\`dd`, `migrating`;

GRANT ON CLUSTER `lift` SELECT ON system.clusters TO `o\`dd`, `migrating`;

GRANT ON CLUSTER `lift` SELECT ON system.one TO `o\`dd`, `migrating`;
