package embedded

import (
	"fmt"
	"syscall"
)

// leastOpenFiles is how many files a process must be allowed to have open. A
// merge opens the files of every column of every part that it merges, some 70
// each: a few merges of ten parts beside some reports are 3,000. With 500, a
// store of eight million events was seen to work, with 256 not to start.
const leastOpenFiles = 4096

// OpenFilesError says that too few files may be open at once.
type OpenFilesError struct{ Limit, Need uint64 }

// Error says how to raise the limit.
func (e *OpenFilesError) Error() string {
	return fmt.Sprintf("an embedded store needs %d open files, and this process may have %d: raise the limit (ulimit -n %[1]d; systemd: LimitNOFILE=%[1]d; Docker: --ulimit nofile=%[1]d)", e.Need, e.Limit)
}

// checkOpenFiles looks at the limit, which the Go runtime has raised to what
// the system allows.
func checkOpenFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("embedded: read the limit of open files: %w", err)
	}
	if limit.Cur < leastOpenFiles {
		return &OpenFilesError{limit.Cur, leastOpenFiles}
	}
	return nil
}
