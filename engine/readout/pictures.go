package readout

import (
	"context"
	"encoding/base64"
	"html/template"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/pictures"
)

// roomForPictures is how many bytes all pictures of a readout may have. Base64 makes them a third larger, and the file
// has at most 900 kB with 5 pictures.
const roomForPictures = 600_000

// declaredPictures returns the ids of the pictures of a subject with the names of their variations.
func declaredPictures(owned *catalogue.AccountResources, subject schema.Subject) (all []Image) {
	add := func(id, name string) {
		if id != "" {
			all = append(all, Image{ID: id, Name: name})
		}
	}
	if subject.Kind == schema.SubjectCampaign {
		campaign := owned.Campaigns[subject.ID]
		add(campaign.ControlPicture, "Control")
		for i := range campaign.Variations {
			add(campaign.Variations[i].Picture, campaign.Variations[i].Name)
		}
		return all
	}
	widget := owned.Widgets[subject.ID]
	for i := range widget.Experiments {
		if widget.Experiments[i].ID != subject.ExperimentID {
			continue
		}
		for _, v := range widget.Experiments[i].Variations {
			add(v.Picture, v.Name)
		}
	}
	return all
}

// addPictures adds the logo and the pictures of the variations to a readout, as far as they are stored. They share
// roomForPictures.
func (m *Maker) addPictures(ctx context.Context, d *Document, owned *catalogue.AccountResources) error {
	declared := declaredPictures(owned, d.Subject)
	most := roomForPictures / (len(declared) + 1)
	for i := range declared {
		if err := m.readPicture(ctx, owned.ID, &declared[i], most); err != nil {
			return err
		}
		if declared[i].Address != "" {
			d.Pictures = append(d.Pictures, declared[i])
		}
	}
	logo := Image{ID: owned.Logo}
	if logo.ID == "" {
		return nil
	}
	err := m.readPicture(ctx, owned.ID, &logo, most)
	if logo.Address != "" {
		d.Logo = logo
	}
	return err
}

// readPicture sets the address of a picture, which stays empty if it is not stored.
func (m *Maker) readPicture(ctx context.Context, account int64, of *Image, most int) error {
	found, err := m.Documents.FindDocument(ctx, account, 0, documents.Picture, of.ID)
	if err != nil || found == nil {
		return err
	}
	body, err := m.Documents.ReadBody(ctx, found)
	if err != nil {
		return err
	}
	body, err = pictures.Shrink(body, most)
	if err != nil {
		return err
	}
	//nolint:gosec // the bytes are a JPEG that this program has encoded
	of.Address = template.URL("data:" + documents.JPEG + ";base64," + base64.StdEncoding.EncodeToString(body))
	return nil
}
