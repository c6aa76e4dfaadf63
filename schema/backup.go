package schema

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// backedUp is the database's name in a backup, whatever it is called in the
// store.
const backedUp = "lifthouse"

// Backup writes all tables of the store into a new folder dir, an absolute
// path. Nothing may write meanwhile: what came in between two tables would be
// in one of them only.
func Backup(ctx context.Context, conn driver.Conn, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("back up: %s is there already; name a folder that is not", dir)
	}
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	if err := conn.Exec(ctx, fmt.Sprintf("BACKUP DATABASE %s AS %s TO File(%s)", identifier(database), backedUp, quoted(dir))); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

// Restore fills a store that has no tables yet from a backup.
func Restore(ctx context.Context, conn driver.Conn, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "metadata")); err != nil {
		return fmt.Errorf("restore: %s is no backup: %w", dir, err)
	}
	database, err := currentDatabase(ctx, conn)
	if err != nil {
		return err
	}
	var tables uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = currentDatabase()").Scan(&tables); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if tables > 0 {
		return errors.New("restore: the store has tables already; name a new one with --store")
	}
	if err := conn.Exec(ctx, fmt.Sprintf("RESTORE DATABASE %s AS %s FROM File(%s)", backedUp, identifier(database), quoted(dir))); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

func currentDatabase(ctx context.Context, conn driver.Conn) (string, error) {
	var name string
	if err := conn.QueryRow(ctx, "SELECT currentDatabase()").Scan(&name); err != nil {
		return "", fmt.Errorf("read the store's database: %w", err)
	}
	return name, nil
}

var escaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "`", "\\`")

func identifier(name string) string { return "`" + escaper.Replace(name) + "`" }

func quoted(text string) string { return "'" + escaper.Replace(text) + "'" }
