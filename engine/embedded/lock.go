package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// LockedError means that another process has the folder open.
type LockedError struct {
	Dir string
	PID int // 0 if the lock file contains no process id
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: stop that process, or open another folder; two processes can share data only through a ClickHouse server", e.Dir, holder)
}

// lockDir locks dir for this process. The lock is released when the file is
// closed, and when the process ends for any reason.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lifthouse.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		if err = writePID(f); err == nil {
			return f, nil
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &LockedError{Dir: dir, PID: readPID(f)}
	} else {
		err = fmt.Errorf("embedded: lock %s: %w", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
