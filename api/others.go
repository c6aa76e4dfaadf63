package api

import (
	"strconv"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

type goal struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	System  bool   `json:"system"`
	Action  string `json:"action,omitempty"`
	Default bool   `json:"default"`
	Value   *int64 `json:"value,omitempty"`

	ValueCap *schema.Cap `json:"valueCap,omitempty"`
}

func newGoal(g *catalogue.Goal) goal {
	return goal{ID: g.ID, Name: g.Name, System: g.System, Action: g.Action, Default: g.Default, Value: g.Value, ValueCap: g.ValueCap}
}

func (s *server) listGoals(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, ofOthers, nil)
	if err != nil {
		return nil, err
	}
	list := []goal{}
	for _, found := range pageOf(c, l, l.owned.Goals, func(g catalogue.Goal) bool { return g.WebsiteID == l.website }) {
		list = append(list, newGoal(&found))
	}
	return list, nil
}

func (s *server) getGoal(c *gin.Context) (any, error) {
	found, err := findResource(s, c, "goal", func(o *catalogue.AccountResources) map[int64]catalogue.Goal { return o.Goals }, func(g *catalogue.Goal) int64 { return g.WebsiteID })
	if err != nil {
		return nil, err
	}
	return newGoal(&found), nil
}

type target struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	CreateDate time.Time `json:"createDate,omitzero"`
	UpdateDate time.Time `json:"updateDate,omitzero"`
}

func newTarget(t *catalogue.LiveTarget) target {
	return target{ID: t.ID, Name: t.Name, CreateDate: t.State.CreateDate, UpdateDate: t.UpdateDate}
}

func (s *server) listTargets(c *gin.Context) (any, error) {
	l, err := s.parseListing(c, ofOthers, nil)
	if err != nil {
		return nil, err
	}
	list := []target{}
	for _, found := range pageOf(c, l, l.owned.Targets, func(t catalogue.LiveTarget) bool { return t.WebsiteID == l.website }) {
		list = append(list, newTarget(&found))
	}
	return list, nil
}

func (s *server) getTarget(c *gin.Context) (any, error) {
	found, err := findResource(s, c, "target", func(o *catalogue.AccountResources) map[int64]catalogue.LiveTarget { return o.Targets }, func(t *catalogue.LiveTarget) int64 { return t.WebsiteID })
	if err != nil {
		return nil, err
	}
	return newTarget(&found), nil
}

type website struct {
	ID       int64  `json:"id"`
	Domain   string `json:"domain"`
	Currency string `json:"currency,omitempty"`
	Timezone string `json:"timezone,omitempty"`
}

// listWebsites returns all websites that the token may read, on one page.
func (s *server) listWebsites(c *gin.Context) (any, error) {
	if err := query.ReadParameters(c.Request.URL.RawQuery).Err(); err != nil {
		return nil, err
	}
	owned, bound := s.accountResources(c)
	list := []website{}
	for _, w := range catalogue.ByID(owned.Websites) {
		if bound == 0 || bound == w.ID {
			list = append(list, website{ID: w.ID, Domain: w.Domain, Currency: w.Currency, Timezone: w.Timezone})
		}
	}
	c.Header("X-Total-Count", strconv.Itoa(len(list)))
	return list, nil
}
