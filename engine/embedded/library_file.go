package embedded

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// checkLibrary looks whether the file has all that its header names: to use a
// library that was cut off, as by a download, ends the process with a signal.
func checkLibrary(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if runtime.GOOS != "linux" {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	library, err := elf.NewFile(file)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is no library, or cut off: %w", err)
	}
	if err != nil {
		return err
	}
	for _, segment := range library.Progs {
		if end := segment.Off + segment.Filesz; end > uint64(info.Size()) { //nolint:gosec // of a file
			return fmt.Errorf("it is cut off: %d of at least %d bytes are there", info.Size(), end)
		}
	}
	return nil
}
