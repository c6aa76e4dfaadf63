package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/secrets"
)

const secret = "a secret of tests"

func TestFilesThatAreNotRead(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	must.OK(t, os.WriteFile(outside, []byte(secret), 0o600))
	for name, text := range map[string]string{
		"empty": "", "blank": strings.Repeat(" ", 64), "short": "fifteen bytes..",
		"long": strings.Repeat("x", secrets.MaxSize+1),
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must.OK(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must.OK(t, os.Symlink(outside, filepath.Join(dir, "link")))
	must.OK(t, os.Symlink("/dev/zero", filepath.Join(dir, "device")))
	folder := secrets.NewFolder(dir)
	for path, want := range map[string]string{
		outside:                             "must be a file in the folder " + dir,
		"/dev/zero":                         "must be a file in the folder",
		dir + "/../" + "x":                  "must be a file in the folder",
		"relative":                          "must be a file in the folder",
		dir + "/absent":                     "no such file",
		dir + "/empty":                      "must be a regular file with a secret of 16 to 4096 bytes",
		dir + "/blank":                      "must be a regular file with a secret of 16 to 4096 bytes",
		dir + "/short":                      "must be a regular file with a secret of 16 to 4096 bytes",
		dir + "/long":                       "must be a regular file with a secret of 16 to 4096 bytes",
		dir + "/folder":                     "must be a regular file",
		dir:                                 "must be a regular file",
		dir + "/pipe":                       "must be a regular file",
		dir + "/link":                       "path escapes from parent",
		dir + "/device":                     "path escapes from parent",
		filepath.Join(dir, "empty", "../x"): "no such file",
	} {
		_, err := folder.ReadSecret(path)
		must.That(t, err != nil, "%s: %v, want %s", path, err, want)
		check.Contains(t, err.Error(), want, "%s: %v, want %s", path, err, want)
	}
}

// TestAFileIsReadWhenItChanges replaces a secret as Kubernetes does, by links within the folder.
func TestAFileIsReadWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	replace := func(version, text string) {
		must.OK(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		must.OK(t, os.WriteFile(filepath.Join(dir, version, "key"), []byte(text), 0o600))
		must.OK(t, os.Symlink(version, filepath.Join(dir, "next")))
		must.OK(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")))
	}
	replace("1", secret+"\n")
	must.OK(t, os.Symlink("current/key", filepath.Join(dir, "key")))
	folder, path := secrets.NewFolder(dir), filepath.Join(dir, "key")
	check.Equal(t, string(must.Get(folder.ReadSecret(path))(t)), secret, "first")
	check.Equal(t, string(must.Get(folder.ReadSecret(path))(t)), secret, "unchanged")
	replace("2", secret+"!\n")
	check.Equal(t, string(must.Get(folder.ReadSecret(path))(t)), secret+"!", "replaced")
	must.OK(t, os.WriteFile(path, []byte(secret+"?\n"), 0o600))
	must.OK(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	check.Equal(t, string(must.Get(folder.ReadSecret(path))(t)), secret+"?", "written in its place")
	must.OK(t, os.Remove(path))
	_, err := folder.ReadSecret(path)
	check.That(t, err != nil, "a removed file still has a secret")
}
