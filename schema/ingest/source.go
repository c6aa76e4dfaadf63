package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// standardInput is the path that means Options.Input.
const standardInput = "-"

// ofProcess refuses the paths that name open files of a process: a server
// that carries out another's command would take its own. Files in shared
// memory are files like others.
func ofProcess(path string) error {
	path = filepath.Clean(path)
	if strings.HasPrefix(path, "/dev/shm/") {
		return nil
	}
	for _, root := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(path, root) {
			return fmt.Errorf("%s: a path below %s is another file in the process that holds the store; want a file, or - for standard input", path, root)
		}
	}
	return nil
}

// Create makes or empties a file of the user who gives the command.
func Create(path string) (*os.File, error) {
	if err := ofProcess(path); err != nil {
		return nil, err
	}
	return os.Create(path)
}

// Open opens a file of the user who gives the command.
func Open(path string) (*os.File, error) {
	if err := ofProcess(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory; want a file", path)
	}
	return os.Open(path)
}

// openSource opens what is imported. It can be read twice: of what is no
// regular file there is a copy.
func (o *Options) openSource(ctx context.Context, path string) (*os.File, error) {
	if path == standardInput {
		if o.Input == nil {
			return nil, errors.New("there is no standard input")
		}
		return spool(ctx, func() (io.ReadCloser, error) { return io.NopCloser(o.Input), nil })
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
		return Open(path)
	}
	return spool(ctx, func() (io.ReadCloser, error) { return Open(path) })
}

// spool copies a stream into a file without a name, which is gone when it is
// closed. Opening and reading a pipe may wait for ever, and then the context
// ends the call, though not the wait.
func spool(ctx context.Context, open func() (io.ReadCloser, error)) (*os.File, error) {
	file, err := os.CreateTemp("", "lifthouse-import-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	copied := make(chan error, 1)
	go func() {
		in, err := open()
		if err == nil {
			_, err = io.Copy(file, &contextReader{ctx: ctx, r: in})
			_ = in.Close()
		}
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// contentDigest identifies the content of a file, without compression.
func contentDigest(ctx context.Context, file io.Reader) (uint64, error) {
	plain, err := decompress(&contextReader{ctx: ctx, r: file})
	if err != nil {
		return 0, err
	}
	hash := xxhash.New()
	_, err = io.Copy(hash, plain)
	return hash.Sum64(), err
}

func formatOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch {
	case strings.HasSuffix(name, ".csv"):
		return formatCSV
	case strings.HasSuffix(name, ".parquet"):
		return formatParquet
	}
	return formatNDJSON
}

// contextReader ends when its context does, and counts what it reads.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	n   atomic.Int64
}

// Read refuses to begin once the context has ended.
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
