package api

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// lineType is the content type of a JSON value on each line.
const lineType = "application/x-ndjson"

// bulkSlots is the maximum number of requests for all results that compute at the same time. They have an admission of
// their own, because they must not hold up single reports.
const bulkSlots = 2

// asOfHeader has the time up to which a response has everything, for the parameter since of a later request.
const asOfHeader = "X-As-Of"

// bulk is a request for the results of all campaigns and experiments that the token may read.
type bulk struct {
	query.Bulk
	owned    *catalogue.AccountResources
	website  int64 // 0: all
	versions map[schema.Subject]engine.Version
	changes  map[schema.Subject]time.Time
	stale    bool // accepted events wait
	tag      string
}

// bulkItem is what an item says without the fields of the report. Fields are in output order.
type bulkItem struct {
	WebsiteID    int64  `json:"websiteId"`
	CampaignID   int64  `json:"campaignId,omitempty"`
	WidgetID     int64  `json:"widgetId,omitempty"`
	ExperimentID int64  `json:"experimentId,omitempty"`
	Archived     bool   `json:"archived,omitempty"` // then only the ids and changedAt follow
	Key          string `json:"key,omitempty"`
	Name         string `json:"name,omitempty"`
	Type         string `json:"type,omitempty"`

	Active    *bool              `json:"active,omitempty"`
	StartDate *time.Time         `json:"startDate,omitempty"`
	EndDate   *time.Time         `json:"endDate,omitempty"`
	Owner     string             `json:"owner,omitempty"`
	Tags      []string           `json:"tags,omitempty"`
	Outcome   *catalogue.Outcome `json:"outcome,omitempty"`
	Status    *bulkStatus        `json:"status,omitempty"`
	ChangedAt time.Time          `json:"changedAt"`

	subject schema.Subject
}

// bulkStatus is the status of a list without the time of the process that computed it.
type bulkStatus struct {
	*result.ListedStatus
	ComputedAt *time.Time `json:"computedAt,omitempty"` // never set
}

// sendResults sends the results of all campaigns and experiments that the token may read.
func (s *API) sendResults(c *gin.Context) {
	if err := s.answerBulk(c); err != nil {
		failAnswer(c, err)
	}
}

// answerBulk answers a request for all results. It may return an error after a part of the answer is sent.
func (s *API) answerBulk(c *gin.Context) error {
	if err := negotiateType(c, []string{results.JSON, lineType}); err != nil {
		return err
	}
	now := time.Now()
	asOf := s.Engine.AsOf(now)
	b, err := s.parseBulk(c, now)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	c.Header(asOfHeader, query.FormatInstant(asOf))
	if err := s.readBulkVersions(ctx, c, b); err != nil {
		return err
	}
	if b.tag != "" && matchesTag(c.Request, b.tag) {
		sendReply(c, reply{keep: briefly, tag: b.tag})
		return nil
	}
	items, err := s.selectItems(ctx, b)
	if err != nil {
		return err
	}
	items = pageItems(c, b, items)
	return s.sendItems(c, b, items)
}

// decisions are all decisions that a request may ask for.
var decisions = []string{
	string(result.DecisionInvalid), string(result.DecisionRollBack), string(result.DecisionShip),
	string(result.DecisionNoDifference), string(result.DecisionNoWinner), string(result.DecisionKeepRunning),
}

// parseBulk parses a request.
func (s *API) parseBulk(c *gin.Context, now time.Time) (*bulk, error) {
	asked, err := query.ParseBulk(c.Request.URL.RawQuery, decisions, now)
	if err != nil {
		return nil, err
	}
	b := &bulk{Bulk: asked}
	b.owned, b.website, err = s.searchedWebsite(c, asked.WebsiteID)
	if err != nil || b.After == "" {
		return b, err
	}
	bound := tokenOf(c).WebsiteID
	for _, of := range b.allSubjects() {
		isReadable := bound == 0 || bound == of.WebsiteID
		withoutWebsite := of
		withoutWebsite.WebsiteID = 0
		if isReadable && withoutWebsite == b.AfterSubject {
			b.AfterSubject = of
			return b, nil
		}
	}
	return nil, query.UnknownItem(b.After)
}

// allSubjects returns the subjects of the account, also the archived ones.
func (b *bulk) allSubjects() []schema.Subject {
	all := b.owned.Subjects()
	for _, of := range b.owned.ArchivedSubjects() {
		all = append(all, of.Subject)
	}
	return all
}

// isInScope reports whether a subject is of the website of the request.
func (b *bulk) isInScope(of schema.Subject) bool { return b.website == 0 || b.website == of.WebsiteID }

// readBulkVersions reads the versions of the data of a request, and sets its entity tag. What an item shows may depend
// on all subjects of its website.
func (s *API) readBulkVersions(ctx context.Context, c *gin.Context, b *bulk) error {
	subjects := slices.DeleteFunc(b.owned.Subjects(), func(of schema.Subject) bool { return !b.isInScope(of) })
	versions, waiting, err := s.Engine.ReadVersions(ctx, b.owned, subjects)
	if err != nil {
		return err
	}
	b.stale = waiting.Events > 0
	b.versions = make(map[schema.Subject]engine.Version, len(subjects))
	parts := []string{
		s.options.Release, strconv.FormatInt(b.owned.ID, 10), strconv.FormatInt(b.website, 10),
		c.Request.URL.RequestURI(), c.GetString(typeKey), strconv.FormatUint(b.owned.Version, 10),
	}
	for i, of := range subjects {
		b.versions[of] = versions[i]
		parts = append(parts, versions[i].Key())
	}
	if !b.stale {
		b.tag = entityTag(parts...)
	}
	return nil
}

// selectItems returns the items that a request selects, in order, with what the catalogue says of them.
func (s *API) selectItems(ctx context.Context, b *bulk) ([]bulkItem, error) {
	subjects := make([]schema.Subject, 0, len(b.versions))
	for of := range b.versions {
		subjects = append(subjects, of)
	}
	slices.SortFunc(subjects, schema.Subject.Compare)
	if err := s.readBulkChanges(ctx, b, subjects); err != nil {
		return nil, err
	}
	var items []bulkItem
	for _, of := range subjects {
		item := newBulkItem(b.owned, of)
		item.ChangedAt = b.changes[of]
		if b.selects(&item) {
			items = append(items, item)
		}
	}
	if !b.Since.IsZero() {
		for _, of := range b.owned.ArchivedSubjects() {
			item := bulkItem{Archived: true, ChangedAt: of.At.UTC()}
			item.setSubject(of.Subject)
			if b.isInScope(of.Subject) && b.selects(&item) {
				items = append(items, item)
			}
		}
		slices.SortFunc(items, func(x, y bulkItem) int { return x.subject.Compare(y.subject) })
	}
	if b.Decision == "" {
		return items, nil
	}
	return s.selectDecided(ctx, b, items)
}

// readBulkChanges reads when the results of each subject last changed. What depends on other campaigns has changed with
// any subject of the website.
func (s *API) readBulkChanges(ctx context.Context, b *bulk, subjects []schema.Subject) error {
	changes, err := s.Engine.ReadChanges(ctx, b.owned, subjects)
	if err != nil {
		return err
	}
	ofWebsite := map[int64]time.Time{}
	for i, of := range subjects {
		ofWebsite[of.WebsiteID] = schema.LaterTime(ofWebsite[of.WebsiteID], changes[i])
	}
	for _, of := range b.owned.ArchivedSubjects() {
		ofWebsite[of.WebsiteID] = schema.LaterTime(ofWebsite[of.WebsiteID], of.At.UTC())
	}
	b.changes = make(map[schema.Subject]time.Time, len(subjects))
	for i, of := range subjects {
		b.changes[of] = changes[i]
		version := b.versions[of]
		if b.Asks(query.WorthField) || version.Prior != "" {
			b.changes[of] = ofWebsite[of.WebsiteID]
		}
	}
	return nil
}

// selects reports whether a request selects an item by what the catalogue says of it.
func (b *bulk) selects(item *bulkItem) bool {
	isOfKind := b.Kind == "" || (b.Kind == query.KindCampaign) == (item.CampaignID != 0)
	hasChanged := !item.ChangedAt.Before(b.Since)
	if !isOfKind || !hasChanged {
		return false
	}
	isOfState := b.Active == "" || item.Active != nil && b.Active == strconv.FormatBool(*item.Active)
	isOfOwner := b.Owner == "" || b.Owner == item.Owner
	hasTag := b.Tag == "" || slices.Contains(item.Tags, b.Tag)
	return isOfState && isOfOwner && hasTag
}

// selectDecided returns the items with the decision of a request, for which it waits for all summaries.
func (s *API) selectDecided(ctx context.Context, b *bulk, items []bulkItem) (decided []bulkItem, err error) {
	i := 0
	for summary, err := range s.Summaries.AwaitSummaries(ctx, s.summariesOf(b, items, nil)) {
		if err != nil {
			return nil, err
		}
		if of := summary.Status.Decision; of != nil && string(of.Status) == b.Decision {
			decided = append(decided, items[i])
		}
		i++
	}
	return decided, nil
}

// summariesOf returns the request for the summaries of items. beforeWait is called before each wait.
func (s *API) summariesOf(b *bulk, items []bulkItem, beforeWait func()) watch.Bulk {
	of := watch.Bulk{Owned: b.owned, Admit: s.bulks.AcquireSlot, BeforeWait: beforeWait}
	for i := range items {
		if !items[i].Archived {
			of.Subjects = append(of.Subjects, items[i].subject)
			of.Versions = append(of.Versions, b.versions[items[i].subject])
		}
	}
	return of
}

// pageItems returns the page of a request, and sets the headers of pagination. Pages begin after a key, because the
// numbers of items shift while campaigns are added.
func pageItems(c *gin.Context, b *bulk, items []bulkItem) []bulkItem {
	c.Header("X-Total-Count", strconv.Itoa(len(items)))
	from := 0
	if b.After != "" {
		at, found := slices.BinarySearchFunc(items, b.AfterSubject,
			func(item bulkItem, of schema.Subject) int { return item.subject.Compare(of) })
		from = at
		if found {
			from++
		}
	}
	page := items[from:min(from+b.Limit, len(items))]
	if from+b.Limit < len(items) {
		next := c.Request.URL.Query()
		next.Set("after", query.ItemKey(page[len(page)-1].subject))
		target := url.URL{Path: c.Request.URL.Path, RawQuery: next.Encode()}
		c.Header("Link", fmt.Sprintf(`<%s>; rel="next"`, target.String()))
	}
	return page
}

// sendItems sends the items of a page: as lines, each as soon as it and those before are ready, or as an array once all
// are ready. The array is not built in memory.
func (s *API) sendItems(c *gin.Context, b *bulk, items []bulkItem) error {
	ctx := c.Request.Context()
	asLines := c.GetString(typeKey) == lineType
	if c.Request.Method == http.MethodHead {
		setBulkHeaders(c, b)
		c.Writer.WriteHeaderNow()
		return nil
	}
	flush := func() {
		if c.Writer.Written() { // else an error is still a problem
			c.Writer.Flush()
		}
	}
	summaries := s.Summaries.AwaitSummaries(ctx, s.summariesOf(b, items, flush))
	if !asLines {
		var all []*watch.Summary
		for summary, err := range summaries {
			if err != nil {
				return err
			}
			all = append(all, summary)
		}
		summaries = func(yield func(*watch.Summary, error) bool) {
			for _, summary := range all {
				if !yield(summary, nil) {
					return
				}
			}
		}
	}
	separator := "["
	write := func(line []byte) error {
		if !c.Writer.Written() {
			setBulkHeaders(c, b)
		}
		if asLines {
			return writePart(c, line)
		}
		part := append([]byte(separator), bytes.TrimSuffix(line, []byte("\n"))...)
		separator = ","
		return writePart(c, part)
	}
	if err := s.eachItem(ctx, b, items, summaries, write); err != nil {
		return err
	}
	switch {
	case !c.Writer.Written() && asLines:
		setBulkHeaders(c, b)
		c.Writer.WriteHeaderNow()
	case !c.Writer.Written():
		setBulkHeaders(c, b)
		return writePart(c, []byte("[]\n"))
	case !asLines:
		return writePart(c, []byte("]\n"))
	}
	return nil
}

// setBulkHeaders sets the headers of a successful response.
func setBulkHeaders(c *gin.Context, b *bulk) {
	kind := c.GetString(typeKey)
	if kind == results.JSON {
		kind += "; charset=utf-8"
	}
	c.Header("Content-Type", kind)
	c.Header("Cache-Control", briefly)
	if b.stale {
		c.Header("Cache-Control", notKept)
		c.Header("Warning", staleWarning)
	}
	if b.tag != "" {
		c.Header("ETag", b.tag)
	}
}

// writePart sends a part of a response, for at most sendTime.
func writePart(c *gin.Context, part []byte) error {
	if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err := c.Writer.Write(part)
	return err
}

// eachItem calls write for each item, with its line. summaries has those of the items that are not archived.
func (s *API) eachItem(
	ctx context.Context, b *bulk, items []bulkItem, summaries iter.Seq2[*watch.Summary, error],
	write func(line []byte) error,
) error {
	next, stop := iter.Pull2(summaries)
	defer stop()
	for i := range items {
		var line []byte
		var err error
		if items[i].Archived {
			line, err = render.JSON(&items[i])
		} else {
			var summary *watch.Summary
			summary, err, _ = next()
			if err == nil {
				line, err = s.encodeItem(ctx, b, &items[i], summary)
			}
		}
		if err != nil {
			return err
		}
		if err := write(line); err != nil {
			return err
		}
	}
	return nil
}

// encodeItem returns the line of an item. Its fields are the bytes of the single report.
func (s *API) encodeItem(ctx context.Context, b *bulk, item *bulkItem, summary *watch.Summary) ([]byte, error) {
	item.Status = &bulkStatus{ListedStatus: summary.ListedStatus(*item.Active)}
	line, err := render.NewDocument(item)
	if err != nil {
		return nil, err
	}
	if len(b.Fields) == 0 {
		return line.JSON(), nil
	}
	report, err := summary.DocumentAt(render.Clock{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	for _, member := range report {
		if b.Asks(member.Name) {
			line = append(line, member)
		}
	}
	if b.Asks(query.WorthField) {
		worth, err := s.results.SummaryWorth(ctx, summary)
		if err != nil {
			return nil, err
		}
		if worth != nil {
			line = append(line, render.Member{Name: query.WorthField, Value: worth})
		}
	}
	return line.JSON(), nil
}

// newBulkItem returns what the catalogue says of a subject.
func newBulkItem(owned *catalogue.AccountResources, of schema.Subject) bulkItem {
	item := bulkItem{Name: owned.SubjectName(of)}
	item.setSubject(of)
	state := owned.StateOf(of)
	if outcome, declared := state.Outcomes[of.ExperimentID]; declared {
		item.Outcome = &outcome
	}
	if of.Kind == schema.SubjectCampaign {
		campaign := owned.Campaigns[of.ID]
		item.Key = campaign.Key
		item.Type = campaign.Type
		item.Owner = campaign.Owner
		item.Tags = campaign.Tags
		item.Active = &campaign.Active
		item.StartDate = campaign.StartDate
		item.EndDate = campaign.EndDate
		return item
	}
	widget := owned.Widgets[of.ID]
	item.Type = widget.Type
	for _, e := range widget.Experiments {
		if e.ID == of.ExperimentID {
			item.Active = new(widget.Active && e.Active)
			item.StartDate = utcTime(e.StartDate)
			item.EndDate = utcTime(e.EndDate)
		}
	}
	return item
}

// setSubject sets the ids of an item.
func (i *bulkItem) setSubject(of schema.Subject) {
	i.subject = of
	i.WebsiteID = of.WebsiteID
	if of.Kind == schema.SubjectCampaign {
		i.CampaignID = of.ID
		return
	}
	i.WidgetID = of.ID
	i.ExperimentID = of.ExperimentID
}
