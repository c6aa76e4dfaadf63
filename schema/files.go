package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// CheckFiles returns an error if files of the embedded store in dir cannot be
// read. It runs before the engine opens the store, because the engine reports
// such files less clearly. A missing or empty folder is a new store.
func CheckFiles(dir string) error { return errors.Join(checkDefinitions(dir), checkParts(dir)) }

// EmbeddedDatabase is the database of an embedded store. The engine's database
// "default" treats the names of missing tables as files.
const EmbeddedDatabase = "lifthouse"

// metadataDir contains the definition of the database, DATABASE.sql, and the
// definitions of its tables, DATABASE/TABLE.sql.
const metadataDir = "metadata"

// checkDefinitions reads the definitions of the database and its tables.
func checkDefinitions(dir string) error {
	var paths []string
	for _, pattern := range []string{filepath.Join(dir, metadataDir, EmbeddedDatabase+".sql"), filepath.Join(dir, metadataDir, EmbeddedDatabase, "*.sql")} {
		there, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		paths = append(paths, there...)
	}
	slices.Sort(paths)
	var wrong []error
	for _, path := range slices.Compact(paths) {
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			wrong = append(wrong, unreadable("the definition of a table", path, err))
		case !bytes.HasPrefix(text, []byte("ATTACH ")):
			wrong = append(wrong, fmt.Errorf("the definition of a table, %s, is damaged: restore a backup (lifthouse restore)", path))
		}
	}
	return errors.Join(wrong...)
}

// checkParts reads the folder of every part.
func checkParts(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, "store", "*", "*", "*_*_*_*"))
	if err != nil {
		return err
	}
	var wrong []error
	for _, part := range parts {
		if _, err := os.ReadDir(part); err != nil {
			wrong = append(wrong, unreadable("a part of a table", part, err))
		}
	}
	return errors.Join(wrong...)
}

func unreadable(what, path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s, %s, cannot be read (%w): give the user who runs lifthouse access to it", what, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s, %s, is missing: put it back, or restore a backup (lifthouse restore)", what, path)
	}
	return fmt.Errorf("%s, %s, cannot be read (%w): restore a backup (lifthouse restore)", what, path, err)
}
