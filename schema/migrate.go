package schema

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed migrations/*.sql
var migrations embed.FS

const createMigrations = `
CREATE TABLE IF NOT EXISTS migrations
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY name`

// Migrate runs the pending migrations: the embedded statements that are not
// recorded in the store, in the order of their names. It records each migration
// with its checksum and returns the names of those it ran. If a file was changed
// after it ran, Migrate returns an error and runs nothing. The same applies if a
// recorded migration is unknown, because the store belongs to a newer release.
func Migrate(ctx context.Context, conn driver.Conn) ([]string, error) {
	return migrate(ctx, conn, migrations)
}

func migrate(ctx context.Context, conn driver.Conn, files fs.FS) ([]string, error) {
	exists, err := hasMigrations(ctx, conn)
	if err != nil {
		return nil, err
	}
	replicated, err := inReplicatedDatabase(ctx, conn)
	if err != nil {
		return nil, err
	}
	run := func(statement string) error {
		if replicated {
			statement = replicatedEngine(statement)
		}
		return retryConcurrent(ctx, func() error { return conn.Exec(ctx, statement) })
	}
	if !exists { // the serving user may not create tables
		if err := allServers(ctx, conn); err != nil {
			return nil, err
		}
		if err := run(createMigrations); err != nil {
			return nil, fmt.Errorf("create migrations table: %w", err)
		}
	}
	pending, err := pendingMigrations(ctx, conn, files)
	if err != nil {
		return nil, err
	}
	var applied []string
	for _, m := range pending {
		if m.replaces != "" {
			if err := dropTable(ctx, conn, m.replaces); err != nil {
				return applied, fmt.Errorf("migration %s: %w", m.name, err)
			}
		}
		if err := run(m.statement); err != nil {
			if recorded, failed := recordedChecksums(ctx, conn); failed == nil && recorded[m.name] == m.checksum {
				continue // another process ran it; a later migration may have dropped the table
			}
			return applied, fmt.Errorf("migration %s: %w", m.name, err)
		}
		if err := conn.Exec(ctx, "INSERT INTO migrations (name, checksum) SELECT {name:String}, {checksum:String}",
			clickhouse.Named("name", m.name), clickhouse.Named("checksum", m.checksum)); err != nil {
			return applied, fmt.Errorf("record migration %s: %w", m.name, err)
		}
		applied = append(applied, m.name)
	}
	return applied, createOwnTables(ctx, conn, files)
}

// allServers returns an error if a server of a cluster is inactive. All servers
// must be active when the tables are created: a replica that was inactive cannot
// create tables later, because Keeper has the altered definitions. Later changes
// reach an inactive replica when it is active again.
func allServers(ctx context.Context, conn driver.Conn) error {
	cluster, _ := Cluster(conn)
	if cluster == "" {
		return nil
	}
	var servers uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM clusterAllReplicas("+quoted(cluster)+", system.one)").Scan(&servers); err != nil {
		return fmt.Errorf("all servers of a cluster must run while its tables are created: start them, and migrate again: %w", err)
	}
	return nil
}

// Pending returns the names of the migrations that Migrate would run, in order,
// and changes nothing. It returns the same errors as Migrate.
func Pending(ctx context.Context, conn driver.Conn) ([]string, error) {
	exists, err := hasMigrations(ctx, conn)
	if err != nil {
		return nil, err
	}
	var names []string
	if !exists {
		entries, err := fs.ReadDir(migrations, "migrations")
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names, err
	}
	pending, err := pendingMigrations(ctx, conn, migrations)
	for _, m := range pending {
		names = append(names, m.name)
	}
	return names, err
}

func hasMigrations(ctx context.Context, conn driver.Conn) (bool, error) {
	var exists uint8
	if err := conn.QueryRow(ctx, "EXISTS TABLE migrations").Scan(&exists); err != nil {
		return false, fmt.Errorf("read migrations table: %w", err)
	}
	return exists == 1, nil
}

// concurrentCodes are the error codes (ErrorCodes.cpp) with which a server may
// reject a migration while another process runs the same one. Several processes
// may migrate a store at the same time: every migration is idempotent.
var concurrentCodes = []int32{
	57,  // TABLE_ALREADY_EXISTS: the table is not complete yet
	253, // REPLICA_ALREADY_EXISTS
	517, // CANNOT_ASSIGN_ALTER
	529, // NOT_A_LEADER
	999, // KEEPER_EXCEPTION
}

const (
	concurrentFirstWait = 50 * time.Millisecond
	concurrentLastWait  = 3 * time.Second
)

// retryConcurrent retries a statement that fails because another process runs it
// at the same time.
func retryConcurrent(ctx context.Context, do func() error) error {
	for wait := concurrentFirstWait; ; wait *= 2 {
		err := do()
		var exception *clickhouse.Exception
		if err == nil || !errors.As(err, &exception) || !slices.Contains(concurrentCodes, exception.Code) || wait > concurrentLastWait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

type migration struct {
	name, checksum, statement string
	replaces                  string // table that an earlier version of the file created; empty: none
}

// editedFile is a migration that was edited after stores had run it, which is
// otherwise forbidden. Its table is computed from the events, so it is dropped
// and created again.
type editedFile struct {
	table     string
	checksums []string // checksums of the earlier versions
}

var editedFiles = map[string]editedFile{
	"0012_settled.sql": {"settled", []string{
		"ec8f6ee8255fab4af4422b12e801ce53bacc2e954e5f2f45ff411654df0700f5",
		"2e06b41af39cce7fd43480abd44fcdf3bcd92ac008ddaf91c5ddd782109c57b4",
		"6ef710957404a35798f51fe6c4b0f7279a3a7304d0f1fcf2ba630deacbedfa79",
		"e42a68ba75ccac33d35cf4074b6171ca74282c45a31c6fc734527f3c8e9f5413",
		"f418452b3b9726c6e49fa91b94497050a269d675594165d21f201cd9a0ec403f",
	}},
	"0022_rollups.sql": {"rollups", []string{
		"6ab42312750a15ded4f9c3aaa5da5488e00668bd7f399697047df882e8ec5244",
		"4d5ce7a78545a961eb201d55c5b526feeaac8e8b9458532f5b56d6d565992d0d",
		"8a19be215e9a80baf2b611b2daa915302f087a8f014c29cad55e540a589f7456",
	}},
	"0024_exposures.sql": {"exposures", []string{
		"b803283e9d74f313b213a0a13fa22878462e463fde26d6896670f2b51aac48c4",
		"dbc241166071f8b9c0c3263ed51e1ca3596f891c40a33e19e0569565882b1764",
	}},
	"0025_conversions.sql": {"conversions", []string{
		"2eb5828a842246a8df94ebbf53de095f9f024feefada5c756e11453f194c3c4b",
		"480755c9ac64d99df89495c3c23841cb8191f7085a917dca1e20440a4e9f4058",
	}},
}

func dropTable(ctx context.Context, conn driver.Conn, table string) error {
	return conn.Exec(ctx, "DROP TABLE IF EXISTS "+table+" SYNC")
}

func pendingMigrations(ctx context.Context, conn driver.Conn, files fs.FS) ([]migration, error) {
	recorded, err := recordedChecksums(ctx, conn)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var pending []migration
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		m := migration{name: path.Base(name), checksum: hex.EncodeToString(sum[:]), statement: string(text)}
		switch was, ran := recorded[m.name]; {
		case !ran:
			pending = append(pending, m)
		case slices.Contains(editedFiles[m.name].checksums, was):
			m.replaces = editedFiles[m.name].table
			pending = append(pending, m)
		case was != m.checksum:
			return nil, fmt.Errorf("migration %s was changed after it ran: restore the file and add a new migration", m.name)
		}
		delete(recorded, m.name)
	}
	for name := range recorded {
		return nil, fmt.Errorf("the store has migration %s, which this release does not know: use the release that ran it, or a newer one", name)
	}
	return pending, nil
}

func recordedChecksums(ctx context.Context, conn driver.Conn) (map[string]string, error) {
	var rows []struct {
		Name     string `ch:"name"`
		Checksum string `ch:"checksum"`
	}
	if err := conn.Select(ctx, &rows, "SELECT name, checksum FROM migrations ORDER BY name, applied_at"); err != nil {
		return nil, fmt.Errorf("read migrations table: %w", err)
	}
	recorded := make(map[string]string, len(rows))
	for _, row := range rows {
		recorded[row.Name] = row.Checksum
	}
	return recorded, nil
}
