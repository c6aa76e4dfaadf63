package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/facts"
	"lifthouse/engine/wording"
	"lifthouse/schema/catalogue"
)

func (p *program) factsCommand() *cobra.Command {
	var rebuild, verify bool
	var accepted int
	cmd := newCommand("facts", noArgs, func(cmd *cobra.Command, _ []string) error {
		if accepted > 0 && !rebuild {
			return usageError{errors.New("--accept-loss: needs --rebuild")}
		}
		p.opening.UnreadFacts = rebuild
		return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
			update := p.refreshFacts
			if rebuild {
				update = func(ctx context.Context, s *app.Store) error { return p.rebuildFacts(ctx, s, accepted) }
			}
			if err := update(ctx, s); err != nil {
				return err
			}
			for _, shard := range s.Facts {
				p.printLine("The facts include all events that were accepted until %s.",
					shard.ShownPosition().FoldedThrough().Format("2006-01-02T15:04:05.000Z07:00"))
				if !verify {
					continue
				}
				if err := p.compareFacts(ctx, shard); err != nil {
					return err
				}
			}
			return nil
		})
	})
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "fold all events again, and then replace the facts")
	cmd.Flags().BoolVar(&verify, "verify", false, "compare the facts of all visitors with their events")
	bounds.Var(cmd.Flags(), &accepted, "accept-loss", 0, 0, bounds.MaxCount,
		"with --rebuild: number of visitors whose lost events no report will count any more")
	return cmd
}

// showFolding shows the progress of a fold of all events while work runs.
func (p *program) showFolding(shards facts.Shards, doing string, work func() error) error {
	progress := func() (done, all int64) {
		now := shards.FoldProgress()
		if now.All == 0 { // it has not begun
			return 0, -1
		}
		return now.Done, now.All
	}
	return terminal.ShowWork(p.stderr, doing, "event", progress, work)
}

// refreshFacts folds the events that arrived since the last refresh.
func (p *program) refreshFacts(ctx context.Context, s *app.Store) error {
	return p.showFolding(s.Facts, "folding", func() error { return s.Facts.RefreshFacts(ctx) })
}

// rebuildFacts folds all events into new facts, which replace the present ones. It changes nothing if events cannot be
// read, or if more visitors lost events than a person accepts, because only the present facts still count these. The
// audit log has an accepted loss.
func (p *program) rebuildFacts(ctx context.Context, s *app.Store, accepted int) error {
	var builds []*facts.Build
	err := p.showFolding(s.Facts, "rebuilding", func() error {
		for _, shard := range s.Facts {
			_, _ = shard.RefreshFacts(ctx) // includes events that were sent again; a rebuild remedies some errors
			build, err := shard.BuildFacts(ctx)
			if err != nil {
				return err
			}
			builds = append(builds, build)
		}
		return nil
	})
	if err == nil {
		err = p.acceptLoss(ctx, s, builds, accepted)
	}
	if err != nil {
		for _, build := range builds {
			err = errors.Join(err, build.Discard(context.WithoutCancel(ctx)))
		}
		return err
	}
	for _, build := range builds {
		if _, err := build.Show(ctx); err != nil {
			return err
		}
	}
	websites := map[int64]bool{}
	for subject := range s.Facts.StoredSubjects() {
		websites[subject.WebsiteID] = true
	}
	return s.Catalogue.RecordFactsChange(ctx, catalogue.FactsRebuilt, slices.Sorted(maps.Keys(websites))...)
}

// acceptLoss returns an error unless the number of visitors who lost events is accepted, and records that it is.
func (p *program) acceptLoss(ctx context.Context, s *app.Store, builds []*facts.Build, accepted int) error {
	lost := 0
	byWebsite := map[int64]int{}
	for _, build := range builds {
		if build.Unknown != nil {
			p.printDiagnostic("the facts are damaged, so nobody knows whether events are lost: %v", build.Unknown)
		}
		for _, v := range build.Lost {
			byWebsite[v.WebsiteID]++
			lost++
		}
	}
	switch lost {
	case accepted:
	case 0:
		return errors.New("--accept-loss: no stored events are lost")
	default:
		return fmt.Errorf("stored events of %s are lost, and only the facts still count them, which are as they "+
			"were: restore a backup (lifthouse restore), or send the events again; to rebuild the facts "+
			"without them, use --accept-loss %d", wording.CountNoun(lost, "visitor"), lost)
	}
	for website, visitors := range byWebsite {
		if err := s.Catalogue.RecordAcceptedLoss(ctx, website, visitors); err != nil {
			return err
		}
	}
	return nil
}

// compareFacts compares the facts of all visitors of a shard with their events. It returns the differences as an error.
func (p *program) compareFacts(ctx context.Context, shard *facts.Refresher) error {
	const shares = 1_000
	bar := terminal.NewBar(p.stderr, "comparing", "part")
	defer bar.End()
	visitors, faults, err := verifyFacts(ctx, shard, func(share float64) { bar.Show(int64(shares*share), shares) })
	if err := errors.Join(append(faults, err)...); err != nil {
		return err
	}
	p.printLine("The facts of %s are those of their events.", wording.CountNoun(visitors, "visitor"))
	return nil
}

// verifyFacts compares the facts of a shard with its events. It returns the number of visitors, and an error with the
// remedy for each kind of difference. progress is called with the share that has been compared.
func verifyFacts(
	ctx context.Context, shard *facts.Refresher, progress func(share float64),
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
	if n := len(found.Cells); n > 0 {
		faults = append(faults, fmt.Errorf("the sums of %s in the facts, such as %s, are not those of the visitors: "+
			"rebuild the facts (lifthouse facts --rebuild)", wording.CountNoun(n, "subject"), found.Cells[0]))
	}
	if len(found.Lost) > 0 {
		faults = append(faults, fmt.Errorf("stored events of %s are lost; reports keep what they counted: "+
			"restore a backup (lifthouse restore), or send the events again; to accept the loss: lifthouse facts "+
			"--rebuild --accept-loss N", wording.CountNoun(len(found.Lost), "visitor")))
	}
	return found.Visitors, faults, nil
}
