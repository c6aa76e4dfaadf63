package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema/faults"
)

// Limits of the tool ask.
const (
	questionsName  = "questions"
	maxQuestions   = 20
	maxValuesShown = 10 // of a breakdown or a split
)

type askArguments struct {
	CampaignID idOrKey  `json:"campaignId" jsonschema:"id or key of a campaign"`
	WebsiteID  int64    `json:"websiteId,omitempty" jsonschema:"id of the only website to search"`
	Questions  []string `json:"questions" jsonschema:"1 to 20 questions: METRIC [for CONDITION] [by ATTRIBUTE[, ATTRIBUTE]] [split TEXT]"`
}

// askAnswer is the answer to the questions of a call.
type askAnswer struct {
	experiment
	Answers []questionAnswer `json:"answers"`
}

// questionAnswer is the answer to a question, or what is wrong with it.
type questionAnswer struct {
	Question    string               `json:"question"` // canonical text, or as it was given if it is wrong
	Problem     string               `json:"problem,omitempty"`
	Holds       *bool                `json:"holds,omitempty"` // whether some difference holds; nil: there is no evidence
	Sentences   []string             `json:"sentences,omitempty"`
	Omitted     int                  `json:"omitted,omitempty"` // values
	Warnings    []result.WarningCode `json:"warnings,omitempty"`
	DataThrough *time.Time           `json:"dataThrough,omitempty"`
	Stale       bool                 `json:"stale,omitempty"`
}

// answerQuestions answers questions about a campaign.
func (s *Server) answerQuestions(ctx context.Context, c Caller, a *arguments) (any, error) {
	request := query.Request{
		Operation: query.CampaignResults, SubjectID: a.ID("campaignId"), WebsiteID: a.ID("websiteId"),
	}
	texts := a.values[questionsName]
	if request.SubjectID == 0 {
		a.Append(faults.Fault{Name: "campaignId", Detail: "must be the id or the key of a campaign"})
	}
	if len(texts) < 1 || len(texts) > maxQuestions {
		a.Add(questionsName, len(texts), fmt.Sprintf("must be 1 to %d texts", maxQuestions))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	owned := s.catalogue.Snapshot().AccountResources(c.AccountID)
	about, err := s.results.ReportQuery(ctx, request, nil, owned, c.WebsiteID, results.JSON) // whether it exists
	if err != nil {
		return nil, err
	}
	names, err := s.engine.ReadNames(ctx, owned, engine.WebsiteOf(&request, owned))
	if err != nil {
		return nil, err
	}
	answer := &askAnswer{
		experiment: newExperiment(owned, about.Plan.Subject, longName), Answers: make([]questionAnswer, len(texts)),
	}
	var asked []results.Question
	var indexes []int
	for i, text := range texts {
		answer.Answers[i].Question = shortenText(text, maxSentence)
		q, canonical, err := s.planQuestion(ctx, c, text, request, names)
		if err != nil {
			if err := answer.Answers[i].setProblem(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		answer.Answers[i].Question = canonical
		asked = append(asked, results.Question{Query: q})
		indexes = append(indexes, i)
	}
	for k, found := range s.results.AnswerBatch(ctx, asked) {
		of := &answer.Answers[indexes[k]]
		if found.Err != nil {
			err = of.setProblem(ctx, found.Err)
		} else {
			err = of.setReport(found.Body)
		}
		if err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// planQuestion returns the query for a question, and the canonical text of the question.
func (s *Server) planQuestion(
	ctx context.Context, c Caller, text string, request query.Request, names *metric.Names,
) (*results.Query, string, error) {
	ask, err := metric.ParseAsk(text, names)
	if list, is := errors.AsType[metric.Faults](err); is {
		return nil, "", query.InvalidParameters(list.ListFaults(questionsName, text)...)
	}
	if err != nil {
		return nil, "", err
	}
	request.SetAsk(ask)
	request.Names = names
	owned := s.catalogue.Snapshot().AccountResources(c.AccountID)
	q, err := s.results.ReportQuery(ctx, request, nil, owned, c.WebsiteID, results.JSON)
	return q, ask.String(), err
}

// setProblem sets what is wrong with a question. It returns an error that is not about the question.
func (a *questionAnswer) setProblem(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		details := make([]string, len(invalid.Faults))
		for i, f := range invalid.Faults {
			details[i] = f.Detail
		}
		a.Problem = printableText(strings.Join(details, "; "))
		return nil
	}
	a.Problem = explainFailure(ctx, "ask", err)
	return nil
}

// setReport sets the sentences of a report.
func (a *questionAnswer) setReport(body []byte) error {
	r := &result.Report{}
	if err := json.Unmarshal(body, r); err != nil {
		return err
	}
	a.DataThrough = r.DataThrough
	a.Stale = r.Stale
	for _, w := range r.Checks.Warnings {
		a.Warnings = append(a.Warnings, w.Code)
	}
	if r.Question != nil {
		a.Sentences = append(a.Sentences, shortenText(r.Question.Words, maxSentence))
	}
	q := newQuoter(r, longName)
	if q.invalid {
		a.Sentences = append(a.Sentences, shortenText(r.Conclusion.Text, maxSentence))
	}
	switch {
	case r.Parts != nil:
		shown := min(len(r.Parts.Items), maxValuesShown)
		a.Omitted = len(r.Parts.Items) - shown
		for i := range r.Parts.Items[:shown] {
			part := &r.Parts.Items[i]
			q.prefix = fmt.Sprintf("%s %s: ", r.Parts.By, shortenText(part.Value, longName))
			a.Sentences = append(a.Sentences, q.quotePart(part)...)
			for k := range part.Variations {
				a.addEvidence(part.Variations[k].Comparison)
			}
		}
	case r.Dimension != nil:
		shown := min(len(r.Breakdown), maxValuesShown)
		a.Omitted = len(r.Breakdown) - shown
		for i := range r.Breakdown[:shown] {
			slice := &r.Breakdown[i]
			q.prefix = fmt.Sprintf("%s %s: ", *r.Dimension, shortenText(slice.Value, longName))
			q.invalid = isInvalid(r.Conclusion) || isInvalid(slice.Conclusion)
			a.addVariations(q, slice.Variations)
		}
	default:
		a.addVariations(q, r.Variations)
	}
	return nil
}

func (a *questionAnswer) addVariations(q *quoter, all []result.VariationResults) {
	a.Sentences = append(a.Sentences, q.quoteVariations(all)...)
	for i := range all {
		a.addEvidence(all[i].Comparison)
	}
}

// addEvidence notes whether a comparison holds.
func (a *questionAnswer) addEvidence(c *result.Comparison) {
	if c == nil || c.Evidence == nil {
		return
	}
	a.Holds = new(c.Evidence.Holds || a.Holds != nil && *a.Holds)
}

type namesArguments struct {
	WebsiteID int64 `json:"websiteId,omitempty" jsonschema:"id of a website; default: the only one"`
}

// getNames returns the names that questions about a website may contain.
func (s *Server) getNames(ctx context.Context, c Caller, a *arguments) (any, error) {
	owned, website, err := s.onlyWebsite(c, a)
	if err != nil {
		return nil, err
	}
	names, err := s.engine.ReadNames(ctx, owned, website)
	if err != nil {
		return nil, err
	}
	return results.NewNames(owned, website, names), nil
}
