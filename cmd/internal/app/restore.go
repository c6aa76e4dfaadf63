package app

import (
	"context"
	"errors"
	"fmt"

	"lifthouse/engine/embedded"
	"lifthouse/schema"
)

// RestoreBackup creates an embedded store in a directory from a backup.
func RestoreBackup(ctx context.Context, dir, from string) (err error) {
	e, err := embedded.Open(ctx, dir, embedded.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	options, err := EmbeddedOptions(ctx, e)
	if err != nil {
		return err
	}
	conn, err := schema.OpenConnection(ctx, schema.Address{Dir: dir, Options: options})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := schema.RestoreBackup(ctx, conn, from); err != nil {
		return err
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		return fmt.Errorf("migrate the restored tables: %w", err)
	}
	return nil
}
