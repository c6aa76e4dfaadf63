package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lifthouse/api/results"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/query"
	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/notes"

	"github.com/spf13/cobra"
)

// logOptions are the flags of log.
type logOptions struct {
	website int64
	entry   string
	since   time.Duration
	limit   int
	asJSON  bool
}

func (p *program) logCommand() *cobra.Command {
	var o logOptions
	cmd := newCommand("log", func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return subjectArgs(cmd, args)
	}, nil)
	flags := cmd.Flags()
	bounds.Var(flags, &o.website, "website", 0, 0, bounds.MaxID, "id of the website; 0: all websites")
	flags.StringVar(&o.entry, "entry", "", "kind of the entries, such as decision; default: all")
	bounds.Var(flags, &o.since, "since", 0, 0, bounds.MaxAge, "maximum age of the entries, such as 720h; 0: all")
	bounds.Var(flags, &o.limit, "limit", 100, 1, 1_000_000, "maximum number of entries")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	completeFlag(cmd, "entry", tables.EntryKinds...)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		var found faults.Collector
		if o.entry != "" && !slices.Contains(tables.EntryKinds, o.entry) {
			found.Add("--entry", o.entry, faults.SuggestName(o.entry, tables.EntryKinds))
			return usageError{found.List}
		}
		return nil
	}
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		return p.printLog(ctx, s, args, &o)
	})
}

// printLog prints the entries of the log, the latest first.
func (p *program) printLog(ctx context.Context, s ownedStore, args []string, o *logOptions) error {
	asked := query.Log{WebsiteID: o.website, Entry: o.entry}
	if o.since > 0 {
		asked.Since = time.Now().Add(-o.since)
	}
	if o.website != 0 {
		if _, err := websiteOr(o.website, s.owned); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		of, err := findSubject(s, "log", args, o.website)
		if err != nil {
			return err
		}
		asked.SubjectIDs = of.IDs()
		asked.WebsiteID = of.WebsiteID
	}
	entries, err := s.Tables().ReadLog(ctx, s.owned, &asked)
	if err != nil {
		return err
	}
	entries = entries[:min(len(entries), o.limit)]
	if o.asJSON {
		return p.writeJSON(append([]tables.Entry{}, entries...))
	}
	rows := [][]any{{"time", "about", "entry", "text", "by"}}
	for i := range entries {
		e := &entries[i]
		text := e.Text
		if e.StartsAt != nil {
			text = spanInWords(*e.StartsAt, e.EndsAt) + ": " + text
		}
		if e.WithdrawnAt != nil {
			text = "(withdrawn) " + text
		}
		rows = append(rows, []any{e.At.Format(time.RFC3339), aboutOf(e), e.Kind, text, cmp.Or(e.By, "the server")})
	}
	return p.printList(rows, "The log has no entries.")
}

// aboutOf returns what an entry is about, as in the arguments of a command.
func aboutOf(e *tables.Entry) string {
	if e.Subject.Kind == schema.SubjectNone {
		return fmt.Sprint("website ", e.Subject.WebsiteID)
	}
	return e.Arguments()
}

// spanInWords returns the time or the span of an annotation, in days if it has whole days (UTC).
func spanInWords(from time.Time, to *time.Time) string {
	isDay := func(at time.Time) bool { return at.Equal(at.UTC().Truncate(24 * time.Hour)) }
	switch {
	case to == nil && isDay(from):
		return from.UTC().Format(time.DateOnly)
	case to == nil:
		return query.FormatInstant(from)
	case isDay(from) && isDay(*to):
		last := to.UTC().AddDate(0, 0, -1)
		if last.Equal(from.UTC()) {
			return from.UTC().Format(time.DateOnly)
		}
		return from.UTC().Format(time.DateOnly) + " to " + last.Format(time.DateOnly)
	}
	return query.FormatInstant(from) + " to " + query.FormatInstant(*to)
}

// findSubject returns the campaign, the widget or the experiment of an account that arguments name. It may be archived.
func findSubject(s ownedStore, command string, args []string, website int64) (of schema.Subject, err error) {
	named, err := parseSubject(command, args, s.owned.FindID)
	if err != nil {
		return of, usageError{err}
	}
	ids := named.IDs()
	of, err = results.FindSubject(s.owned, website, &ids)
	if err != nil {
		return of, fmt.Errorf("%s: %w", command, err)
	}
	return of, nil
}

// noteOptions are the flags of note.
type noteOptions struct {
	website                  int64
	from, to, link, withdraw string
}

func (p *program) noteCommand() *cobra.Command {
	var o noteOptions
	cmd := newCommand("note", func(cmd *cobra.Command, args []string) error {
		isWithdrawal := cmd.Flags().Changed("withdraw")
		switch {
		case isWithdrawal && len(args) == 0, len(args) == 1 && !isWithdrawal:
			return nil
		case len(args) == 3 && !isWithdrawal:
			return subjectArgs(cmd, args[:2])
		}
		return usageError{errors.New("note: needs a text, after the campaign, widget or experiment if it is about " +
			"one; or --withdraw ID")}
	}, nil)
	flags := cmd.Flags()
	bounds.Var(flags, &o.website, "website", 0, 0, bounds.MaxID, "id of the website; required if there are several")
	flags.StringVar(&o.from, "from", "", "day or time of the annotation, such as 2026-11-18 or 2026-11-18T09:30:00Z")
	flags.StringVar(&o.to, "to", "", "last day of the span, or the time at which it ends")
	flags.StringVar(&o.link, "link", "", "address that has more, such as https://example.com/page")
	flags.StringVar(&o.withdraw, "withdraw", "", "`id` of a note to withdraw; it stays in the log")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		if o.withdraw != "" {
			found, err := s.Notes.WithdrawNote(ctx, s.owned.ID, o.website, o.withdraw, catalogue.AuthorOf(ctx))
			if err == nil && !found {
				err = fmt.Errorf("note: no note %q; lifthouse log --json prints the ids", o.withdraw)
			}
			return err
		}
		return p.writeNote(ctx, s, args, &o)
	})
}

// writeNote stores a note and prints its id.
func (p *program) writeNote(ctx context.Context, s ownedStore, args []string, o *noteOptions) error {
	note := notes.Note{
		AccountID: s.owned.ID, By: catalogue.AuthorOf(ctx), Kind: notes.Plain, Text: args[len(args)-1], Link: o.link,
	}
	var found faults.Collector
	note.StartsAt = parseMoment(&found, "--from", o.from, 0)
	note.EndsAt = parseMoment(&found, "--to", o.to, 1)
	if o.from != "" || o.to != "" {
		note.Kind = notes.Annotation
	}
	ofNote := note.FindFaults()
	for i := range ofNote {
		ofNote[i].Name = flagOfNote(ofNote[i].Name)
	}
	if err := found.List.WithOthers(ofNote).Err(); err != nil {
		return usageError{err}
	}
	if len(args) == 1 {
		website, err := websiteOr(o.website, s.owned)
		if err != nil {
			return err
		}
		note.Subject = schema.Subject{WebsiteID: website, Kind: schema.SubjectNone}
	} else {
		of, err := findSubject(s, "note", args[:2], o.website)
		if err != nil {
			return err
		}
		note.Subject = of
	}
	note, err := s.Notes.AddNote(ctx, note, nil)
	if err != nil {
		return err
	}
	p.printLine("%s", note.ID)
	return nil
}

// flagOfNote returns the flag of a field of a note.
func flagOfNote(field string) string {
	flags := map[string]string{"startsAt": "--from", "endsAt": "--to", "link": "--link"}
	return cmp.Or(flags[field], field)
}

// parseMoment parses a flag with a day or a time; nil: it is not given or invalid. Days is added to a day (UTC).
func parseMoment(found *faults.Collector, flag, text string, days int) *time.Time {
	if text == "" {
		return nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return new(day.AddDate(0, 0, days))
	}
	at, err := schema.ParseTime(text)
	if err != nil {
		found.Add(flag, text, "must be a day such as 2026-03-02, or RFC 3339 with an offset")
		return nil
	}
	return &at
}
