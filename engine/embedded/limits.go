package embedded

import (
	"fmt"
	"syscall"
)

// leastOpenFiles is the minimum limit of open files for a process. A merge
// opens the files of every column of every part that it merges, some 70 for
// each part. A few merges of ten parts, together with some reports, need 3,000.
// In a test, a store of eight million events worked with 500 and did not start
// with 256.
const leastOpenFiles = 4096

// OpenFilesError means that the limit of open files is too low.
type OpenFilesError struct{ Limit, Need uint64 }

// Error returns a message with the limit and the commands to raise it.
func (e *OpenFilesError) Error() string {
	return fmt.Sprintf("an embedded store needs %d open files, and this process may have %d: raise the limit (ulimit -n %[1]d; systemd: LimitNOFILE=%[1]d; Docker: --ulimit nofile=%[1]d)", e.Need, e.Limit)
}

// checkOpenFiles returns an *OpenFilesError if the limit is too low. The Go
// runtime has already raised the limit to the maximum that the system allows.
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
