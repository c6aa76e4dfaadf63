package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// composed reads docker-compose.yml as docker compose config does: schema, variables, references and dependencies.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options := must.Get(cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithProfiles(profiles),
		cli.WithInterpolation(true), cli.WithConsistency(true)))(t)
	return must.Get(options.LoadProject(t.Context()))(t)
}

func TestComposeFileIsWhole(t *testing.T) {
	got := composed(t).ServiceNames()
	check.That(t, slices.Equal(got, []string{"clickhouse", "lifthouse"}), "docker compose up starts %v", got)
	project := composed(t, "cluster", "server")
	for _, name := range []string{
		"server-clickhouse", "server-users", "server-migrate", "server",
		"clickhouse-1-1", "clickhouse-1-2", "clickhouse-2-1", "clickhouse-2-2", "keeper", "lifthouse-1", "lifthouse-2",
		"balancer",
	} {
		must.Get(project.GetService(name))(t)
	}
	for name, service := range project.Services {
		image, tag, _ := strings.Cut(service.Image, ":")
		check.That(t, tag != "", "%s: the image %s is not pinned", name, image)
		check.That(t, tag != "latest", "%s: the image %s is not pinned", name, image)
		for _, port := range service.Ports {
			check.Equal(t, port.HostIP, "127.0.0.1", "%s: port %s is reached from elsewhere", name, port.Published)
		}
		if service.Build == nil {
			continue
		}
		check.That(t, service.ReadOnly, "%s may write to its root, or has capabilities", name)
		check.That(t, slices.Contains(service.CapDrop, "ALL"), "%s may write to its root, or has capabilities", name)
		check.That(t, !service.Privileged, "%s may write to its root, or has capabilities", name)
		checkCommand(t, name, service)
	}
}

// checkCommand parses the command line and the store of a service.
func checkCommand(t *testing.T, name string, service types.ServiceConfig) {
	t.Helper()
	p := &program{getenv: func(string) string { return "" }}
	command, rest, err := p.rootCommand().Find(service.Command)
	must.That(t, err == nil, "%s: %v: %v", name, service.Command, err)
	must.That(t, command.HasParent(), "%s: %v: %v", name, service.Command, err)
	must.OK(t, command.ParseFlags(rest), "%v", name)
	address := command.Flags().Lookup(storeFlag).Value.String()
	if store := service.Environment["LIFTHOUSE_STORE"]; store != nil {
		address = *store
	}
	parsed, err := schema.ParseAddress(address, func(string) string { return "" })
	must.That(t, err == nil, "%s: store %+v, %v", name, parsed, err)
	check.Equal(t, parsed.Dir, "", "%s: store %+v, %v", name, parsed, err)
	cluster := slices.Contains(service.Profiles, "cluster")
	check.Equal(t, cluster, (parsed.Cluster == "lift"), "%s: cluster %q of %v", name, parsed.Cluster,
		parsed.Options.Addr)
	check.That(t, (!cluster || len(parsed.Options.Addr) == 4), "%s: cluster %q of %v", name, parsed.Cluster,
		parsed.Options.Addr)
}

// TestConfigurationsOfTheClusterAreXML checks that the configurations are valid XML and name the servers of the
// cluster.
func TestConfigurationsOfTheClusterAreXML(t *testing.T) {
	project := composed(t, "cluster")
	for _, name := range []string{"cluster", "keeper"} {
		content := project.Configs[name].Content
		decoder := xml.NewDecoder(strings.NewReader(content))
		var inHost bool
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must.OK(t, err, "%v", name)
			switch element := token.(type) {
			case xml.StartElement:
				inHost = element.Name.Local == "host" || element.Name.Local == "hostname"
			case xml.EndElement:
				inHost = false
			case xml.CharData:
				_, err := project.GetService(string(element))
				check.That(t, !inHost || err == nil, "%s: %v", name, err)
			}
		}
	}
}

// TestDockerfile checks the interface of the image.
func TestDockerfile(t *testing.T) {
	text := must.Get(os.ReadFile("../../Dockerfile"))(t)
	stages := map[string]bool{}
	var user, health bool
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "FROM":
			_, tag, _ := strings.Cut(words[1], ":")
			check.That(t, stages[words[1]] || (tag != "" && strings.ContainsAny(tag, "0123456789")), "%s is not pinned",
				words[1])
			stages[words[3]] = true
		case words[0] == "USER":
			user = words[1] != "0" && words[1] != "root"
		case words[0] == "HEALTHCHECK":
			health = true
		}
	}
	must.That(t, user, "user %v, health check %v, stages %v", user, health, stages)
	must.That(t, health, "user %v, health check %v, stages %v", user, health, stages)
	check.That(t, stages["server"], "user %v, health check %v, stages %v", user, health, stages)
	check.That(t, stages["embedded"], "user %v, health check %v, stages %v", user, health, stages)
}
