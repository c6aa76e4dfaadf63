package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/faults"

	"github.com/spf13/cobra"
)

// Limits of a file of questions.
const (
	maxAsked     = 100
	maxAskedFile = 256 << 10 // bytes
)

// askedLine is a question in a file: the key or the id of a campaign, and what is asked.
type askedLine struct {
	number   int
	campaign string
	text     string // after the campaign
	offset   int    // characters before the text
}

// askFailure is a question that has no answer.
type askFailure struct {
	line int
	err  error
}

func (p *program) askCommand() *cobra.Command {
	cmd := newCommand("ask", oneArg, nil)
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		lines, err := p.readQuestions(args[0])
		if err != nil {
			return err
		}
		asker := asker{ownedStore: s, names: map[int64]*metric.Names{}}
		var failures []askFailure
		screen := terminal.ScreenOf(p.stdout, p.getenv)
		answered := 0
		for _, line := range lines {
			question, report, err := asker.answerLine(ctx, line)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				failures = append(failures, askFailure{line.number, err})
				continue
			}
			if answered > 0 {
				p.printLine("")
			}
			answered++
			if _, err := p.stdout.WriteString(render.Answer(line.campaign+": "+question, report, screen)); err != nil {
				return err
			}
		}
		return p.endAsking(answered, failures)
	})
}

// endAsking prints why questions have no answer, and returns the exit code as an error.
func (p *program) endAsking(answered int, failures []askFailure) error {
	for _, f := range failures {
		for _, text := range strings.Split(f.err.Error(), "\n") {
			p.printDiagnostic("line %d: %s", f.line, text)
		}
	}
	switch {
	case len(failures) == 0:
		return nil
	case answered == 0:
		return &exitError{exitFailed}
	}
	return &exitError{exitRejected}
}

// readQuestions reads the questions of a file: one a line, with comments from # at the beginning of a line.
func (p *program) readQuestions(path string) (lines []askedLine, err error) {
	file, err := p.openInput(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeInput(file, p.stdin)) }()
	text, err := io.ReadAll(io.LimitReader(file, maxAskedFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAskedFile:
		return nil, usageError{fmt.Errorf("ask: %s: must have at most %d KiB", path, maxAskedFile>>10)}
	case !utf8.Valid(text):
		return nil, usageError{fmt.Errorf("ask: %s: must be UTF-8", path)}
	}
	var found faults.List
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimRight(line, "\r")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		campaign, question, isComplete := strings.Cut(line, ": ")
		if !isComplete {
			found = append(found, faults.Fault{
				Name: "ask", Line: i + 1, Value: faults.Clip(trimmed, 60),
				Detail: "must be the id or the key of a campaign, a colon, a space and a question, " +
					"such as 12: converted(purchase) for device = 'mobile'",
			})
			continue
		}
		lines = append(lines, askedLine{
			i + 1, strings.TrimSpace(campaign), question, utf8.RuneCountInString(campaign) + len(": "),
		})
	}
	switch {
	case len(found) > 0:
		return nil, usageError{found}
	case len(lines) == 0:
		return nil, usageError{fmt.Errorf("ask: %s: has no question", path)}
	case len(lines) > maxAsked:
		return nil, usageError{fmt.Errorf("ask: %s: has %d questions; at most %d", path, len(lines), maxAsked)}
	}
	return lines, nil
}

// closeInput closes a file that is not standard input.
func closeInput(file, stdin io.Closer) error {
	if file == stdin {
		return nil
	}
	return file.Close()
}

// asker answers questions about the campaigns of an account.
type asker struct {
	ownedStore
	names map[int64]*metric.Names // by website
}

// answerLine returns the report of a question, and its canonical text.
func (a *asker) answerLine(ctx context.Context, line askedLine) (text string, report *result.Report, err error) {
	id, err := a.owned.FindID(schema.NameCampaign, line.campaign)
	if err != nil {
		return "", nil, err
	}
	campaign, known := a.owned.Campaigns[id]
	if !known {
		return "", nil, &query.NotFoundError{Kind: "campaign", ID: id}
	}
	names := a.names[campaign.WebsiteID]
	if names == nil {
		names, err = a.Engine.ReadNames(ctx, a.owned, campaign.WebsiteID)
		if err != nil {
			return "", nil, err
		}
		a.names[campaign.WebsiteID] = names
	}
	ask, err := metric.ParseAsk(line.text, names)
	if list, is := errors.AsType[metric.Faults](err); is {
		for i := range list {
			list[i].Character += line.offset
		}
	}
	if err != nil {
		return "", nil, err
	}
	request := query.Request{
		Operation: query.CampaignResults, AccountID: a.owned.ID, SubjectID: id, Names: names,
	}
	request.SetAsk(ask)
	report, err = computeReport(ctx, a.Store, request)
	return ask.String(), report, err
}
