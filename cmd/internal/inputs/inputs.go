// Package inputs keeps a command from overwriting its own input files.
package inputs

import (
	"fmt"
	"io/fs"
	"os"
)

// Files are the input files of a command.
type Files []file

type file struct {
	name string
	info fs.FileInfo
}

// AddPath adds the file at a path. It ignores a missing file, because the command reports that
// when it opens the file. name is the name on the command line, for messages.
func (f *Files) AddPath(name, path string) {
	info, err := os.Stat(path)
	f.addInput(name, info, err)
}

// AddOpen adds an open file, such as standard input.
func (f *Files) AddOpen(name string, open *os.File) {
	info, err := open.Stat()
	f.addInput(name, info, err)
}

// addInput adds a file. It ignores devices and pipes, because a command cannot overwrite
// them.
func (f *Files) addInput(name string, info fs.FileInfo, err error) {
	if err == nil && (info.Mode().IsRegular() || info.IsDir()) {
		*f = append(*f, file{name, info})
	}
}

// CheckOutput returns an error if the output at a path is one of the input files, even
// through a link or another path. flag is the flag that names the output.
func (f Files) CheckOutput(flag, name, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // a new file, or one that cannot be opened
	}
	for _, input := range f {
		if os.SameFile(info, input.info) {
			return fmt.Errorf("%s %q: is the input %q, which would be overwritten: must be another file", flag, name, input.name)
		}
	}
	return nil
}
