package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/embedded"
	"lifthouse/engine/facts"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/spf13/cobra"
)

// checkReport prints findings, one line each.
type checkReport struct {
	*program
	deep   bool // read every part, and compare the facts of all visitors with their events
	failed bool // whether there was a fault
}

func (p *program) checkCommand() *cobra.Command {
	r := &checkReport{program: p}
	cmd := newCommand("check", noArgs, func(cmd *cobra.Command, _ []string) error {
		if r.running == nil { // otherwise the client has printed its settings
			var rows [][]any
			for _, s := range r.settings {
				rows = append(rows, []any{s.Name, shownValue(s), fmt.Sprintf("(%s)", s.Source)})
			}
			_ = r.printTable(rows)
			r.printLine("")
			if _, err := r.loadTLSConfig(); err != nil {
				r.reportFault("server", err)
			}
			for _, warning := range r.settingWarnings() {
				r.reportNote("server", "%s", warning)
			}
		}
		err := r.checkStore(cmd.Context())
		if errors.As(err, new(*exitError)) || err == nil && r.failed {
			return &exitError{exitFailed}
		}
		return err
	})
	p.serveFlags(cmd)
	cmd.Flags().BoolVar(&r.deep, "deep", false, "read every stored part, and compare the facts of all visitors with "+
		"their events")
	return cmd
}

// checkStore checks the store without changing its tables. If another process holds the store, it lets that process
// check it.
func (r *checkReport) checkStore(ctx context.Context) error {
	if r.running != nil {
		if !r.checkTables(ctx, r.running.Conn) {
			return nil
		}
		stored, err := catalogue.Open(ctx, r.running.Conn) // other programs may have changed it
		if err != nil {
			r.reportFault("catalogue", err)
			return nil
		}
		r.checkContents(ctx, stored, r.running.Facts)
		return nil
	}
	address, err := r.storeAddress()
	if err != nil {
		return err
	}
	if dir := address.Dir; dir != "" {
		if isEmpty(dir) {
			r.reportNote("store", "%s does not exist yet; lifthouse serve creates it", dir)
			return nil
		}
		var held *embedded.Engine
		err := r.awaitHolder(ctx, commandTimeout, func() (err error) {
			held, address.Options, err = app.OpenEmbedded(ctx, dir, r.opening.Fsync, 0)
			return err
		})
		if locked, is := errors.AsType[*embedded.LockedError](err); is {
			code, err := r.forwardCommand(ctx, locked)
			switch {
			case err != nil:
				r.reportFault("store", fmt.Errorf("%w, and it accepts no commands: %w", locked, err))
			case code != exitOK:
				return &exitError{code}
			}
			return nil
		}
		if err != nil {
			r.reportFault("store", err)
			return nil
		}
		defer func() { _ = held.Close() }()
	}
	conn, err := schema.OpenConnection(ctx, address)
	if err != nil {
		r.reportFault("store",
			fmt.Errorf("%w; check the address %s, and that the server runs", err, schema.ShowAddress(r.address)))
		return nil
	}
	defer func() { _ = conn.Close() }()
	if !r.checkTables(ctx, conn) {
		return nil
	}
	s, err := app.NewStore(ctx, conn, address, app.Options{Limits: source.DefaultLimits, UnreadFacts: true})
	if err != nil {
		r.reportFault("catalogue", err)
	} else {
		r.checkContents(ctx, s.Catalogue, s.Facts)
	}
	if err := s.CloseReplicas(); err != nil {
		r.reportFault("store", err)
	}
	return nil
}

// reportOK prints that an aspect was checked and is in order.
func (r *checkReport) reportOK(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.stdout, "%-9s  ok       %s\n", aspect, fmt.Sprintf(format, args...))
}

// reportNote prints a piece of advice that is not a fault.
func (r *checkReport) reportNote(aspect, format string, args ...any) {
	_, _ = fmt.Fprintf(r.stdout, "%-9s  note     %s\n", aspect, fmt.Sprintf(format, args...))
}

func (r *checkReport) reportFault(aspect string, err error) {
	r.failed = true
	_, _ = fmt.Fprintf(r.stdout, "%-9s  WRONG    %v\n", aspect, err)
}

// checkTables checks the servers and tables. It returns false if nothing else can be checked.
func (r *checkReport) checkTables(ctx context.Context, conn driver.Conn) bool {
	r.reportOK("store", "answers")
	servers, err := schema.ReadServers(ctx, conn)
	if err != nil {
		r.reportNote("store", "%v", err)
	}
	for i := range servers {
		s := &servers[i]
		stored := fmt.Sprintf("%d rows of events, %d of facts, %d MB in all", s.Events, s.Facts, s.Bytes>>20)
		switch {
		case !s.Answers:
			r.reportFault("store", fmt.Errorf("%s does not answer; reports use the other replicas of its shard", s))
		case schema.IsVerified(s.Version):
			r.reportOK("store", "ClickHouse %s on %s: %s", s.Version, s, stored)
		default:
			r.reportNote("store", "ClickHouse %s on %s is not verified, the tests of Lifthouse run on %s: %s",
				s.Version, s, schema.VerifiedRelease, stored)
		}
	}
	err = schema.CheckTableForm(ctx, conn)
	var pending []string
	if err == nil {
		pending, err = schema.PendingMigrations(ctx, conn)
	}
	switch {
	case err != nil:
		r.reportFault("schema", err)
		return false
	case len(pending) > 0:
		r.reportNote("schema", "pending migrations: %s; lifthouse migrate or lifthouse serve applies them",
			strings.Join(pending, ", "))
		return false
	}
	r.reportOK("schema", "is up to date")
	detached, err := schema.ReadDetachedParts(ctx, conn)
	if err != nil {
		r.reportNote("data", "%v", err)
	}
	for _, p := range detached { // whether rows are lost with them, a deep check says
		r.reportNote("data", "ClickHouse has set aside a part of %s (%s): %s; if --deep finds no lost events, delete "+
			"it", p.Table, p.Reason, p.Path)
	}
	if !r.deep {
		return true
	}
	var faults []string
	err = terminal.ShowWork(r.stderr, "reading all parts", "", terminal.Unknown, func() (err error) {
		faults, err = schema.CheckData(ctx, conn)
		return err
	})
	for _, fault := range faults {
		r.reportFault("data", fmt.Errorf("%s; restore a backup (lifthouse restore)", fault))
	}
	switch {
	case err != nil:
		r.reportFault("data", err)
	case len(faults) == 0:
		r.reportOK("data", "the checksums of all parts match")
	}
	r.checkCustomers(ctx, conn)
	return true
}

// checkCustomers checks that each goal with a customer is among the customer's orders, too.
func (r *checkReport) checkCustomers(ctx context.Context, conn driver.Conn) {
	missing, err := ingest.CountMissingOrders(ctx, conn)
	switch {
	case err != nil:
		r.reportFault("customers", err)
	case missing > 0:
		r.reportFault("customers", fmt.Errorf("rows of the table customers are lost: %s; orders without a visitor may "+
			"count for nobody: restore a backup (lifthouse restore), or send the events again",
			wording.FormatCount(missing)))
	default:
		r.reportOK("customers", "each goal with a customer is among the customer's orders")
	}
}

// checkContents checks the definitions of the catalogue, and that the facts can be read. In a deep check, it also
// checks that the facts match the events.
func (r *checkReport) checkContents(ctx context.Context, stored *catalogue.Catalogue, shards facts.Shards) {
	s := stored.Snapshot()
	if found, is := errors.AsType[faults.List](s.Validate()); is {
		for _, fault := range found {
			r.reportFault("catalogue", faults.List{fault})
		}
		r.reportNote("catalogue", "lifthouse export writes the catalogue: correct the faults in that file and apply it")
	}
	accounts := s.AllAccounts()
	if len(accounts) == 0 {
		r.reportNote("catalogue",
			"is empty: declare accounts, websites, goals and campaigns with lifthouse apply -f catalog.yaml")
	}
	for _, a := range accounts {
		r.reportOK("catalogue", "account %d (%s): websites %d, goals %d, targets %d, campaigns %d, widgets %d",
			a.ID, a.Name, len(a.Websites), len(a.Goals), len(a.Targets), len(a.Campaigns), len(a.Widgets))
		if len(s.AccountTokens(a.ID)) == 0 {
			r.reportNote("catalogue", "account %d has no token: create one with lifthouse token create --account %d",
				a.ID, a.ID)
		}
	}
	for i, shard := range shards {
		where := ""
		if len(shards) > 1 {
			where = fmt.Sprintf("of shard %d ", i+1)
		}
		r.checkFacts(ctx, shard, where)
	}
	if !r.deep { // a deep check has reported what it compared
		for _, sentence := range shards.DescribeDamage() {
			r.reportFault("facts", errors.New(sentence))
		}
	}
}

// checkFacts checks that the facts of a shard can be read, and looks for lost events. A deep check compares the facts
// with the events.
func (r *checkReport) checkFacts(ctx context.Context, shard *facts.Refresher, where string) {
	at, err := shard.OpenFacts(ctx)
	fold := shard.FoldProgress().AsFold()
	switch {
	case err != nil:
		r.reportFault("facts", err)
		return
	case at.Through == 0 && fold == nil:
		r.reportOK("facts", "%sare empty", where)
		return
	case at.Through == 0:
		r.reportNote("facts", "%sare not complete: the server is %s", where, result.FoldInWords(fold))
		return
	}
	r.reportOK("facts", "%sinclude the events accepted until %s", where, at.FoldedThrough().Format(time.RFC3339))
	if fold != nil {
		r.reportNote("facts", "%sthe server is %s", where, result.FoldInWords(fold))
	}
	if !r.deep {
		if err := shard.FindLosses(ctx); err != nil {
			r.reportFault("facts", err)
		}
		return
	}
	bar := terminal.NewBar(r.stderr, "comparing", "part")
	const shares = 1_000
	visitors, faults, err := verifyFacts(ctx, shard, func(share float64) { bar.Show(int64(shares*share), shares) })
	bar.End()
	for _, fault := range append(faults, err) {
		if fault != nil {
			r.reportFault("facts", fault)
		}
	}
	if err == nil && len(faults) == 0 {
		r.reportOK("facts", "%sof all %s are those of their events", where, wording.CountNoun(visitors, "visitor"))
	}
}
