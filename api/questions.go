package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// Limits of a batch of questions.
const (
	maxQuestions     = 100
	maxQuestionsBody = 64 << 10 // bytes
)

// batch is a request with several questions.
type batch struct {
	kind      string // content type of the answers
	questions []batchQuestion
	names     map[int64]*metric.Names // by website
}

// batchQuestion is a question of a batch with what was found.
type batchQuestion struct {
	query.Question
	results.Found
	query *results.Query // nil: err has what is wrong
	err   error
}

// answerQuestions answers several questions, each with the report of its subject or with a problem.
func (s *API) answerQuestions(c *gin.Context) (any, error) {
	if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
		return nil, err
	}
	texts, err := s.readQuestions(c)
	if err != nil {
		return nil, err
	}
	b := &batch{kind: c.GetString(typeKey), names: map[int64]*metric.Names{}}
	if p := s.countQuestions(c, len(texts)); p != nil {
		return nil, p
	}
	for _, text := range texts {
		b.questions = append(b.questions, s.planQuestion(c, b, text))
	}
	s.computeAnswers(c, b)
	if err := c.Request.Context().Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	body, err := s.encodeAnswers(c, b)
	isStale := slices.ContainsFunc(b.questions, func(q batchQuestion) bool { return q.Stale })
	return reply{kind: b.kind, keep: notKept, body: body, stale: isStale}, err
}

// readQuestions reads the body of a request: the JSON of its questions.
func (s *API) readQuestions(c *gin.Context) ([]json.RawMessage, error) {
	if !hasContentType(c, []string{results.JSON}) {
		return nil, newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Content-Type must be application/json")
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, maxQuestionsBody); err != nil {
		return nil, err
	}
	if !utf8.Valid(held.text) {
		return nil, bodyProblem(errors.New("the body must be UTF-8"))
	}
	if !json.Valid(held.text) {
		var value any
		return nil, bodyProblem(json.Unmarshal(held.text, &value))
	}
	document, err := render.ReadDocument(held.text)
	if err != nil {
		return nil, bodyProblem(errors.New(`the body must be an object such as {"questions": [{"campaignId": 12}]}`))
	}
	var found faults.Collector
	var texts []json.RawMessage
	const field = "questions"
	isGiven := false
	for _, member := range document {
		switch {
		case member.Name != field:
			found.AddField(member.Name, "%s; %s", faults.UnknownField, faults.SuggestName(member.Name, []string{field}))
		case isGiven:
			found.AddField(field, faults.GivenTwice)
		default:
			isGiven = true
			if json.Unmarshal(member.Value, &texts) != nil || len(texts) < 1 || len(texts) > maxQuestions {
				found.AddField(field, "must be an array of 1 to %d questions", maxQuestions)
			}
		}
	}
	found.AddIf(!isGiven, field, nil, fmt.Sprintf("must be an array of 1 to %d questions", maxQuestions))
	return texts, found.List.Err()
}

// countQuestions counts the questions of a request, of which the request itself is one. More than a burst count as one.
func (s *API) countQuestions(c *gin.Context, questions int) *problem {
	if s.rates == nil || questions < 2 {
		return nil
	}
	token := tokenOf(c)
	return s.countRequests(&token, min(questions, s.rates.burst)-1)
}

// planQuestion reads a question and resolves it, within the resources that the token may read.
func (s *API) planQuestion(c *gin.Context, b *batch, text json.RawMessage) (q batchQuestion) {
	owned, bound := s.accountResources(c)
	fields, wrong := readFields(text)
	if fields == nil {
		q.err = query.InvalidParameters(wrong...)
		return q
	}
	var err error
	q.Question, err = query.ParseQuestion(fields, func(text string) (int64, error) {
		return findCampaign(owned, bound, text)
	})
	if q.IfVersion != "" && b.kind == results.CSV {
		wrong = append(wrong, faults.Fault{
			Name: query.FieldIfVersion, Value: q.IfVersion, Detail: "a table has no versions: omit ifVersion",
		})
	}
	parsed := query.JoinFaults(query.InvalidParameters(wrong...), err)
	owned, bound = s.reportResources(c, q.Operation)
	if q.NeedsNames() {
		q.Names, err = s.namesOnce(c, b, owned, engine.WebsiteOf(&q.Request, owned))
		if err != nil {
			q.err = query.JoinFaults(parsed, err)
			return q
		}
	}
	q.query, err = s.results.ReportQuery(c.Request.Context(), q.Request, parsed, owned, bound, b.kind)
	q.err = query.InFields(err)
	return q
}

// namesOnce returns the names of a website, which are read once for a batch.
func (s *API) namesOnce(
	c *gin.Context, b *batch, owned *catalogue.AccountResources, website int64,
) (names *metric.Names, err error) {
	names = b.names[website]
	switch {
	case names != nil:
		return names, nil
	case website == 0: // the subject does not exist
		names = &metric.Names{}
	default:
		names, err = s.Engine.ReadNames(c.Request.Context(), owned, website)
	}
	if err == nil {
		b.names[website] = names
	}
	return names, err
}

// findCampaign returns the id of a campaign from its id or its key, on the website of the token if it is bound to one.
func findCampaign(owned *catalogue.AccountResources, bound int64, text string) (int64, error) {
	if id, is := query.ParseID(text); is {
		return id, nil
	}
	searched := *owned
	if bound != 0 {
		searched.Websites = map[int64]catalogue.Website{bound: owned.Websites[bound]}
	}
	return searched.FindID("campaign", text)
}

// readFields returns the fields of a question as texts; nil: it is no object. A null is as if it were not given.
func readFields(text json.RawMessage) (fields map[string]string, wrong faults.List) {
	var found faults.Collector
	document, err := render.ReadDocument(text)
	if err != nil {
		found.Add("", faults.Clip(string(text), maxShown), "must be an object with the fields of a question")
		return nil, found.List
	}
	fields = map[string]string{}
	seen := map[string]bool{}
	for _, member := range document {
		shown := faults.Clip(string(member.Value), maxShown)
		var value any
		decoder := json.NewDecoder(bytes.NewReader(member.Value))
		decoder.UseNumber() // keeps all digits
		err := decoder.Decode(&value)
		found.AddIf(seen[member.Name], member.Name, shown, faults.GivenTwice)
		seen[member.Name] = true
		switch value := value.(type) {
		case string:
			fields[member.Name] = value
		case json.Number:
			fields[member.Name] = value.String()
		case nil:
			found.AddIf(err != nil, member.Name, shown, "cannot be read")
			found.AddIf(!slices.Contains(query.QuestionFields(), member.Name), member.Name, shown,
				faults.UnknownField+"; "+faults.SuggestName(member.Name, query.QuestionFields()))
		default:
			found.Add(member.Name, shown, "must be a text or a number")
		}
	}
	return fields, found.List
}

// maxShown is the maximum number of bytes of a value in a fault.
const maxShown = 64

// computeAnswers answers the questions without a fault.
func (s *API) computeAnswers(c *gin.Context, b *batch) {
	var asked []results.Question
	var indexes []int
	for i := range b.questions {
		q := &b.questions[i]
		if q.err != nil {
			continue
		}
		question := results.Question{Query: q.query}
		if q.IfVersion != "" {
			question.Has = func(version string) bool { return s.versionText(q.query, version) == q.IfVersion }
		}
		asked = append(asked, question)
		indexes = append(indexes, i)
	}
	for k, found := range s.results.AnswerBatch(c.Request.Context(), asked) {
		q := &b.questions[indexes[k]]
		q.Found = found
		q.err = found.Err
	}
}

// versionText returns the version of an answer as clients see it: the entity tag of its report without quotes.
func (s *API) versionText(q *results.Query, version string) string {
	if version == "" {
		return ""
	}
	return strings.Trim(strings.TrimPrefix(entityTag(s.options.Release, q.Key, version), "W/"), `"`)
}

// encodeAnswers returns the body of a response: the answers or the problems, in the order of the questions.
func (s *API) encodeAnswers(c *gin.Context, b *batch) ([]byte, error) {
	if b.kind == results.CSV {
		tables := make([]render.QuestionTable, len(b.questions))
		for i := range b.questions {
			q := &b.questions[i]
			tables[i].Table = q.Body
			if q.err != nil {
				tables[i].Problem = questionProblem(q.err, i).inWords()
			}
		}
		return render.QuestionsCSV(tables)
	}
	text := bytes.NewBufferString(`{"results":[`)
	for i := range b.questions {
		if i > 0 {
			text.WriteByte(',')
		}
		answer, err := s.encodeResult(c, &b.questions[i], i)
		if err != nil {
			return nil, err
		}
		text.Write(bytes.TrimSuffix(answer, []byte("\n")))
	}
	text.WriteString("]}\n")
	return text.Bytes(), nil
}

// encodeResult returns the answer to a question, or its problem.
func (s *API) encodeResult(c *gin.Context, q *batchQuestion, number int) ([]byte, error) {
	if wrong := q.err; wrong != nil {
		return encodeProblem(c, questionProblem(wrong, number)), nil
	}
	return s.encodeAnswer(q)
}

// encodeAnswer returns the answer to a question.
func (s *API) encodeAnswer(q *batchQuestion) ([]byte, error) {
	if q.Unchanged {
		return []byte(`{"unchanged":true}`), nil
	}
	report, err := render.ReadDocument(q.Body)
	if err != nil {
		return nil, err
	}
	version, err := render.EncodeValue(s.versionText(q.query, q.Version))
	if err != nil {
		return nil, err
	}
	var answer render.Document
	if q.Version != "" {
		answer = append(answer, render.Member{Name: "version", Value: version})
	}
	for _, member := range report {
		switch member.Name {
		case "conclusion": // of the subject
			continue
		case "checks":
			var checks result.QuestionChecks
			if err := json.Unmarshal(member.Value, &checks); err != nil {
				return nil, err
			}
			member.Value, err = render.EncodeValue(checks)
			if err != nil {
				return nil, err
			}
		}
		answer = append(answer, member)
	}
	return answer.JSON(), nil
}

// questionProblem returns the problem of a question, whose faults are in the body.
func questionProblem(err error, number int) *problem {
	p := *problemOf(err)
	if p.Status == http.StatusBadRequest {
		p.Detail = "the question is invalid"
	}
	p.Errors = slices.Clone(p.Errors)
	for i := range p.Errors {
		f := &p.Errors[i]
		f.In = "body"
		f.Name = strings.TrimSuffix(fmt.Sprintf("questions[%d].%s", number, f.Name), ".")
	}
	return &p
}

// inWords returns a problem as one line.
func (p *problem) inWords() string {
	texts := []string{p.Code + ": " + p.Detail}
	for _, f := range p.Errors {
		texts = append(texts, fmt.Sprintf("%s %q: %s", f.Name, f.Value, f.Detail))
	}
	return catalogue.RedactTokens(strings.Join(texts, "; "))
}
