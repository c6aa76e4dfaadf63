package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
)

func TestShareLinks(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	owned := h.store.Catalogue.Snapshot().AllAccounts()[0]
	campaign := catalogue.ByID(owned.Campaigns)[0]
	link := regexp.MustCompile(`^(\S+)/\?campaign=\d+#(?:\S*&)?share=(lh_[\w-]{43})\S*\n$`)
	number := strconv.FormatInt(campaign.ID, 10)
	args := func(more ...string) []string { return append([]string{"share", "campaign", number}, more...) }

	code, out, said := h.run(args("--name", "for the board")...)
	if found := link.FindStringSubmatch(out); code != exitOK || found == nil || found[1] != "http://127.0.0.1:8080" || !strings.Contains(said, "--public-url") || !strings.Contains(said, "'lifthouse token revoke 1' revokes it") {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
	code, out, said = h.run(args("--expires", "7d", "--public-url", "https://lift.example.com")...)
	found := link.FindStringSubmatch(out)
	if code != exitOK || found == nil || found[1] != "https://lift.example.com" || strings.Contains(said, "--public-url") {
		t.Fatalf("exit %d, %q, %q", code, out, said)
	}
	h.token = found[2]
	var shown struct{ Name string }
	if h.get("/v1/campaigns/"+number, &shown); shown.Name != campaign.Name {
		t.Errorf("the link shows %q, want %q", shown.Name, campaign.Name)
	}
	if list := h.must("token", "list"); !regexp.MustCompile(`1 +for the board +share +campaign ` + number + ` .*\n2 +share +campaign `).MatchString(list) {
		t.Errorf("the list:\n%s", list)
	}
	h.must("token", "revoke", "2")
	if tokens := h.store.Catalogue.Snapshot().AccountTokens(owned.ID); len(tokens) != 1 {
		t.Errorf("after the revocation: %+v", tokens)
	}
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no subject", []string{"share"}, exitUsage, "share: must be followed by campaign ID, widget ID or experiment WIDGET/ID"},
		{"another kind", []string{"share", "goal", "3"}, exitUsage, `share: "goal": must be campaign, widget or experiment`},
		{"no experiment", []string{"share", "experiment", "7"}, exitUsage, `share: "7": must be the id of a experiment`},
		{"absent", []string{"share", "campaign", "987"}, exitFailed, `share: campaignId: "campaign 987": must name one campaign`},
		{"too long", args("--expires", "366d"), exitUsage, `--expires "366d": must be a duration such as 60s or 30d, from 1s to 8760h`},
		{"address", args("--public-url", "lift.example.com"), exitUsage, `public-url "lift.example.com": must be http:// or https://`},
		{"scope", []string{"token", "create", "--scope", "share"}, exitFailed, `token: scopes[0]: "share": must be one of read, write, admin, ingest`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if code, out, said := h.run(test.args...); code != test.code || !strings.Contains(said, test.says) {
				t.Errorf("exit %d, %s%s\nwant %d, %s", code, out, said, test.code, test.says)
			}
		})
	}
	if out := h.must("token", "create", "--scope", "admin", "--expires", "30d"); !strings.HasPrefix(out, "lh_") {
		t.Errorf("a token of the scope admin: %q", out)
	}
}
