package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

const (
	tenants = 3 // accounts
	sites   = 5 // websites of each
)

// tenant is a token, and the websites that it may read.
type tenant struct {
	token    string
	websites map[int]bool
}

// markOf is a text that only what belongs to a website has.
func markOf(website int) string { return fmt.Sprintf("mark%dx", website) }

// newTenants serves several accounts, each with several websites. The ids of campaigns and widgets are the same in all
// accounts. Names, domains, notes and devices have the mark of the website.
func newTenants(t *testing.T) (s *server, all []tenant) {
	t.Helper()
	s = newEmptyServer(t)
	var file strings.Builder
	file.WriteString("accounts:\n")
	var events []schema.Event
	for account := range tenants {
		fmt.Fprintf(&file, "  - id: %d\n    name: Account %d\n    websites:\n", account+1, account+1)
		for i := range sites {
			website := account*sites + i + 1
			mark := markOf(website)
			fmt.Fprintf(&file, `      - id: %[1]d
        domain: %[2]s.example.com
        goals: [{id: %[3]d, name: Goal %[2]s}]
        campaigns:
          - id: %[3]d
            name: Campaign %[2]s
            type: experiment
            hypothesis: Because %[2]s
            owner: %[2]s
            primaryGoalId: %[3]d
            controlShare: 50
            active: true
            variations: [{id: 1, name: New %[2]s, share: 50}]
        widgets:
          - id: %[3]d
            name: Widget %[2]s
            type: popup
            active: true
            primaryGoalId: %[3]d
            experiments:
              - id: 1
                name: Test %[2]s
                controlShare: 50
                active: true
                variations: [{id: 1, name: Other %[2]s, share: 50}]
`, website, mark, i+1)
			for visitor := range 8 {
				e := at(visitor, fmt.Sprint("v", visitor), int64(visitor%2), schema.KindView, 0)
				e.WebsiteID, e.SubjectID, e.Device = int64(website), int64(i+1), mark
				events = append(events, e)
				e.Subject, e.ExperimentID = schema.SubjectWidget, 1
				events = append(events, e)
			}
		}
	}
	s.apply(file.String())
	s.fold(events...)
	for account := range tenants {
		whole := tenant{s.newToken(int64(account+1), 0, catalogue.ScopeWrite), map[int]bool{}}
		for i := range sites {
			website := account*sites + i + 1
			whole.websites[website] = true
			all = append(all, tenant{
				s.newToken(int64(account+1), int64(website), catalogue.ScopeRead), map[int]bool{website: true},
			})
			s.Request(http.MethodPut, fmt.Sprintf("/v1/campaigns/%d/outcome", i+1),
				fmt.Sprintf(`{"outcome":"excluded","note":"Note %s"}`, markOf(website))).
				Token(whole.token).Type("application/json").Send().RequireStatus(http.StatusOK)
		}
		all = append(all, whole)
	}
	return s, all
}

// TestTenants sends random requests for all results and tables with tokens of accounts and of websites. No answer has
// anything of another website, and each has all of its own.
func TestTenants(t *testing.T) {
	s, all := newTenants(t)
	r := rand.New(rand.NewPCG(79, 3)) //nolint:gosec // a test
	for range tier.Of(100, 3_000) {
		as := all[r.IntN(len(all))]
		asked := map[int]bool{}
		parameters := ""
		if r.IntN(2) == 0 {
			website := 1 + r.IntN(tenants*sites)
			asked[website] = true
			parameters = fmt.Sprintf("?websiteId=%d", website)
			if !as.websites[website] {
				for _, path := range []string{bulkPath, tablesPath + "/results.csv"} {
					refused := s.Get(path + parameters).Token(as.token).Send().RequireStatus(http.StatusNotFound)
					check.That(t, !strings.Contains(refused.Text, "mark"), "%s%s: %s", path, parameters, refused.Text)
				}
				continue
			}
		} else {
			asked = as.websites
		}
		table := &tables.All[r.IntN(len(tables.All))]
		format := tables.Formats[r.IntN(len(tables.Formats))]
		path := fmt.Sprintf("%s/%s.%s%s", tablesPath, table.Name, format, parameters)
		if r.IntN(4) == 0 {
			path = bulkPath + parameters
		}
		response := s.Get(path).Token(as.token).Send().RequireStatus(http.StatusOK)
		text := response.Text
		if strings.Contains(path, ".parquet") {
			text = fmt.Sprint(cellsOfParquet(t, text, table.Columns))
		}
		shown := text + fmt.Sprint(response.Header)
		for website := range tenants * sites {
			has := strings.Contains(shown, markOf(website+1))
			check.Equal(t, has, asked[website+1], fmt.Sprintf("%s shows website %d to %v", path, website+1,
				as.websites))
		}
		if total := response.Header.Get("X-Total-Count"); total != "" {
			check.Equal(t, total, fmt.Sprint(2*len(asked)), path)
		}
	}
}
