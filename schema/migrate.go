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

//go:embed tables/*.sql
var tables embed.FS

//go:embed create_migrations.sql
var createMigrations string

// Migrate runs the pending migrations: the embedded statements that the store has not recorded, in the order of their
// names. It records each migration with its checksum and returns the names of those it ran. Migrate returns an error
// and runs nothing if a file was changed after it ran. It does the same if a recorded migration is unknown, because the
// store belongs to a newer release.
func Migrate(ctx context.Context, conn driver.Conn) ([]string, error) {
	return runMigrations(ctx, conn, tables)
}

func runMigrations(ctx context.Context, conn driver.Conn, files fs.FS) ([]string, error) {
	exists, err := hasMigrations(ctx, conn)
	if err != nil {
		return nil, err
	}
	var replicated bool // the engine of the database replicates the definitions of its tables
	const query = "SELECT countIf(engine = 'Replicated') > 0 FROM system.databases WHERE name = currentDatabase()"
	if err := conn.QueryRow(ctx, query).Scan(&replicated); err != nil {
		return nil, fmt.Errorf("read the engine of the database: %w", err)
	}
	cluster, _ := ClusterOf(conn)
	run := func(text string) error {
		filled, err := fillSlots(text, formOf(cluster, replicated))
		for _, statement := range splitStatements(filled) {
			if err == nil {
				err = retryConcurrent(ctx, func() error { return conn.Exec(ctx, statement) })
			}
		}
		return err
	}
	if !exists { // the serving user may not create tables
		// All servers of a cluster must be active: a replica that is not cannot create tables later, because Keeper has
		// the altered definitions. An inactive replica applies later changes when it is active again.
		if cluster != "" {
			var servers uint64
			if err := conn.QueryRow(ctx, "SELECT count() FROM clusterAllReplicas("+quoteString(cluster)+
				", system.one)").Scan(&servers); err != nil {
				return nil, fmt.Errorf("all servers of a cluster must run while its tables are created: start them, "+
					"and migrate again: %w", err)
			}
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
	return applied, nil
}

// PendingMigrations returns the names of the migrations that Migrate would run, in order. It changes nothing, and
// returns the same errors as Migrate.
func PendingMigrations(ctx context.Context, conn driver.Conn) ([]string, error) {
	var names []string
	pending, err := pendingMigrations(ctx, conn, tables)
	for _, m := range pending {
		names = append(names, m.name)
	}
	return names, err
}

func hasMigrations(ctx context.Context, conn driver.Conn) (bool, error) {
	var exists uint8
	err := conn.QueryRow(ctx, "EXISTS TABLE migrations").Scan(&exists)
	return exists == 1, WrapError(err, "read migrations table")
}

// concurrentCodes are the error codes (ErrorCodes.cpp) with which a server may reject a migration while another process
// runs the same one. Several processes may migrate a store at the same time: every migration is idempotent.
var concurrentCodes = []int32{
	57,  // TABLE_ALREADY_EXISTS: the table is not complete yet
	253, // REPLICA_ALREADY_EXISTS
	517, // CANNOT_ASSIGN_ALTER
	529, // NOT_A_LEADER
	999, // KEEPER_EXCEPTION
}

// retryConcurrent retries a statement that fails because another process runs it at the same time.
func retryConcurrent(ctx context.Context, do func() error) error {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := do()
		var exception *clickhouse.Exception
		isConcurrent := errors.As(err, &exception) && slices.Contains(concurrentCodes, exception.Code)
		if !isConcurrent || wait > 3*time.Second {
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
}

func pendingMigrations(ctx context.Context, conn driver.Conn, files fs.FS) ([]migration, error) {
	recorded, err := recordedChecksums(ctx, conn)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "tables/*.sql")
	if err != nil {
		return nil, err
	}
	var pending []migration
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		single, err := fillSlots(string(text), tableForm{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sum := sha256.Sum256([]byte(single))
		m := migration{name: path.Base(name), checksum: hex.EncodeToString(sum[:]), statement: string(text)}
		switch was, ran := recorded[m.name]; {
		case !ran:
			pending = append(pending, m)
		case was != m.checksum:
			return nil, fmt.Errorf("the store was created by another build of Lifthouse, whose tables differ (%s): "+
				"open it with that build, or import the events into a new store", m.name)
		}
		delete(recorded, m.name)
	}
	for name := range recorded {
		return nil, fmt.Errorf("the store was written by a newer release, which ran the migration %s: use that "+
			"release or a later one, or restore a backup from before the upgrade", name)
	}
	return pending, nil
}

func recordedChecksums(ctx context.Context, conn driver.Conn) (map[string]string, error) {
	recorded := map[string]string{}
	exists, err := hasMigrations(ctx, conn)
	if err != nil || !exists {
		return recorded, err
	}
	err = EachRow(ctx, conn, "SELECT name, checksum FROM migrations ORDER BY name, applied_at",
		func(row driver.Rows) error {
			var name, checksum string
			err := row.Scan(&name, &checksum)
			recorded[name] = checksum
			return err
		})
	return recorded, WrapError(err, "read migrations table")
}
