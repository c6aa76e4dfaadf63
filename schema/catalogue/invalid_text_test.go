package catalogue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
)

// TestInvalidTextIsRefused applies files with bytes that are not UTF-8.
func TestInvalidTextIsRefused(t *testing.T) {
	c := open(t)
	valid := "accounts:\n- id: 1\n  name: \"Été \uFFFD \U00100080\"\n  websites:\n  - id: 1\n    domain: example.com\n"
	mustApply(t, c, valid+"    goals: [{id: 1, name: \"\\ufffd\"}, {id: 2, name: '\uFFFD'}] # caf\xe9\n")
	if name := c.Snapshot().AccountResources(1).Name; name != "Été \uFFFD \U00100080" {
		t.Errorf("the name is %q", name)
	}
	for _, test := range []struct{ goals, want string }{
		{"    - {id: 1, name: caf\xe9}\n", `line 8: accounts[0].websites[0].goals[0].name: "caf\xe9": must be UTF-8: save the file as UTF-8`},
		{"    - {id: 1, name: 'caf\xe9 \xff'}\n", `line 8: accounts[0].websites[0].goals[0].name: "caf\xe9 \xff": must be UTF-8`},
		{"    - {id: 1, name: \"\xed\xa0\x80\"}\n", `line 8: accounts[0].websites[0].goals[0].name: "\xed\xa0\x80": must be UTF-8`},
		{"    - id: 1\n      name: |\n        one\n        tw\xf6\n", `line 9: accounts[0].websites[0].goals[0].name: "one\ntw\xf6": must be UTF-8`},
		{"    - {id: 1\xe9, name: x}\n", `goals[0].id: "1\xe9": must be UTF-8`},
		{"    - {id: 1, n\xe4me: x}\n", `line 8: accounts[0].websites[0].goals[0].n\xe4me: unknown field "n\xe4me"`},
	} {
		_, err := apply(t, c, valid+"    goals:\n"+test.goals)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v; want %s", test.goals, err, test.want)
		}
	}
	file, err := catalogue.ReadYAML(strings.NewReader(valid + "    goals:\n    - {id: 1, name: \xe9}\n    - {id: -1, name: x}\n    targets: [{id: 1, name: \"\\xe9\", createDate: \"\xe0\"}]\n"))
	var faults catalogue.Faults
	if !errors.As(err, &faults) || len(faults) != 2 {
		t.Errorf("Read: %v", err)
	}
	want := `line 8: accounts[0].websites[0].goals[0].name: "\xe9": must be UTF-8: save the file as UTF-8
line 9: accounts[0].websites[0].goals[1].id: "-1": must be an integer from 1
line 10: accounts[0].websites[0].targets[0].createDate: "\xe0": must be UTF-8: save the file as UTF-8`
	if _, err := c.ApplyFile(t.Context(), file, false); err == nil || err.Error() != want {
		t.Errorf("not all faults at once: %v, want\n%s", err, want)
	}
	for _, text := range []string{"\xff\xfea\x00:\x00 \x00[\x00", "accounts: [\xe9\n"} {
		if _, err := catalogue.ReadYAML(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if name := fmt.Sprint(c.Snapshot().AccountResources(1).Goals); strings.Contains(name, "caf") {
		t.Errorf("stored: %s", name)
	}
}
