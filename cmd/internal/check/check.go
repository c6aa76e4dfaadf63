// Package check looks for faults in a store and its catalogue.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/facts"
	"lifthouse/engine/source"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Report prints findings, one line each.
type Report struct {
	To     io.Writer
	Deep   bool // read every part, and compare the facts of all visitors with their events
	Failed bool // whether there was a fault
}

// OK prints that an aspect was checked and is in order.
func (r *Report) OK(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.To, "%-9s  ok       %s\n", aspect, fmt.Sprintf(format, args...))
}

// Note prints a piece of advice that is not a fault.
func (r *Report) Note(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.To, "%-9s  note     %s\n", aspect, fmt.Sprintf(format, args...))
}

// Fault prints a fault.
func (r *Report) Fault(aspect string, err error) {
	r.Failed = true
	_, _ = fmt.Fprintf(r.To, "%-9s  WRONG    %v\n", aspect, err)
}

// CheckStore checks an open store, without changing it.
func (r *Report) CheckStore(ctx context.Context, conn driver.Conn, address schema.Address) {
	if !r.checkTables(ctx, conn) {
		return
	}
	s, err := app.NewStore(ctx, conn, address, app.Options{Limits: source.DefaultLimits, UnreadFacts: true})
	if err != nil {
		r.Fault("catalogue", err)
	} else {
		r.checkContents(ctx, s.Catalogue, s.Facts)
	}
	if err := s.CloseReplicas(); err != nil {
		r.Fault("store", err)
	}
}

// CheckServedStore checks the store of this process.
func (r *Report) CheckServedStore(ctx context.Context, s *app.Store) {
	if !r.checkTables(ctx, s.Conn) {
		return
	}
	stored, err := catalogue.Open(ctx, s.Conn) // other programs may have changed it
	if err != nil {
		r.Fault("catalogue", err)
		return
	}
	r.checkContents(ctx, stored, s.Facts)
}

// checkTables checks the servers and tables. It returns false if nothing else can be checked.
func (r *Report) checkTables(ctx context.Context, conn driver.Conn) bool {
	r.OK("store", "answers")
	r.checkServers(ctx, conn)
	if !r.checkSchema(ctx, conn) {
		return false
	}
	r.checkDetached(ctx, conn)
	if r.Deep {
		r.checkData(ctx, conn)
	}
	return true
}

// checkContents checks the catalogue and the facts.
func (r *Report) checkContents(ctx context.Context, stored *catalogue.Catalogue, shards facts.Shards) {
	r.checkCatalogue(stored.Snapshot())
	for i, shard := range shards {
		r.checkFacts(ctx, shard, i+1, len(shards))
	}
}

// checkSchema checks the form and the version of the tables. It returns false if nothing else can be checked.
func (r *Report) checkSchema(ctx context.Context, conn driver.Conn) bool {
	if err := schema.CheckTableForm(ctx, conn); err != nil {
		r.Fault("schema", err)
		return false
	}
	pending, err := schema.PendingMigrations(ctx, conn)
	switch {
	case err != nil:
		r.Fault("schema", err)
		return false
	case len(pending) > 0:
		r.Note("schema", "pending migrations: %s; lifthouse migrate or lifthouse serve applies them",
			strings.Join(pending, ", "))
		return false
	}
	r.OK("schema", "is up to date")
	return true
}

// checkDetached names the parts that ClickHouse has set aside. Whether rows are lost with them, a deep check says.
func (r *Report) checkDetached(ctx context.Context, conn driver.Conn) {
	parts, err := schema.ReadDetachedParts(ctx, conn)
	if err != nil {
		r.Note("data", "%v", err)
	}
	for _, p := range parts {
		r.Note("data", "ClickHouse has set aside a part of %s (%s): %s; if --deep finds no lost events, delete it",
			p.Table, p.Reason, p.Path)
	}
}

// checkData checks the checksums of all parts.
func (r *Report) checkData(ctx context.Context, conn driver.Conn) {
	faults, err := schema.CheckData(ctx, conn)
	if err != nil {
		r.Fault("data", err)
		return
	}
	for _, fault := range faults {
		r.Fault("data", fmt.Errorf("%s; restore a backup (lifthouse restore)", fault))
	}
	if len(faults) == 0 {
		r.OK("data", "the checksums of all parts match")
	}
}

// checkCatalogue checks the definitions.
func (r *Report) checkCatalogue(s *catalogue.Snapshot) {
	if found, is := errors.AsType[faults.List](s.Validate()); is {
		for _, fault := range found {
			r.Fault("catalogue", faults.List{fault})
		}
		r.Note("catalogue", "lifthouse export writes the catalogue: correct the faults in that file and apply it")
	}
	accounts := s.AllAccounts()
	if len(accounts) == 0 {
		r.Note("catalogue",
			"is empty: declare accounts, websites, goals and campaigns with lifthouse apply -f catalog.yaml")
	}
	for _, a := range accounts {
		r.OK("catalogue", "account %d (%s): websites %d, goals %d, targets %d, campaigns %d, widgets %d",
			a.ID, a.Name, len(a.Websites), len(a.Goals), len(a.Targets), len(a.Campaigns), len(a.Widgets))
		if len(s.AccountTokens(a.ID)) == 0 {
			r.Note("catalogue", "account %d has no token: create one with lifthouse token create --account %d", a.ID,
				a.ID)
		}
	}
}

// checkFacts checks that the facts of a shard can be read. In a deep check, it also checks that they match the events.
func (r *Report) checkFacts(ctx context.Context, shard *facts.Refresher, number, shards int) {
	where := ""
	if shards > 1 {
		where = fmt.Sprintf("of shard %d ", number)
	}
	at, err := shard.OpenFacts(ctx)
	switch {
	case err != nil:
		r.Fault("facts", err)
		return
	case at.Through == 0:
		r.OK("facts", "%sare empty", where)
		return
	}
	r.OK("facts", "%sinclude the events accepted until %s", where, at.FoldedThrough().Format(time.RFC3339))
	if !r.Deep {
		return
	}
	visitors, faults, err := VerifyFacts(ctx, shard, func(float64) {})
	for _, fault := range append(faults, err) {
		if fault != nil {
			r.Fault("facts", fault)
		}
	}
	if err == nil && len(faults) == 0 {
		r.OK("facts", "%sof all %s are those of their events", where, wording.CountNoun(visitors, "visitor"))
	}
}

// VerifyFacts compares the facts of a shard with its events. It returns the number of visitors, and an error with the
// remedy for each kind of difference. progress is called with the share that has been compared.
func VerifyFacts(ctx context.Context, shard *facts.Refresher,
	progress func(share float64),
) (visitors int, faults []error, err error) {
	found, err := shard.VerifyFacts(ctx, progress)
	if err != nil {
		return 0, nil, err
	}
	if found.Wrong > 0 {
		remedy := ", lifthouse facts --rebuild at once"
		if len(found.Lost) > 0 { // only the facts still count what is lost
			remedy = ""
		}
		faults = append(faults,
			fmt.Errorf("the facts of %s are not those of their events: a server corrects them within a "+
				"day%s", wording.CountNoun(found.Wrong, "visitor"), remedy))
	}
	if len(found.Lost) > 0 {
		faults = append(faults, fmt.Errorf("stored events of %s are lost; reports keep what they counted: "+
			"restore a backup (lifthouse restore), or send the events again; to accept the loss: lifthouse facts "+
			"--rebuild --accept-loss N", wording.CountNoun(len(found.Lost), "visitor")))
	}
	return found.Visitors, faults, nil
}

// checkServers lists the servers of the store, and checks that they answer and run the verified ClickHouse release.
func (r *Report) checkServers(ctx context.Context, conn driver.Conn) {
	servers, err := schema.ReadServers(ctx, conn)
	if err != nil {
		r.Note("store", "%v", err)
		return
	}
	for i := range servers {
		s := &servers[i]
		switch {
		case !s.Answers:
			r.Fault("store", fmt.Errorf("%s does not answer; reports use the other replicas of its shard", s))
		case schema.IsVerified(s.Version):
			r.OK("store", "ClickHouse %s on %s: %s", s.Version, s, storedSize(s))
		default:
			r.Note("store", "ClickHouse %s on %s is not verified, the tests of Lifthouse run on %s: %s", s.Version, s,
				schema.VerifiedRelease, storedSize(s))
		}
	}
}

// storedSize returns how much a server stores.
func storedSize(s *schema.Server) string {
	return fmt.Sprintf("%d rows of events, %d of facts, %d MB in all", s.Events, s.Facts, s.Bytes>>20)
}
