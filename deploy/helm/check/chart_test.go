// Package check renders the Helm chart with several sets of values, and checks the manifests: make helm-check.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	strict "sigs.k8s.io/yaml"
)

const (
	chart   = "../lifthouse"
	release = "shop"

	kubernetes = "1.37.0" // release whose types go.mod names
)

// runHelm runs helm, which the environment variable HELM names.
func runHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Fatal("HELM is not set: run make helm-check")
	}
	cmd := exec.CommandContext(t.Context(), helm, append(args, "--kube-version", kubernetes)...)
	// helm reads no settings, plugins or repositories of the user.
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(),
			complaints.String())
	}
	return out.String(), nil
}

// manifests are the decoded resources by kind and name.
type manifests map[string]meta.Object

// ofKind returns the resources of a type.
func ofKind[T meta.Object](m manifests) []T {
	var found []T
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if resource, ok := m[name].(T); ok {
			found = append(found, resource)
		}
	}
	return found
}

// newResource returns an empty resource, or nil if the kind is unknown.
func newResource(of meta.TypeMeta) meta.Object {
	switch of.APIVersion + " " + of.Kind {
	case "apps/v1 Deployment":
		return &apps.Deployment{}
	case "apps/v1 StatefulSet":
		return &apps.StatefulSet{}
	case "batch/v1 Job":
		return &batch.Job{}
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return &monitoring.ServiceMonitor{}
	case "networking.k8s.io/v1 Ingress":
		return &networking.Ingress{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networking.NetworkPolicy{}
	case "policy/v1 PodDisruptionBudget":
		return &policy.PodDisruptionBudget{}
	case "v1 Service":
		return &core.Service{}
	case "v1 ServiceAccount":
		return &core.ServiceAccount{}
	}
	return nil
}

// decode decodes the output of helm template. A field that the type does not have is an error.
func decode(t *testing.T, text string) manifests {
	t.Helper()
	m := manifests{}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var of meta.TypeMeta
		if err := strict.Unmarshal([]byte(document), &of); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if of.Kind == "" {
			continue // only comments
		}
		resource := newResource(of)
		if resource == nil {
			t.Fatalf("the chart must not render the kind %s %s", of.APIVersion, of.Kind)
		}
		if err := strict.UnmarshalStrict([]byte(document), resource); err != nil {
			t.Fatalf("%s: %v\n%s", of.Kind, err, document)
		}
		name := of.Kind + "/" + resource.GetName()
		if m[name] != nil {
			t.Errorf("%s is rendered twice", name)
		}
		m[name] = resource
	}
	return m
}

// valueSets are the files of values, and what the chart renders for each.
var valueSets = map[string][]string{
	"embedded": {"Service/shop", "Service/shop-pods", "ServiceAccount/shop", "StatefulSet/shop"},
	"service": {
		"Deployment/shop", "Job/shop-migrate", "PodDisruptionBudget/shop", "Service/shop", "ServiceAccount/shop",
	},
	"minimal": {"Deployment/shop", "Service/shop"},
	"everything": {
		"Deployment/results", "Ingress/results", "Job/results-migrate", "NetworkPolicy/results",
		"PodDisruptionBudget/results",
		"Service/results", "Service/results-metrics", "ServiceAccount/results", "ServiceMonitor/results",
	},
	"embedded-everything": {
		"Ingress/shop", "NetworkPolicy/shop", "Service/shop", "Service/shop-metrics", "Service/shop-pods",
		"ServiceAccount/shop",
		"ServiceMonitor/shop", "StatefulSet/shop",
	},
}

// arguments returns the values of a set as arguments of helm.
func arguments(name string) []string {
	if name == "embedded-everything" {
		return []string{
			"-f", "values/everything.yaml", "-f", "values/embedded.yaml", "--set", "mode=embedded,store.url=,store.existingSecret=,fullnameOverride=",
		}
	}
	return []string{"-f", filepath.Join("values", name+".yaml")}
}

func TestChart(t *testing.T) {
	settings := knownSettings(t)
	for name, want := range valueSets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := runHelm(t, append([]string{"lint", "--strict", chart}, arguments(name)...)...); err != nil {
				t.Error(err)
			}
			text, err := runHelm(t,
				append([]string{"template", release, chart, "--namespace", "results"}, arguments(name)...)...)
			if err != nil {
				t.Fatal(err)
			}
			m := decode(t, text)
			if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
				t.Errorf("rendered %q, want %q", got, want)
			}
			server := m.server(t)
			m.checkReferences(t, server)
			checkPod(t, &server.Spec, settings)
			checkProbes(t, &server.Spec)
			for _, job := range ofKind[*batch.Job](m) {
				checkPod(t, &job.Spec.Template.Spec, settings)
				for _, service := range ofKind[*core.Service](m) {
					if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(job.Spec.Template.Labels)) {
						t.Errorf("the service %s sends requests to the Job", service.Name)
					}
				}
			}
		})
	}
}

// server returns the template of the server's pods, and checks its selector.
func (m manifests) server(t *testing.T) *core.PodTemplateSpec {
	t.Helper()
	var found []*core.PodTemplateSpec
	for _, d := range ofKind[*apps.Deployment](m) {
		checkSelector(t, "Deployment", d.Spec.Selector, d.Spec.Template.Labels)
		found = append(found, &d.Spec.Template)
	}
	for _, s := range ofKind[*apps.StatefulSet](m) {
		checkSelector(t, "StatefulSet", s.Spec.Selector, s.Spec.Template.Labels)
		if *s.Spec.Replicas != 1 {
			t.Errorf("an embedded store has %d replicas", *s.Spec.Replicas)
		}
		if governing, ok := m["Service/"+s.Spec.ServiceName].(*core.Service); !ok ||
			governing.Spec.ClusterIP != core.ClusterIPNone {
			t.Errorf("the service %s of the StatefulSet is not headless", s.Spec.ServiceName)
		}
		for _, claim := range s.Spec.VolumeClaimTemplates {
			s.Spec.Template.Spec.Volumes = append(s.Spec.Template.Spec.Volumes, core.Volume{Name: claim.Name})
		}
		found = append(found, &s.Spec.Template)
	}
	if len(found) != 1 {
		t.Fatalf("%d workloads, want 1", len(found))
	}
	return found[0]
}

func checkSelector(t *testing.T, of string, selector *meta.LabelSelector, has map[string]string) {
	t.Helper()
	parsed, err := meta.LabelSelectorAsSelector(selector)
	if err != nil || parsed.Empty() || !parsed.Matches(labels.Set(has)) {
		t.Errorf("%s: the selector %v does not match the labels %v: %v", of, parsed, has, err)
	}
}

// checkReferences checks that resources refer to others that exist.
func (m manifests) checkReferences(t *testing.T, server *core.PodTemplateSpec) {
	t.Helper()
	ports := map[string]bool{}
	for _, port := range server.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	for _, s := range ofKind[*core.Service](m) {
		checkSelector(t, "Service "+s.Name, &meta.LabelSelector{MatchLabels: s.Spec.Selector}, server.Labels)
		for _, port := range s.Spec.Ports {
			if !ports[port.TargetPort.StrVal] {
				t.Errorf("service %s: the pod has no port %s", s.Name, port.TargetPort.String())
			}
		}
	}
	for _, p := range ofKind[*policy.PodDisruptionBudget](m) {
		checkSelector(t, "PodDisruptionBudget", p.Spec.Selector, server.Labels)
	}
	for _, n := range ofKind[*networking.NetworkPolicy](m) {
		checkSelector(t, "NetworkPolicy", &n.Spec.PodSelector, server.Labels)
		for _, rule := range n.Spec.Ingress {
			if port := rule.Ports[0].Port.StrVal; !ports[port] || port == "metrics" && len(rule.From) == 0 {
				t.Errorf("NetworkPolicy: the port %s does not exist, or is open to all", port)
			}
		}
	}
	for _, s := range ofKind[*monitoring.ServiceMonitor](m) {
		target, ok := m["Service/"+s.Name+"-metrics"].(*core.Service)
		if !ok || target.Spec.Ports[0].Name != s.Spec.Endpoints[0].Port ||
			target.Labels[s.Spec.JobLabel] != "lifthouse" {
			t.Fatal("the ServiceMonitor has no service, or another job than the alerting rules expect")
		}
		checkSelector(t, "ServiceMonitor", &s.Spec.Selector, target.Labels)
		if api, ok := m["Service/"+s.Name].(*core.Service); ok &&
			labels.SelectorFromSet(s.Spec.Selector.MatchLabels).Matches(labels.Set(api.Labels)) {
			t.Error("the ServiceMonitor matches the service of the API too")
		}
	}
	for _, i := range ofKind[*networking.Ingress](m) {
		for _, rule := range i.Spec.Rules {
			for _, path := range rule.HTTP.Paths {
				if m["Service/"+path.Backend.Service.Name] == nil || path.Backend.Service.Port.Name != "http" {
					t.Errorf("the ingress names the service %v, which does not exist", path.Backend.Service)
				}
			}
		}
	}
	if account := server.Spec.ServiceAccountName; account != "default" && m["ServiceAccount/"+account] == nil {
		t.Errorf("the service account %s does not exist", account)
	}
}

// checkPod checks what a pod may do, its environment and its mounts.
func checkPod(t *testing.T, pod *core.PodSpec, settings map[string]bool) {
	t.Helper()
	c := &pod.Containers[0]
	s, p := c.SecurityContext, pod.SecurityContext
	if s == nil || p == nil || !*p.RunAsNonRoot || *p.RunAsUser != imageUser(t) ||
		p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		!*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Errorf("the pod may do too much: %v, %v", p, s)
	}
	if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Error("the pod has a token or variables that it does not need")
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
		c.Resources.Limits.Memory().IsZero() {
		t.Errorf("resources are incomplete: %v", c.Resources)
	}
	seen := map[string]bool{}
	for _, env := range c.Env {
		if seen[env.Name] {
			t.Errorf("%s is set twice", env.Name)
		}
		seen[env.Name] = true
		if strings.HasPrefix(env.Name, "LIFTHOUSE_") && !settings[env.Name] {
			t.Errorf("%s is not a setting of docs/operations.md", env.Name)
		}
		if (env.Name == "CLICKHOUSE_USER" || strings.Contains(env.Name, "HEADERS")) &&
			(env.ValueFrom == nil || env.ValueFrom.SecretKeyRef == nil) {
			t.Errorf("%s is not a reference to a Secret", env.Name)
		}
		if path := env.Value; strings.HasPrefix(path, "/etc/lifthouse/") && !isMounted(c, path) {
			t.Errorf("%s: %s is in no mounted volume", env.Name, path)
		}
	}
	if seen["CLICKHOUSE_PASSWORD"] {
		t.Error("the password is in the environment: want CLICKHOUSE_PASSWORD_FILE")
	}
	if !seen["LIFTHOUSE_STORE"] {
		t.Error("the store is not set")
	}
	var mounted, volumes []string
	for _, mount := range c.VolumeMounts {
		mounted = append(mounted, mount.Name)
	}
	for _, volume := range pod.Volumes {
		volumes = append(volumes, volume.Name)
	}
	slices.Sort(mounted)
	slices.Sort(volumes)
	if !slices.Equal(mounted, volumes) {
		t.Errorf("mounted %q of the volumes %q", mounted, volumes)
	}
}

func isMounted(c *core.Container, path string) bool {
	return slices.ContainsFunc(c.VolumeMounts,
		func(m core.VolumeMount) bool { return filepath.Dir(path) == m.MountPath })
}

// checkProbes checks the probes, and that the pod has the time to stop that the program takes.
func checkProbes(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	c := &pod.Containers[0]
	scheme := core.URISchemeHTTP
	var drain time.Duration
	for _, env := range c.Env {
		switch env.Name {
		case "LIFTHOUSE_TLS_CERT":
			scheme = core.URISchemeHTTPS
		case "LIFTHOUSE_DRAIN_DELAY", "LIFTHOUSE_DRAIN_TIMEOUT":
			d, err := time.ParseDuration(env.Value)
			if err != nil {
				t.Fatal(err)
			}
			drain += d
		case "LIFTHOUSE_LISTEN":
			if env.Value != fmt.Sprintf(":%d", c.Ports[0].ContainerPort) {
				t.Errorf("the server listens at %s, want port %d", env.Value, c.Ports[0].ContainerPort)
			}
		}
	}
	for probe, path := range map[*core.Probe]string{
		c.LivenessProbe: "/healthz", c.StartupProbe: "/healthz",
		c.ReadinessProbe: "/readyz",
	} {
		if get := probe.HTTPGet; get.Path != path || get.Port.StrVal != c.Ports[0].Name || get.Scheme != scheme {
			t.Errorf("probe %v, want %s over %s", get, path, scheme)
		}
	}
	const stop = 5 * time.Second // docs/operations.md
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= drain+stop {
		t.Errorf("the pod is killed after %v, but the program may take %v", grace, drain+stop)
	}
}

// imageUser returns the user of the Dockerfile.
func imageUser(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var user int64
	_, rest, _ := strings.Cut(string(text), "\nUSER ")
	if _, err := fmt.Sscan(strings.ReplaceAll(rest, ":", " "), &user); err != nil {
		t.Fatal(err)
	}
	return user
}

// knownSettings returns the variables of the settings that docs/operations.md lists.
func knownSettings(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| setting | default | meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	known := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cell, -1) {
			known["LIFTHOUSE_"+strings.ToUpper(strings.ReplaceAll(name[1], "-", "_"))] = true
		}
	}
	if len(known) < 20 {
		t.Fatalf("docs/operations.md has %d settings: %v", len(known), known)
	}
	return known
}

// TestChartSetsValues checks that values arrive as the program reads them.
func TestChartSetsValues(t *testing.T) {
	text, err := runHelm(t, append([]string{"template", release, chart}, arguments("everything")...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`name: LIFTHOUSE_QUERY_MEMORY` + "\n" + `              value: "4294967296"`,
		`name: LIFTHOUSE_CORS_ORIGIN` + "\n" + `              value: "https://dash.example.com,https://shop.example.com"`,
		`terminationGracePeriodSeconds: 80`,
		`image: "registry.example.com/lifthouse@sha256:0`,
		`maxUnavailable: 25%`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifests do not contain\n%s", want)
		}
	}
	text, err = runHelm(t, append([]string{"template", release, chart}, arguments("embedded")...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`value: embedded:/data/store`, `image: "lifthouse:v1.0.0-embedded"`, `value: "2147483648"`, `storageClassName: "fast"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifests do not contain\n%s", want)
		}
	}
}

// TestChartRejectsValues checks that mistakes are found before an installation.
func TestChartRejectsValues(t *testing.T) {
	for set, message := range map[string]string{
		"mode=other": "mode",
		"mode=service,store.url=clickhouse://user:secret@host/lifthouse": "store.url",
		"mode=service":                             "set store.url, or store.existingSecret",
		"store.existingSecret=name":                "set mode=service",
		"replica=3":                                "replica",
		"settings.store=embedded:/data":            "settings",
		"settings.query_timeout=30s":               "settings",
		"metrics.serviceMonitor.enabled=true":      "needs metrics.enabled",
		"ingress.enabled=true":                     "hosts",
		"persistence.accessModes[0]=ReadWriteMany": "accessModes",
		"image.digest=latest":                      "digest",
	} {
		_, err := runHelm(t, "template", release, chart, "--set", set)
		var failed *exec.ExitError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), message) {
			t.Errorf("--set %s: %v, want an error with %q", set, err, message)
		}
	}
}

// TestChartPrintsNotes renders the notes as the content of a manifest, because only a cluster prints them.
func TestChartPrintsNotes(t *testing.T) {
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(copied, "templates/NOTES.txt"), filepath.Join(copied, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	manifest := "notes: |\n{{ tpl (.Files.Get \"notes.txt\") . | indent 2 }}\n"
	if err := os.WriteFile(filepath.Join(copied, "templates/notes.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range valueSets {
		notes, err := runHelm(t,
			append([]string{"template", release, copied, "--show-only", "templates/notes.yaml"}, arguments(name)...)...)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(notes, "lifthouse token create --scope read") || strings.Contains(notes, "<no value>") {
			t.Errorf("%s: notes:\n%s", name, notes)
		}
		t.Log(notes)
	}
}
