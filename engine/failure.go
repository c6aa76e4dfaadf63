package engine

import "context"

// StoreFailure makes the StoreError of what the driver said to somebody else
// than the engine, such as the catalogue; nil of nil.
func StoreFailure(ctx context.Context, err error) error { return storeError(ctx, err) }
