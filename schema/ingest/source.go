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

// standardInput is the path of Options.Input.
const standardInput = "-"

// checkPath returns an error for paths of a process's open files. A server that
// executes a forwarded command would open its own files instead. Shared memory,
// /dev/shm, is allowed.
func checkPath(path string) error {
	path = filepath.Clean(path)
	if strings.HasPrefix(path, "/dev/shm/") {
		return nil
	}
	for _, root := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(path, root) {
			return fmt.Errorf("%s: paths below %s belong to the process that executes the command: use a file, or - for standard input", path, root)
		}
	}
	return nil
}

// CreateFile creates or truncates a file. The path must not be below /dev or /proc.
func CreateFile(path string) (*os.File, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return os.Create(path)
}

// OpenFile opens a file. The path must not be a directory, nor below /dev or /proc.
func OpenFile(path string) (*os.File, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: must be a file", path)
	}
	return os.Open(path)
}

// openSource opens the file to import. The file must be read twice, so for anything
// but a regular file openSource returns a copy.
func (o *Options) openSource(ctx context.Context, path string) (*os.File, error) {
	if path == standardInput {
		if o.Input == nil {
			return nil, errors.New("there is no standard input")
		}
		return spoolStream(ctx, func() (io.ReadCloser, error) { return io.NopCloser(o.Input), nil })
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
		return OpenFile(path)
	}
	return spoolStream(ctx, func() (io.ReadCloser, error) { return OpenFile(path) })
}

// spoolStream copies a stream into an unlinked temporary file. Opening or reading a
// pipe may block forever. So spoolStream returns when the context ends, even if the
// copying goroutine is still blocked.
func spoolStream(ctx context.Context, open func() (io.ReadCloser, error)) (*os.File, error) {
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

// contentDigest returns a hash of the decompressed content of a file.
func contentDigest(ctx context.Context, file io.Reader) (uint64, error) {
	plain, err := decompressReader(&contextReader{ctx: ctx, r: file})
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
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"):
		return formatCSV
	case strings.HasSuffix(name, ".parquet"):
		return formatParquet
	}
	return formatNDJSON
}

// contextReader returns an error after its context has ended, and counts the
// bytes that it reads.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	n   atomic.Int64
}

// Read implements io.Reader.
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
