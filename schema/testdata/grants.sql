-- The database, a user that serves and a user that migrates. Both may be run again: what is there stays, but the passwords.
CREATE DATABASE IF NOT EXISTS `lifthouse`;

-- Who serves reads and writes rows, and erases those of visitors and subjects; it makes no table and changes none.
CREATE USER IF NOT EXISTS `o\`dd` DEFAULT DATABASE `lifthouse`;

ALTER USER `o\`dd` IDENTIFIED WITH sha256_hash BY '3272e516b4f1f0de004bb07ba58e82bdfd27a11a77546f1f5caa7cd0587ad4ec';

GRANT SELECT, INSERT, ALTER DELETE, CHECK ON `lifthouse`.* TO `o\`dd`;

-- What is sought is sent along with a query, as a temporary table.
GRANT CREATE TEMPORARY TABLE ON *.* TO `o\`dd`;

GRANT SELECT ON system.tables TO `o\`dd`;

GRANT SELECT ON system.parts TO `o\`dd`;

GRANT SELECT ON system.detached_parts TO `o\`dd`;

GRANT SELECT ON system.mutations TO `o\`dd`;

GRANT SELECT ON system.disks TO `o\`dd`;

-- Who migrates makes and changes tables too. It stays: the view that counts events inserts in its name.
CREATE USER IF NOT EXISTS `migrating` DEFAULT DATABASE `lifthouse`;

ALTER USER `migrating` IDENTIFIED WITH sha256_hash BY '4389ade5743404cc7bff4dcc3cbfac681edfa2496fae6bd6ee5e2875f8ff6614';

GRANT SELECT, INSERT, CREATE TABLE, CREATE VIEW, ALTER TABLE, ALTER VIEW ON `lifthouse`.* TO `migrating`;

-- A migration drops this table of earlier releases.
GRANT DROP TABLE ON `lifthouse`.settled TO `migrating`;

GRANT CREATE TEMPORARY TABLE ON *.* TO `migrating`;

GRANT SELECT ON system.tables TO `migrating`;

GRANT TABLE ENGINE ON MergeTree TO `migrating`;

GRANT TABLE ENGINE ON ReplacingMergeTree TO `migrating`;

GRANT TABLE ENGINE ON AggregatingMergeTree TO `migrating`;
