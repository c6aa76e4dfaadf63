-- The database, a serving user and a migrating user. The statements can be run again: existing objects are kept, and the
-- passwords are replaced.
CREATE DATABASE IF NOT EXISTS `lifthouse`;

-- The serving user reads, inserts and deletes rows, and merges facts after visitors are erased. It cannot create or alter
-- tables.
CREATE USER IF NOT EXISTS `o\`dd` DEFAULT DATABASE `lifthouse`;

ALTER USER `o\`dd` IDENTIFIED WITH sha256_hash BY '3272e516b4f1f0de004bb07ba58e82bdfd27a11a77546f1f5caa7cd0587ad4ec';

GRANT SELECT, INSERT, ALTER DELETE, OPTIMIZE, CHECK ON `lifthouse`.* TO `o\`dd`;

-- lifthouse facts --rebuild deletes all facts first.
GRANT TRUNCATE ON `lifthouse`.facts TO `o\`dd`;

GRANT SELECT ON system.tables TO `o\`dd`;

GRANT SELECT ON system.parts TO `o\`dd`;

GRANT SELECT ON system.detached_parts TO `o\`dd`;

GRANT SELECT ON system.disks TO `o\`dd`;

GRANT SELECT ON system.build_options TO `o\`dd`;

-- The migrating user also creates and alters tables.
CREATE USER IF NOT EXISTS `migrating` DEFAULT DATABASE `lifthouse`;

ALTER USER `migrating` IDENTIFIED WITH sha256_hash BY '4389ade5743404cc7bff4dcc3cbfac681edfa2496fae6bd6ee5e2875f8ff6614';

GRANT SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON `lifthouse`.* TO `migrating`;

GRANT SELECT ON system.tables TO `migrating`;

-- A process that opens the store waits for unfinished deletions of facts.
GRANT SELECT ON system.mutations TO `o\`dd`, `migrating`;

GRANT TABLE ENGINE ON MergeTree TO `migrating`;

GRANT TABLE ENGINE ON ReplacingMergeTree TO `migrating`;

GRANT TABLE ENGINE ON CollapsingMergeTree TO `migrating`;
