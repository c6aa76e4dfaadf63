package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"lifthouse/schema"

	"go.yaml.in/yaml/v4"
)

// keyed is a resource in a file that may have a key instead of an id.
type keyed struct {
	path string
	node *yaml.Node
	kind schema.NameKind
}

// websiteNodes are the nodes of a website in a catalogue file that may have keys.
type websiteNodes struct {
	site      *yaml.Node
	resources []keyed // which have a key or an id
	goals     []keyed // values that name a goal
}

// eachWebsite calls each with the nodes of each website of a catalogue file.
func eachWebsite(file *yaml.Node, each func(*websiteNodes)) {
	for a, account := range elementsOf(fieldOf(file, "accounts")) {
		for w, site := range elementsOf(fieldOf(account, "websites")) {
			path := fmt.Sprintf("accounts[%d].websites[%d]", a, w)
			nodes := websiteNodes{site: site}
			for i, goal := range elementsOf(fieldOf(site, "goals")) {
				nodes.resources = append(nodes.resources,
					keyed{fmt.Sprintf("%s.goals[%d]", path, i), goal, schema.NameGoal})
			}
			for i, campaign := range elementsOf(fieldOf(site, "campaigns")) {
				nodes.addCampaign(fmt.Sprintf("%s.campaigns[%d]", path, i), campaign)
			}
			for i, widget := range elementsOf(fieldOf(site, "widgets")) {
				nodes.addWidget(fmt.Sprintf("%s.widgets[%d]", path, i), widget)
			}
			each(&nodes)
		}
	}
}

// addCampaign adds a campaign, its variations and the goals that it names.
func (n *websiteNodes) addCampaign(path string, campaign *yaml.Node) {
	n.resources = append(n.resources, keyed{path, campaign, schema.NameCampaign})
	for i, variation := range elementsOf(fieldOf(campaign, "variations")) {
		n.resources = append(n.resources,
			keyed{fmt.Sprintf("%s.variations[%d]", path, i), variation, schema.NameVariation})
	}
	n.addGoal(path, campaign, "primaryGoalId")
	n.addRoles(path, campaign)
}

// addWidget adds the goals that a widget and its experiments name.
func (n *websiteNodes) addWidget(path string, widget *yaml.Node) {
	n.addGoal(path, widget, "primaryGoalId")
	for i, experiment := range elementsOf(fieldOf(widget, "experiments")) {
		n.addRoles(fmt.Sprintf("%s.experiments[%d]", path, i), experiment)
	}
}

// addRoles adds the goals of a campaign or an experiment by their roles.
func (n *websiteNodes) addRoles(path string, owner *yaml.Node) {
	roles := fieldOf(owner, "goals")
	n.addGoal(path+".goals", roles, "primary")
	for _, role := range []string{"secondary", "guardrails"} {
		for i, goal := range elementsOf(fieldOf(roles, role)) {
			n.addGoal(fmt.Sprintf("%s.goals.%s[%d]", path, role, i), goal, "goalId")
		}
	}
}

// addGoal adds the goal that a field names.
func (n *websiteNodes) addGoal(path string, owner *yaml.Node, name string) {
	if goal := fieldOf(owner, name); goal != nil {
		n.goals = append(n.goals, keyed{path + "." + name, goal, schema.NameGoal})
	}
}

// fieldOf returns the value of a field; nil: the node has no such field.
func fieldOf(node *yaml.Node, name string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for pair := range slices.Chunk(node.Content, 2) {
		if pair[0].Value == name {
			return pair[1]
		}
	}
	return nil
}

func elementsOf(list *yaml.Node) []*yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

// resolveKeys adds the ids that are computed from the keys of a file, and replaces keys that name goals by their ids.
func (d *Document) resolveKeys(file *yaml.Node) {
	eachWebsite(file, func(nodes *websiteNodes) {
		website := int64(0)
		if id := fieldOf(nodes.site, "id"); id != nil {
			website, _ = strconv.ParseInt(id.Value, 10, 64) // validation reports an invalid id
		}
		for _, r := range nodes.resources {
			d.resolveKey(website, r)
		}
		for _, goal := range nodes.goals {
			isText := goal.node.Kind == yaml.ScalarNode && slices.Contains(stringTags, goal.node.Tag)
			id, key, err := schema.IDOf(website, schema.NameGoal, goal.node.Value)
			if isText && err == nil && key != "" {
				*goal.node = *idNode(id, goal.node.Line)
			}
		}
	})
}

// resolveKey adds the id that is computed from the key of a resource, also if the key has a fault.
func (d *Document) resolveKey(website int64, r keyed) {
	key, given := fieldOf(r.node, "key"), fieldOf(r.node, "id")
	if key == nil || key.Kind != yaml.ScalarNode || key.Tag == nullTag {
		return
	}
	id, text, err := schema.IDOf(website, r.kind, key.Value)
	switch {
	case err != nil:
		d.addFault(r.path+".key", key, key.Value, err.Error())
	case text == "":
		d.addFault(r.path+".key", key, key.Value, fmt.Sprintf("is an id: write id: %d", id))
		key.Tag = nullTag
	case !slices.Contains(stringTags, key.Tag): // such as 2.0 without quotes
		d.addFault(r.path+".key", key, key.Value, "must be a string: add quotes")
		key.Tag = nullTag
		id = id%schema.FirstKeyID + 1 // that of a resource without a key, so that it has no fault
	case given != nil:
		d.addFault(r.path+".key", key, key.Value,
			fmt.Sprintf("must be omitted, or the id in line %d: a resource has one of them", given.Line))
	}
	if given == nil {
		r.node.Content = append(r.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "id", Line: key.Line},
			idNode(id, key.Line))
	}
}

func idNode(id int64, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(id, 10), Line: line}
}

// writeKeys is the opposite of resolveKeys: it removes ids that are computed from keys, and writes the keys of goals
// instead of their ids.
func writeKeys(file *yaml.Node) {
	eachWebsite(file, func(nodes *websiteNodes) {
		keys := map[string]string{} // of goals, by id
		for _, r := range nodes.resources {
			key, id := fieldOf(r.node, "key"), fieldOf(r.node, "id")
			if key == nil {
				continue
			}
			if r.kind == schema.NameGoal {
				keys[id.Value] = key.Value
			}
			at := slices.Index(r.node.Content, id)
			r.node.Content = slices.Delete(r.node.Content, at-1, at+1)
		}
		for _, goal := range nodes.goals {
			if key, has := keys[goal.node.Value]; has {
				*goal.node = yaml.Node{Kind: yaml.ScalarNode, Tag: stringTags[0], Value: key}
			}
		}
	})
}

// FindID returns the id of a campaign or a goal of the account from its id or its key.
func (o *AccountResources) FindID(kind schema.NameKind, text string) (int64, error) {
	found := ids{}
	for _, site := range ByID(o.Websites) {
		id, key, err := schema.IDOf(site.ID, kind, text)
		if err != nil || key == "" {
			return id, err
		}
		_, has := o.Campaigns[id]
		if kind == schema.NameGoal {
			_, has = o.Goals[id]
		}
		if has {
			found[id] = ""
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("no %s has the key %q", kind, text)
	case 1:
		return slices.Collect(maps.Keys(found))[0], nil
	}
	return 0, fmt.Errorf("several websites have a %s with the key %q: name one of the ids %s", kind, text,
		listIDs(found))
}
