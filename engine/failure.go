package engine

import "context"

// StoreFailure converts an error of the driver that occurred outside the
// engine, such as in the catalogue, to a StoreError. It returns nil for nil.
func StoreFailure(ctx context.Context, err error) error { return storeError(ctx, err) }
