package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// libraryVariable names the environment variable with the library's path.
const libraryVariable = "LIFTHOUSE_LIBCHDB"

// LibraryMissingError means that the engine's library was not found.
type LibraryMissingError struct {
	Looked []string // the searched paths, in order
}

func (e *LibraryMissingError) Error() string {
	return fmt.Sprintf("the ClickHouse library libchdb was not found: run `npm ci` in the checkout or `make engine`, or set %s to the path of the library (searched: %s)",
		libraryVariable, strings.Join(e.Looked, ", "))
}

// LocateLibrary returns the path of the library. It uses the first of the environment variable,
// the folder of the executable, and the npm package. The npm package is searched in the
// node_modules folders of the ancestors of the executable and of the working directory. A path
// from the environment variable must exist, because no other place is searched then.
func LocateLibrary() (string, error) {
	if named := os.Getenv(libraryVariable); named != "" {
		if !isFile(named) {
			return "", &LibraryMissingError{Looked: []string{named}}
		}
		return filepath.Abs(named)
	}
	var looked []string
	for _, place := range searchPaths() {
		if isFile(place) {
			return place, nil
		}
		looked = append(looked, place)
	}
	return "", &LibraryMissingError{Looked: looked}
}

// searchPaths returns the paths to search if the caller names no path.
func searchPaths() []string {
	names := []string{"libchdb.so"}
	if runtime.GOOS == "darwin" {
		names = append(names, "libchdb.dylib")
	}
	var starts, list []string
	if executable, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		starts = append(starts, filepath.Dir(executable))
		for _, name := range names {
			list = append(list, filepath.Join(filepath.Dir(executable), name))
		}
	}
	if working, err := os.Getwd(); err == nil {
		starts = append(starts, working)
	}
	seen := make(map[string]bool)
	for _, start := range starts {
		for dir := start; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			for _, name := range names {
				list = append(list, filepath.Join(dir, "node_modules", "@chdb", npmPackage(), name))
			}
		}
	}
	return list
}

// npmPackage returns the name of the library's npm package on this platform.
func npmPackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	if runtime.GOOS == "linux" {
		return "lib-linux-" + arch + "-gnu"
	}
	return "lib-" + runtime.GOOS + "-" + arch
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
