package embedded

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// checkLibrary checks that the file contains all segments of its header. A signal kills a
// process that uses a truncated library, for example after an interrupted download.
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
		if end := segment.Off + segment.Filesz; end > uint64(info.Size()) { //nolint:gosec // a file size is not negative
			return fmt.Errorf("it is cut off: it has %d of at least %d bytes", info.Size(), end)
		}
	}
	return nil
}
