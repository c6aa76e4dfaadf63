package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// mark is a file that marks a demo store.
const mark = "lifthouse.demo"

// IsClaimed reports whether a directory is a demo store.
func IsClaimed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, mark))
	return err == nil
}

// ClaimDirectory marks a new directory as a demo store. It returns an error if the
// directory has other content.
func ClaimDirectory(dir string) error {
	if IsClaimed(dir) {
		return nil
	}
	if found, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	} else if len(found) > 0 {
		return fmt.Errorf("%s is not a demo store: name an empty directory with --store, or serve this store with lifthouse serve", dir)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mark), nil, 0o600)
}
