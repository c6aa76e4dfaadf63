package schema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata/scripts. -rewrite records their outputs. Each line of an input is
//
//	address  the address of a store, of which what connects to it is shown
//	show     an address, of which what messages may have is shown
//	cap      a cap, of which the JSON is shown
//	window   a conversion window, which is shown as people write and read it
//	time     a time, which is shown in UTC
//	id       a kind of name and a key or an id, of which the id on website 7 is shown
//	files    the files of a store, of which the faults are shown
func TestScripts(t *testing.T) {
	scripts.RunLines(t, func(t *testing.T, d *datadriven.TestData, line string) string {
		t.Helper()
		shown, err := showLine(t, d.Cmd, line)
		if err != nil {
			shown = strings.ReplaceAll(err.Error(), "\n", "\n  ")
		}
		check.That(t, !strings.Contains(shown, "secret"), "%s: the password is shown", d.Pos)
		return shown
	})
}

func showLine(t *testing.T, command, line string) (string, error) {
	t.Helper()
	if line == `""` { // the empty line, which a script would not keep
		line = ""
	}
	switch command {
	case "address":
		home, err := schema.ParseAddress(line, none)
		if err != nil || home.Options == nil {
			return "folder " + home.Dir, err
		}
		o := home.Options
		return fmt.Sprintf("%s %q, user %q, database %q, cluster %q, TLS %v, settings %v, dial timeout %v",
			o.Protocol, o.Addr, o.Auth.Username, o.Auth.Database, home.Cluster, o.TLS != nil, o.Settings,
			o.DialTimeout), nil
	case "show":
		return schema.ShowAddress(line), nil
	case "cap":
		parsed, err := schema.ParseCap(strings.ReplaceAll(line, "_", " "))
		if err != nil {
			return "", err
		}
		text := must.Get(json.Marshal(parsed))(t)
		var again schema.Cap
		if must.OK(t, json.Unmarshal(text, &again)); again != parsed {
			t.Errorf("%s is %+v, in JSON %s and then %+v", line, parsed, text, again)
		}
		return string(text), nil
	case "window":
		w, err := schema.ParseConversionWindow(line)
		return fmt.Sprintf("%s %q", w, w.InWords()), err
	case "time":
		at, err := schema.ParseTime(line)
		return fmt.Sprint(at.UTC()), err
	case "id":
		var kind schema.NameKind
		var key string
		must.Get(fmt.Sscanf(line, "%s %q", &kind, &key))(t)
		id, _, err := schema.IDOf(7, kind, key)
		return fmt.Sprint(id), err
	case "files":
		dir := t.TempDir()
		for file := range strings.FieldsSeq(line) {
			path := filepath.Join(dir, file)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must.OK(t, os.WriteFile(path, []byte("ATTACH "), 0o600))
		}
		if err := schema.CheckFiles(dir); err != nil {
			return strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir+"/", ""), "\n", "\n  "), nil
		}
		return "ok", nil
	}
	t.Fatalf("no such command: %s", command)
	return "", nil
}
