package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

const yamlType = "application/yaml"

// catalogueTag returns the entity tag of a version of the account's catalogue. A strong tag names one representation.
func catalogueTag(version uint64, kind string) string {
	if kind == results.JSON {
		return fmt.Sprintf(`"%016x-json"`, version)
	}
	return fmt.Sprintf(`"%016x"`, version)
}

// getCatalogue returns the catalogue of the token's account.
func (s *API) getCatalogue(c *gin.Context) (any, error) {
	owned, _ := s.accountResources(c)
	kind := c.GetString(typeKey)
	write := owned.CatalogueFile().WriteYAML
	if kind == results.JSON {
		write = owned.CatalogueFile().WriteJSON
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return nil, err
	}
	return reply{kind: kind, body: text.Bytes(), keep: revalidated, tag: catalogueTag(owned.Version, kind)}, nil
}

// putCatalogue changes the account's catalogue to what the body declares.
func (s *API) putCatalogue(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "dryRun", "prune")
	booleans := []string{"true", "false"}
	dryRun, prune := p.OneOf("dryRun", booleans) == "true", p.OneOf("prune", booleans) == "true"
	if err := p.Err(); err != nil {
		return nil, err
	}
	unconditional := strings.Join(c.Request.Header.Values("If-Match"), ",") == ""
	if unconditional && !dryRun {
		return nil, newRefusal(http.StatusPreconditionRequired, "precondition_required",
			"send the header If-Match with the ETag of GET /catalogue, which protects the changes of others, or "+
				"If-Match: * to overwrite them")
	}
	replaces := func(version uint64) bool {
		return unconditional || listsTag(c.Request, "If-Match", catalogueTag(version, yamlType),
			catalogueTag(version, results.JSON))
	}
	var answered reply
	// 500 campaigns with 20 variations have a megabyte. Reading it allocates 70 MB, and at most 1.2 GB if all of it are
	// keys or brackets.
	err := s.useYAML(c, 1<<20, func(text io.Reader) (err error) {
		if err := s.Catalogue.RefreshSnapshot(c.Request.Context()); err != nil { // another server may have changed it
			return changeFailure(c, err, "repeat the request")
		}
		if owned, _ := s.accountResources(c); !replaces(owned.Version) {
			return versionChanged() // without parsing the body, so the retries of many clients are cheap
		}
		file, err := catalogue.ReadYAML(text)
		// ApplyToVersion returns the faults with those that it finds.
		if _, hasFaults := errors.AsType[faults.List](err); err != nil && !hasFaults {
			return bodyProblem(err)
		}
		file.AccountID = tokenOf(c).AccountID
		file.Replaces = replaces
		file.Prune = prune
		file.IsRemote = true
		answered, err = s.applyCatalogue(c, file, dryRun)
		return err
	})
	return answered, err
}

// applyCatalogue changes the account's catalogue and returns the changes.
func (s *API) applyCatalogue(c *gin.Context, file catalogue.File, dryRun bool) (reply, error) {
	var changes []catalogue.Change
	var version uint64
	// starts after the body was received from the client
	ctx, cancel := results.WithDeadline(byToken(c), s.options.Timeout)
	defer cancel()
	err := within(ctx, func() (err error) {
		changes, version, err = s.Catalogue.ApplyToVersion(ctx, file, dryRun)
		return err
	})
	var found faults.List
	switch {
	case errors.As(err, &found):
		return reply{}, bodyFaults("invalid_catalogue", found)
	case errors.Is(err, catalogue.ErrVersionChanged):
		return reply{}, versionChanged()
	case err != nil:
		return reply{}, changeFailure(c, err, "get the catalogue to see whether it was")
	}
	body, err := render.JSON(struct {
		DryRun  bool               `json:"dryRun"`
		Changes []catalogue.Change `json:"changes"`
	}{dryRun, append([]catalogue.Change{}, changes...)})
	return reply{kind: results.JSON, body: body, keep: notKept, tag: catalogueTag(version, yamlType)}, err
}

func versionChanged() error {
	return newRefusal(http.StatusPreconditionFailed, "precondition_failed",
		"the catalogue has changed since the ETag in If-Match; nothing was changed: get it again, repeat your edit "+
			"and send it with the new ETag")
}

// switchHandler returns the handler of an operation that starts or stops a resource, and returns it. It ignores the
// body of the request.
func switchHandler[R catalogue.Placed, S any](s *API, of resources[R], active bool,
	show func(*R) S,
) handler {
	return admitTo(s.changes, func(c *gin.Context) (any, error) {
		p, err := s.parsePlace(c)
		if err != nil {
			return nil, err
		}
		var owned *catalogue.AccountResources
		var found bool
		ctx := byToken(c)
		err = within(ctx, func() (err error) {
			kind := schema.SubjectKind(of.kind)
			owned, found, err = s.Catalogue.Switch(ctx, p.owned.ID, p.website, kind, p.id, active)
			return err
		})
		switch { // after an error, the change may still run and set owned and found
		case err != nil:
			return nil, changeFailure(c, err, "repeat the request, which is idempotent")
		case !found:
			return nil, &query.NotFoundError{Kind: of.kind, ID: p.id}
		}
		live := of.all(owned)[p.id]
		return show(&live), nil
	})
}
