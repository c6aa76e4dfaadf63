// Package secrets reads secrets from files in a folder that the operator of the server has configured.
package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// DefaultFolder is where packages and the Helm chart keep files with secrets.
const DefaultFolder = "/etc/lifthouse"

// The minimum and maximum size of a secret in bytes. A file has the same limits.
const (
	MinSize = 16
	MaxSize = 4096
)

// Folder has files with secrets. Other files of the server are not read, whatever path the catalogue names.
type Folder struct {
	path string

	mu   sync.Mutex
	read map[string]file // by path
}

// file is a file that was read.
type file struct {
	info   os.FileInfo
	secret []byte
}

// NewFolder returns a folder with an absolute path, or one without files if the path is empty.
func NewFolder(path string) *Folder { return &Folder{path: path, read: map[string]file{}} }

// ReadSecret returns the secret in a file: its content without white space at its ends. It reads the file when it has
// changed.
func (f *Folder) ReadSecret(path string) ([]byte, error) {
	if f == nil || f.path == "" {
		return nil, errors.New("the setting secret-folder is empty: the catalogue may name no file")
	}
	name, err := filepath.Rel(f.path, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s: must be a file in the folder %s (setting secret-folder)", path, f.path)
	}
	root, err := os.OpenRoot(f.path) // links do not lead out of it
	if err != nil {
		return nil, fmt.Errorf("setting secret-folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name)
	if err != nil {
		return nil, withPath(path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known, has := f.read[path]
	isSame := has && os.SameFile(known.info, info)
	if isSame && known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size() {
		return known.secret, nil
	}
	// A pipe that has no writer would block without the flag.
	opened, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withPath(path, err)
	}
	defer func() { _ = opened.Close() }()
	read, err := readFile(opened)
	if err != nil {
		return nil, withPath(path, err)
	}
	f.read[path] = read
	return read.secret, nil
}

// withPath returns an error with the whole path of its file.
func withPath(path string, err error) error {
	if of, is := errors.AsType[*os.PathError](err); is {
		err = of.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Fault returns what is allowed instead of a secret, or an empty string if the secret is valid.
func Fault(secret string) string {
	if len(secret) < MinSize || len(secret) > MaxSize || strings.TrimSpace(secret) != secret {
		return fmt.Sprintf("must have %d to %d bytes, without white space at its ends", MinSize, MaxSize)
	}
	return ""
}

func readFile(opened *os.File) (read file, err error) {
	read.info, err = opened.Stat()
	if err != nil {
		return read, err
	}
	if !read.info.Mode().IsRegular() {
		return read, fmt.Errorf("must be a regular file of %d to %d bytes", MinSize, MaxSize)
	}
	text, err := io.ReadAll(io.LimitReader(opened, MaxSize+1))
	if err != nil {
		return read, err
	}
	read.secret = bytes.TrimSpace(text)
	if len(text) > MaxSize || len(read.secret) < MinSize {
		return read, fmt.Errorf("must be a regular file with a secret of %d to %d bytes", MinSize, MaxSize)
	}
	return read, nil
}
